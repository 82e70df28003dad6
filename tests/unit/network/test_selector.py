"""The Selector over real sockets of the loopback interface."""

from __future__ import annotations

import collections
import os
import socket
import struct
import threading
from collections.abc import Callable, Iterator

import pytest

from harness.mock_time import MockTime
from harness.network.listener import reset
from harness.network.ports import closed_port
from kclient._accel.shared import readiness
from kclient.errors import DisconnectError, ForkedClientError, IllegalStateError, InvalidReceiveError
from kclient.network.channel import ChannelState, KafkaChannel
from kclient.network.channel_builder import PlaintextChannelBuilder
from kclient.network.selector import Selector
from kclient.network.send import NetworkSend
from kclient.network.transport import PlaintextTransport
from kclient.utils.time import SYSTEM_TIME, Time


def make(*, time: Time = SYSTEM_TIME, idle_ms: int = -1, max_bytes: int = 1 << 24) -> Selector:
    return Selector(
        max_receive_bytes=max_bytes,
        connections_max_idle_ms=idle_ms,
        channel_builder=PlaintextChannelBuilder(),
        time=time,
    )


@pytest.fixture
def selector() -> Iterator[Selector]:
    made = make()
    yield made
    made.close()


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(10)
        yield listening


def frame(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


def poll_until(selector: Selector, condition: Callable[[], object]) -> None:
    for _ in range(1000):
        selector.poll(50)
        if condition():
            return
    raise AssertionError("it did not happen within 1000 polls")


def connect(selector: Selector, server: socket.socket, channel_id: str = "0") -> socket.socket:
    selector.connect(channel_id, "127.0.0.1", server.getsockname()[1])
    peer, _ = server.accept()
    peer.settimeout(10)
    poll_until(selector, lambda: channel_id in selector.connected)
    return peer


def test_selectors2_is_what_watches_the_sockets() -> None:
    watching = readiness.DefaultSelector()
    watching.close()
    assert type(watching).__module__ == "selectors2"
    assert not hasattr(collections, "Mapping")


def test_a_frame_goes_out_and_another_one_comes_back(selector: Selector, server: socket.socket) -> None:
    with connect(selector, server) as peer:
        assert selector.is_channel_ready("0")
        selector.send("0", NetworkSend([b"\0\0\0\5", memoryview(b"hello")]))
        poll_until(selector, lambda: "0" in selector.completed_sends)
        assert peer.recv(100) == b"\0\0\0\5hello"
        peer.sendall(frame(b"world"))
        poll_until(selector, lambda: selector.completed_receives)
        assert bytes(selector.completed_receives["0"].payload) == b"world"


def test_one_poll_gives_at_most_one_frame_of_each_channel(selector: Selector, server: socket.socket) -> None:
    with connect(selector, server, "a") as a, connect(selector, server, "b") as b:
        a.sendall(frame(b"1") + frame(b"2"))
        b.sendall(frame(b"3"))
        seen: dict[str, list[bytes]] = {"a": [], "b": []}

        def collect() -> bool:
            for channel_id, receive in selector.completed_receives.items():
                seen[channel_id].append(bytes(receive.payload))
            assert len(selector.completed_receives) <= 2
            return sum(map(len, seen.values())) == 3

        poll_until(selector, collect)
        assert seen == {"a": [b"1", b"2"], "b": [b"3"]}


def test_a_frame_larger_than_the_socket_takes_is_written_over_several_polls(
    selector: Selector, server: socket.socket
) -> None:
    payload = os.urandom(8 << 20)
    with connect(selector, server) as peer:
        got = bytearray()

        def read() -> None:
            while len(got) < len(payload) + 4:
                got.extend(peer.recv(1 << 20))

        reader = threading.Thread(target=read)
        selector.send("0", NetworkSend([frame(payload)]))
        selector.poll(0)
        assert not selector.completed_sends  # nobody reads yet
        reader.start()
        poll_until(selector, lambda: "0" in selector.completed_sends)
        reader.join()
        assert got == frame(payload)
        assert selector.channels()[0].interest == readiness.EVENT_READ


def test_what_is_written_before_a_poll_is_known_before_it(selector: Selector, server: socket.socket) -> None:
    with connect(selector, server) as peer:
        sent = NetworkSend([frame(b"now")])
        selector.send("0", sent)
        selector.write()
        assert selector.completed_sends == {"0": sent}
        assert peer.recv(100) == frame(b"now")
        selector.write()
        assert not selector.completed_sends
        selector.poll(0)
        assert not selector.completed_sends


def test_a_write_before_a_poll_that_fails_is_reported_by_the_poll(
    selector: Selector, server: socket.socket
) -> None:
    peer = connect(selector, server)
    selector.mute("0")  # so that no reading finds it out
    reset(peer)
    selector.send("0", NetworkSend([frame(b"lost")]))
    selector.write()
    assert not selector.completed_sends
    selector.poll(0)
    assert "0" in selector.disconnected


def test_a_second_send_while_one_is_under_way_is_refused(selector: Selector, server: socket.socket) -> None:
    with connect(selector, server):
        selector.send("0", NetworkSend([b"first"]))
        with pytest.raises(IllegalStateError, match="has a send under way"):
            selector.send("0", NetworkSend([b"second"]))


def test_nothing_can_be_sent_to_an_unknown_channel(selector: Selector) -> None:
    with pytest.raises(IllegalStateError, match="no connection 7"):
        selector.send("7", NetworkSend([b"x"]))


def test_an_id_can_be_used_once_at_a_time(selector: Selector, server: socket.socket) -> None:
    with connect(selector, server):
        with pytest.raises(IllegalStateError, match="connection 0 already"):
            selector.connect("0", "127.0.0.1", 1)
        selector.close_channel("0")
        assert not selector.is_channel_ready("0")
    connect(selector, server).close()


def test_a_refused_connection_is_reported_as_disconnected(selector: Selector) -> None:
    selector.connect("0", "127.0.0.1", closed_port())
    poll_until(selector, lambda: "0" in selector.disconnected)
    assert isinstance(selector.disconnected["0"], DisconnectError)
    assert "refused" in str(selector.disconnected["0"])


def test_a_peer_that_closes_is_reported_with_what_was_under_way(
    selector: Selector, server: socket.socket
) -> None:
    with connect(selector, server) as peer:
        peer.sendall(b"\0\0\0\x09half")
    poll_until(selector, lambda: "0" in selector.disconnected)
    assert "in the middle of a message" in str(selector.disconnected["0"])
    assert not selector.completed_receives


def test_a_whole_frame_before_the_end_of_the_stream_is_still_delivered(
    selector: Selector, server: socket.socket
) -> None:
    with connect(selector, server) as peer:
        peer.sendall(frame(b"last"))
    poll_until(selector, lambda: selector.completed_receives)
    assert bytes(selector.completed_receives["0"].payload) == b"last"
    if not selector.disconnected:
        poll_until(selector, lambda: selector.disconnected)


def test_a_reset_is_a_disconnection(selector: Selector, server: socket.socket) -> None:
    reset(connect(selector, server))
    poll_until(selector, lambda: "0" in selector.disconnected)
    assert str(selector.disconnected["0"]) == "Connection reset by peer"
    assert selector.channels() == []


def test_an_impossible_length_closes_the_connection_with_its_reason(
    selector: Selector, server: socket.socket
) -> None:
    with connect(selector, server) as peer:
        peer.sendall(struct.pack(">i", -1))
        poll_until(selector, lambda: "0" in selector.disconnected)
        assert isinstance(selector.disconnected["0"], InvalidReceiveError)
        assert peer.recv(1) == b""


def test_a_muted_channel_is_not_read_until_it_is_unmuted(selector: Selector, server: socket.socket) -> None:
    with connect(selector, server) as peer:
        selector.mute("0")
        peer.sendall(frame(b"patience"))
        for _ in range(5):
            selector.poll(5)
            assert not selector.completed_receives
        selector.send("0", NetworkSend([b"still writes"]))
        poll_until(selector, lambda: "0" in selector.completed_sends)
        selector.unmute("0")
        poll_until(selector, lambda: selector.completed_receives)
        selector.mute("0")
        assert selector.channels()[0].muted


def test_accepted_sockets_are_served_by_register(selector: Selector, server: socket.socket) -> None:
    with socket.create_connection(server.getsockname()) as peer:
        accepted, _ = server.accept()
        channel = selector.register("in-0", accepted)
        assert channel.ready
        assert channel.peer == f"127.0.0.1:{peer.getsockname()[1]}"
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        peer.sendall(frame(b"request"))
        poll_until(selector, lambda: selector.completed_receives)
        selector.send("in-0", NetworkSend([frame(b"response")]))
        poll_until(selector, lambda: selector.completed_sends)
        peer.settimeout(10)
        assert peer.recv(100) == frame(b"response")


def test_an_accepted_socket_that_is_dead_already_is_reported(
    selector: Selector, server: socket.socket
) -> None:
    peer = socket.create_connection(server.getsockname())
    accepted, _ = server.accept()
    reset(peer)
    selector.register("in-0", accepted)
    poll_until(selector, lambda: "in-0" in selector.disconnected)


def test_the_longest_idle_connections_are_closed_and_busy_ones_are_not(server: socket.socket) -> None:
    time = MockTime()
    selector = make(time=time, idle_ms=1000)
    with connect(selector, server, "idle") as idle, connect(selector, server, "busy") as busy:
        time.advance(900)
        busy.sendall(frame(b"alive"))
        poll_until(selector, lambda: selector.completed_receives)
        time.advance(200)
        selector.poll(0)
        assert list(selector.disconnected) == ["idle"]
        assert "connections.max.idle.ms" in str(selector.disconnected["idle"])
        assert idle.recv(1) == b""
        assert selector.is_channel_ready("busy")
    selector.close()


class Greedy(PlaintextTransport):
    """Takes all there is from the socket, as TLS does, so that no event tells of what it still holds."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self.held = bytearray()

    @property
    def has_buffered_bytes(self) -> bool:  # type: ignore[override]
        return bool(self.held)

    def recv_into(self, buffer: memoryview) -> int:
        try:
            self.held += self.sock.recv(1 << 16)
        except BlockingIOError:
            pass
        count = min(len(buffer), len(self.held))
        buffer[:count] = self.held[:count]
        del self.held[:count]
        return count


class GreedyBuilder(PlaintextChannelBuilder):
    def build(
        self,
        channel_id: str,
        sock: socket.socket,
        max_receive_bytes: int,
        host: str | None = None,
        port: int = 0,
    ) -> KafkaChannel:
        return KafkaChannel(channel_id, Greedy(sock), max_receive_bytes)


@pytest.mark.parametrize("mute_between", [False, True])
def test_frames_that_a_transport_holds_come_one_a_poll_and_without_waiting(
    server: socket.socket, mute_between: bool
) -> None:
    selector = Selector(max_receive_bytes=1000, connections_max_idle_ms=-1, channel_builder=GreedyBuilder())
    with connect(selector, server) as peer:
        peer.sendall(b"".join(frame(bytes([number])) for number in range(20)))
        poll_until(selector, lambda: selector.completed_receives)
        seen = [bytes(selector.completed_receives["0"].payload)]
        while len(seen) < 20:
            if mute_between:
                selector.mute("0")
                selector.poll(0)
                assert not selector.completed_receives
                selector.unmute("0")
            started = SYSTEM_TIME.monotonic_ms()
            selector.poll(60_000)
            assert SYSTEM_TIME.monotonic_ms() - started < 30_000
            seen += [bytes(receive.payload) for receive in selector.completed_receives.values()]
        assert seen == [bytes([number]) for number in range(20)]
    selector.close()


def test_a_wakeup_from_another_thread_ends_a_poll(selector: Selector) -> None:
    threading.Timer(0.02, selector.wakeup).start()
    started = SYSTEM_TIME.monotonic_ms()
    selector.poll(60_000)
    assert SYSTEM_TIME.monotonic_ms() - started < 30_000


def test_wakeups_before_a_poll_make_one_poll_return_and_no_more(selector: Selector) -> None:
    for _ in range(100_000):
        selector.wakeup()
    selector.poll(60_000)
    started = SYSTEM_TIME.monotonic_ms()
    selector.poll(30)
    assert SYSTEM_TIME.monotonic_ms() - started >= 29  # it did not spin on a pipe that was not drained


def test_no_wakeup_is_lost_between_two_threads(selector: Selector) -> None:
    rounds = 2000
    seen = threading.Semaphore(0)
    published = 0

    def wake() -> None:
        nonlocal published
        for _ in range(rounds):
            published += 1
            selector.wakeup()
            assert seen.acquire(timeout=20)

    waker = threading.Thread(target=wake)
    waker.start()
    taken = 0
    while taken < rounds:
        selector.poll(20_000)
        while taken < published:
            taken += 1
            seen.release()
    waker.join()


def test_closing_twice_and_waking_what_is_closed_do_nothing(server: socket.socket) -> None:
    selector = make()
    peer = connect(selector, server)
    (channel,) = selector.channels()
    selector.close()
    selector.close()
    selector.wakeup()
    assert peer.recv(1) == b""
    peer.close()
    assert channel.state is ChannelState.LOCAL_CLOSE
    with pytest.raises(IllegalStateError):
        selector.poll(0)


def test_a_channel_closed_here_is_not_reported(selector: Selector, server: socket.socket) -> None:
    with connect(selector, server) as peer:
        peer.sendall(frame(b"unread"))
        poll_until(selector, lambda: selector.completed_receives)
        selector.close_channel("0")
        assert not selector.completed_receives
        selector.poll(0)
        assert not selector.disconnected


def test_a_forked_child_can_do_nothing_to_the_parents_connections(
    selector: Selector, server: socket.socket
) -> None:
    with connect(selector, server) as peer:
        child = os.fork()
        if child == 0:
            try:
                selector.close()
                selector.close_channel("0")
                selector.wakeup()
                with pytest.raises(ForkedClientError):
                    selector.poll(0)
                with pytest.raises(ForkedClientError):
                    selector.connect("1", "127.0.0.1", 1)
                os._exit(0)
            except BaseException:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        peer.sendall(frame(b"still here"))
        poll_until(selector, lambda: selector.completed_receives)
        selector.send("0", NetworkSend([b"me too"]))
        poll_until(selector, lambda: selector.completed_sends)
        assert peer.recv(100) == b"me too"
