"""Both Pollers read and write with the same outcomes, over real sockets."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from typing import Any

import pytest

from harness.accel.pollers import LONG_MS, Ends, tcp
from harness.network.listener import reset
from kclient._accel.shared.readiness import EVENT_READ


def test_buffers_of_every_kind_are_written_as_one_stream(poller: Any, ends: Ends) -> None:
    ours, theirs = ends
    buffers = [b"ab", bytearray(b"cd"), memoryview(b"xefx")[1:3], b"", memoryview(bytearray(b"g"))]
    assert poller.send(ours, buffers) == 7
    assert poller.send(ours, tuple(buffers)) == 7
    assert poller.send(ours, []) == 0
    assert theirs.recv(100) == b"abcdefgabcdefg"
    buffers[1].append(1)  # BufferError while something holds its memory


def test_a_full_socket_takes_a_part_and_then_nothing(poller: Any, ends: Ends) -> None:
    ours, theirs = ends
    payload = os.urandom(4 << 20)
    written = poller.send(ours, [payload[:1000], payload[1000:]])
    assert 0 < written < len(payload)
    while more := poller.send(ours, [payload[written:]]):
        written += more
    got = bytearray()
    while len(got) < written:
        got += theirs.recv(1 << 20)
    assert got == payload[:written]
    assert poller.send(ours, [b"again"]) == 5


@pytest.mark.parametrize("count", [31, 32, 33, 1023, 1024, 1025, 5000])
def test_of_many_buffers_the_first_are_written(poller: Any, ends: Ends, count: int) -> None:
    ours, theirs = ends
    buffers = [bytes([number % 251]) for number in range(count)]
    assert poller.send(ours, buffers) == min(count, 1024)
    assert theirs.recv(10_000) == b"".join(buffers[:1024])


def test_what_is_no_buffer_is_refused_and_nothing_stays_held(poller: Any, ends: Ends) -> None:
    held = bytearray(b"first")
    for wrong in (1, "text", None):
        with pytest.raises(TypeError, match="bytes-like object is required"):
            poller.send(ends[0], [held, wrong])
    held.append(1)
    assert ends[1].fileno() >= 0
    with pytest.raises(BlockingIOError):
        ends[1].recv(10)


def test_writing_to_a_peer_that_is_gone_raises_the_class_of_its_errno(poller: Any, ends: Ends) -> None:
    ours, theirs = ends
    theirs.close()
    with pytest.raises(BrokenPipeError) as caught:
        poller.send(ours, [b"x"])
    assert caught.value.errno == errno.EPIPE
    ours.close()
    with pytest.raises(OSError, match="Bad file descriptor") as closed:
        poller.send(ours, [b"x"])
    assert closed.value.errno == errno.EBADF


@pytest.mark.parametrize("body", ["reference.poller", "native.poller"])
def test_a_peer_that_is_gone_does_not_kill_a_program_that_dies_of_sigpipe(body: str) -> None:
    program = f"""
import signal, socket
from kclient._accel.{body} import Poller
signal.signal(signal.SIGPIPE, signal.SIG_DFL)
ours, theirs = socket.socketpair()
theirs.close()
try:
    Poller.send(ours, [b"x"])
except BrokenPipeError:
    print("alive")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stdout) == (0, "alive\n"), done.stderr


# Reading.


def test_reading_tells_nothing_now_from_the_end(poller: Any, ends: Ends) -> None:
    ours, theirs = ends
    buffer = bytearray(8)
    assert poller.recv_into(ours, buffer) == 0
    theirs.send(b"0123456789")
    assert poller.recv_into(ours, memoryview(buffer)[2:5]) == 3
    assert bytes(buffer) == b"\0\x00012\0\0\0"
    assert poller.recv_into(ours, bytearray()) == 0
    assert poller.recv_into(ours, buffer) == 7
    assert bytes(buffer) == b"3456789\0"
    theirs.close()
    assert poller.recv_into(ours, bytearray()) == 0
    with pytest.raises(EOFError):
        poller.recv_into(ours, buffer)
    buffer.append(1)


def test_a_reset_is_an_error_of_its_class(poller: Any) -> None:
    ours, theirs = tcp()
    with ours:
        poller.register(ours, EVENT_READ, None)
        reset(theirs)
        poller.poll(LONG_MS)
        with pytest.raises(ConnectionResetError) as caught:
            poller.recv_into(ours, bytearray(8))
        assert caught.value.errno == errno.ECONNRESET
        poller.unregister(ours)
    with pytest.raises(OSError, match="Bad file descriptor"):
        poller.recv_into(ours, bytearray(8))


def test_only_memory_that_can_be_written_is_read_into(poller: Any, ends: Ends) -> None:
    ends[1].send(b"x")
    for wrong in (b"12345678", memoryview(b"12345678"), 5):
        with pytest.raises(TypeError, match="bytes-like object"):
            poller.recv_into(ends[0], wrong)
