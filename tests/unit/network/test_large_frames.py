"""Frames that come in many pieces, which a poll receives while it waits: nothing is lost, whatever ends the poll."""

from __future__ import annotations

import os
import random
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from harness.network.listener import reset
from kclient.errors import DisconnectError, InvalidReceiveError
from kclient.network.channel_builder import PlaintextChannelBuilder
from kclient.network.selector import Selector
from kclient.network.send import NetworkSend

SIZE = 5_000_000


class Peers:
    """A Selector with connections whose other ends are written to by threads."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.selector = Selector(
            max_receive_bytes=1 << 24,
            connections_max_idle_ms=-1,
            channel_builder=PlaintextChannelBuilder(),
        )
        stack.callback(self.selector.close)
        self.received: dict[str, bytes] = {}

    def connect(self, name: str) -> socket.socket:
        """The other end of a new connection."""
        theirs, ours = socket.socketpair()
        self._stack.callback(theirs.close)
        self.selector.register(name, ours)
        return theirs

    def write(self, sock: socket.socket, *pieces: bytes) -> None:
        """Write on a thread of its own."""

        def run() -> None:
            try:
                for piece in pieces:
                    sock.sendall(piece)
            except OSError:
                pass  # the test has closed the connection

        thread = threading.Thread(target=run)
        thread.start()
        self._stack.callback(thread.join, 10)

    def poll(self, timeout_ms: int = 20) -> None:
        self.selector.poll(timeout_ms)
        for name, receive in self.selector.completed_receives.items():
            self.received[name] = bytes(receive.payload)

    def ask(self, name: str) -> None:
        """Have a request written, after which an answer is expected."""
        self.selector.send(name, NetworkSend([b"ask"]))
        self.poll_until(lambda: name in self.selector.completed_sends, 0)

    def poll_until(self, condition: Callable[[], object], timeout_ms: int = 20) -> None:
        for _ in range(3000):
            self.poll(timeout_ms)
            if condition():
                return
        raise AssertionError("it did not happen within 3000 polls")


@pytest.fixture
def peers() -> Iterator[Peers]:
    with ExitStack() as stack:
        yield Peers(stack)


def framed(contents: bytes) -> bytes:
    return len(contents).to_bytes(4, "big") + contents


def contents(seed: int, size: int = SIZE) -> bytes:
    return random.Random(seed).randbytes(size)


def cut(data: bytes, seed: int) -> list[bytes]:
    chance = random.Random(seed)
    pieces = []
    while data:
        size = chance.choice([1, 3, 1000, 40_000, 70_000, 300_000])
        pieces.append(data[:size])
        data = data[size:]
    return pieces


def test_it_arrives_whole_and_what_follows_it_too(peers: Peers) -> None:
    sock = peers.connect("a")
    expected = contents(1)
    peers.write(sock, *cut(framed(expected) + framed(b"next"), 2))
    peers.poll_until(lambda: peers.received.get("a") == expected)
    peers.poll_until(lambda: peers.received["a"] == b"next")


def test_several_connections_are_received_from_at_the_same_time(peers: Peers) -> None:
    expected = {f"c{i}": contents(i, 1_000_000 + i) for i in range(20)}
    for i, (name, whole) in enumerate(expected.items()):
        peers.write(peers.connect(name), *cut(framed(whole), i))
    peers.poll_until(lambda: len(peers.received) == len(expected))
    assert peers.received == expected


def test_polls_that_do_not_wait_and_muting_lose_nothing_of_it(peers: Peers) -> None:
    sock = peers.connect("a")
    expected = contents(3)
    peers.write(sock, *cut(framed(expected), 4))
    chance = random.Random(5)
    while "a" not in peers.received:
        peers.poll(chance.choice([0, 0, 1, 5]))
        if chance.random() < 0.3 and "a" not in peers.received:
            peers.selector.mute("a")
            peers.poll(0)
            peers.selector.unmute("a")
    assert peers.received["a"] == expected


def test_a_signal_in_a_poll_and_muting_after_it_lose_nothing_of_it(peers: Peers) -> None:
    sock = peers.connect("a")
    expected = contents(12)
    sock.sendall(framed(expected)[:100_000])
    peers.poll_until(lambda: peers.selector.channels()[0].receiving)

    def interrupt(signum: int, frame: object) -> None:
        raise InterruptedError("by a test")

    before = signal.signal(signal.SIGUSR1, interrupt)
    try:
        peers.write(sock, framed(expected)[100_000:400_000])
        timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1))
        timer.start()
        with pytest.raises(InterruptedError):
            peers.poll_until(lambda: False, 60_000)
        timer.join()
    finally:
        signal.signal(signal.SIGUSR1, before)
    peers.selector.mute("a")
    peers.poll(0)
    peers.selector.unmute("a")
    peers.write(sock, framed(expected)[400_000:])
    peers.poll_until(lambda: "a" in peers.received)
    assert peers.received["a"] == expected


def test_a_wakeup_ends_the_poll_in_the_middle_and_it_goes_on_afterwards(peers: Peers) -> None:
    sock = peers.connect("a")
    expected = contents(6)
    half = framed(expected)[: SIZE // 2]
    sock.settimeout(10)
    peers.write(sock, half)
    peers.poll_until(lambda: peers.selector.channels()[0].receiving)
    timer = threading.Timer(0.05, peers.selector.wakeup)
    timer.start()
    peers.poll(60_000)  # returns only because of the wakeup
    timer.join()
    assert "a" not in peers.received
    peers.write(sock, framed(expected)[len(half) :])
    peers.poll_until(lambda: "a" in peers.received)
    assert peers.received["a"] == expected


def test_an_answer_on_another_connection_is_not_kept_waiting(peers: Peers) -> None:
    slow = peers.connect("slow")
    slow.sendall(framed(contents(7))[:100_000])
    peers.poll_until(lambda: peers.selector.channels()[0].receiving)
    quick = peers.connect("quick")
    quick.sendall(framed(b"here"))
    peers.poll_until(lambda: "quick" in peers.received, 60_000)


@pytest.mark.parametrize("end", [socket.socket.close, reset])
def test_the_end_of_the_connection_in_the_middle_is_told(
    peers: Peers, end: Callable[[socket.socket], None]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        sock = socket.create_connection(listening.getsockname())
        ours, _ = listening.accept()
    peers.selector.register("a", ours)
    sock.sendall(framed(contents(8))[:200_000])
    peers.poll_until(lambda: peers.selector.channels()[0].receiving)
    peers.poll(5)
    end(sock)
    peers.poll_until(lambda: "a" in peers.selector.disconnected)
    assert isinstance(peers.selector.disconnected["a"], DisconnectError)
    assert peers.received == {}


def test_closing_the_channel_in_the_middle_leaves_nothing_for_the_next_socket_of_that_number(
    peers: Peers,
) -> None:
    for i in range(10):
        sock = peers.connect(f"old{i}")
        sock.sendall(framed(contents(9))[:100_000])
        peers.poll_until(lambda: peers.selector.channels()[0].receiving)
        peers.poll(2)
        peers.selector.close_channel(f"old{i}")
        sock.close()
    expected = contents(10)
    peers.write(peers.connect("new"), *cut(framed(expected), 11))
    peers.poll_until(lambda: "new" in peers.received)
    assert peers.received == {"new": expected}


@pytest.mark.parametrize("seed", range(6))
def test_answers_of_any_size_arrive_after_a_large_one(peers: Peers, seed: int) -> None:
    sock = peers.connect("a")
    chance = random.Random(seed)
    for _ in range(12):
        sizes = [chance.choice([0, 1, 3, 70_000, 100_000, 105_000, 120_000, 500_000, 2_500_000])]
        if chance.random() < 0.3:
            sizes.append(chance.choice([0, 5, 100_000]))  # behind it, and not to be taken with it
        answers = [contents(seed, size) for size in sizes]
        peers.ask("a")
        peers.write(sock, *cut(b"".join(map(framed, answers)), chance.random()))
        for expected in answers:
            peers.received.clear()
            while "a" not in peers.received:
                peers.poll(chance.choice([0, 1, 1000]))
                if chance.random() < 0.05 and "a" not in peers.received:
                    peers.selector.mute("a")
                    peers.poll(0)
                    peers.selector.unmute("a")
            assert peers.received["a"] == expected


@pytest.mark.parametrize("muted", [False, True])
def test_an_impossible_length_after_a_large_answer_ends_the_connection(peers: Peers, muted: bool) -> None:
    sock = peers.connect("a")
    peers.write(sock, framed(contents(1, 100_000)))
    peers.poll_until(lambda: "a" in peers.received)
    peers.ask("a")
    timer = threading.Timer(0.05, peers.selector.wakeup)
    timer.start()
    sock.sendall(b"\xff\xff\xff")
    peers.poll(60_000)  # the length is not known yet when it ends
    timer.join()
    sock.sendall(b"\xff")
    if muted:
        peers.selector.mute("a")
        peers.poll(0)
        peers.selector.unmute("a")
    found: list[object] = []
    peers.poll_until(lambda: found.extend(peers.selector.disconnected.values()) or found)
    assert isinstance(found[0], InvalidReceiveError)
