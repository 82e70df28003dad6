"""KafkaChannel: states, and authenticators that take several steps."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from kclient.errors import AuthenticationError, IllegalStateError
from kclient.network.channel import VALID_TRANSITIONS, ChannelState, KafkaChannel
from kclient.network.selector import Selector
from kclient.network.send import NetworkSend
from kclient.network.transport import PlaintextTransport


class Password:
    """Wants to read one byte that is a dot; anything else is refused."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self.complete = False
        self.wants_write = False
        self.session_lifetime_ms = 0
        self.closed = False

    def authenticate(self) -> None:
        try:
            secret = self._sock.recv(1)
        except BlockingIOError:
            return
        if secret != b".":
            raise AuthenticationError("wrong password")
        self.complete = True
        self.session_lifetime_ms += 1000

    def restart(self) -> None:
        self.complete = False

    def close(self) -> None:
        self.closed = True


class PasswordBuilder:
    def __init__(self) -> None:
        self.hosts: list[str | None] = []
        self.authenticators: list[Password] = []
        self.closed = False

    def build(
        self,
        channel_id: str,
        sock: socket.socket,
        max_receive_bytes: int,
        host: str | None = None,
        port: int = 0,
    ) -> KafkaChannel:
        self.hosts.append(host)
        self.authenticators.append(Password(sock))
        return KafkaChannel(channel_id, PlaintextTransport(sock), max_receive_bytes, self.authenticators[-1])

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def builder() -> PasswordBuilder:
    return PasswordBuilder()


@pytest.fixture
def selector(builder: PasswordBuilder) -> Iterator[Selector]:
    made = Selector(max_receive_bytes=1000, connections_max_idle_ms=-1, channel_builder=builder)
    yield made
    made.close()
    assert builder.closed


def connect(selector: Selector) -> socket.socket:
    with socket.create_server(("127.0.0.1", 0)) as server:
        selector.connect("0", "127.0.0.1", server.getsockname()[1], host="broker.example")
        return server.accept()[0]


def test_a_channel_is_connected_only_when_its_authenticator_is_done(
    selector: Selector, builder: PasswordBuilder
) -> None:
    with connect(selector) as peer:
        for _ in range(3):
            selector.poll(5)
            assert selector.connected == []
        assert not selector.is_channel_ready("0")
        assert builder.hosts == ["broker.example"]
        peer.sendall(b".\0\0\0\2ok")
        for _ in range(100):
            selector.poll(50)
            if selector.connected:
                break
        assert selector.is_channel_ready("0")
        for _ in range(100):
            if selector.completed_receives:
                break
            selector.poll(50)
        assert bytes(selector.completed_receives["0"].payload) == b"ok"


def poll_until_connected(selector: Selector) -> None:
    for _ in range(100):
        selector.poll(50)
        if selector.connected or selector.disconnected:
            return


def test_a_channel_authenticates_again_and_is_connected_again(selector: Selector) -> None:
    with connect(selector) as peer:
        assert selector.session_lifetime_ms("0") == 0
        peer.sendall(b".")
        poll_until_connected(selector)
        assert selector.session_lifetime_ms("0") == 1000
        selector.authenticate_again("0")
        selector.poll(0)
        assert not selector.is_channel_ready("0")
        peer.sendall(b".\0\0\0\2ok")
        poll_until_connected(selector)
        assert selector.connected == ["0"]
        assert selector.session_lifetime_ms("0") == 2000
        for _ in range(100):
            if selector.completed_receives:
                break
            selector.poll(50)
        assert bytes(selector.completed_receives["0"].payload) == b"ok"


def test_a_frame_that_nobody_asked_for_ends_the_channel_that_is_to_authenticate_again(
    selector: Selector,
) -> None:
    with connect(selector) as peer:
        peer.sendall(b".\0\0\0\2o")
        poll_until_connected(selector)
        channel = selector.channels()[0]
        for _ in range(100):
            if channel.receiving:
                break
            selector.poll(50)
        selector.authenticate_again("0")
        selector.poll(50)
        assert "cannot authenticate again" in str(selector.disconnected["0"])


def test_a_large_frame_that_was_expected_is_not_waited_for_while_a_channel_authenticates_again(
    builder: PasswordBuilder,
) -> None:
    selector = Selector(max_receive_bytes=1 << 20, connections_max_idle_ms=-1, channel_builder=builder)
    frame = (200_000).to_bytes(4, "big") + bytes(200_000)
    with connect(selector) as peer:
        peer.settimeout(5)
        peer.sendall(b"." + frame)
        poll_until_connected(selector)
        for _ in range(100):
            if selector.completed_receives:
                break
            selector.poll(50)
        # The answer is likely to be as large, so polls are made to receive it as a whole.
        selector.send("0", NetworkSend([b"ask"]))
        selector.poll(0)
        selector.poll(0)
        selector.authenticate_again("0")
        peer.sendall(b"." + frame)
        poll_until_connected(selector)
        assert selector.connected == ["0"]
        for _ in range(100):
            if selector.completed_receives:
                break
            selector.poll(50)
        assert len(selector.completed_receives["0"].payload) == 200_000
    selector.close()


def test_a_muted_channel_still_authenticates(selector: Selector) -> None:
    with connect(selector) as peer:
        selector.poll(50)
        selector.mute("0")
        peer.sendall(b".")
        for _ in range(100):
            selector.poll(50)
            if selector.connected:
                break
        assert selector.is_channel_ready("0")


def test_a_refused_peer_is_disconnected_with_the_reason(selector: Selector, builder: PasswordBuilder) -> None:
    with connect(selector) as peer:
        peer.sendall(b"?")
        for _ in range(100):
            selector.poll(50)
            if selector.disconnected:
                break
        assert isinstance(selector.disconnected["0"], AuthenticationError)
        assert builder.authenticators[0].closed


def test_states_move_as_the_table_says_and_no_other_way() -> None:
    for origin in ChannelState:
        for target in ChannelState:
            channel = KafkaChannel("0", PlaintextTransport(socket.socket()), 10)
            channel._state = origin
            if target in VALID_TRANSITIONS[origin]:
                channel.transition_to(target)
                assert channel.state is target
            else:
                with pytest.raises(IllegalStateError, match=f"from {origin.name} to {target.name}"):
                    channel.transition_to(target)
            channel.transport.close()


def test_closing_a_channel_lets_go_of_the_buffers_it_was_writing() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        ours.setblocking(False)
        channel = KafkaChannel("0", PlaintextTransport(ours), 10)
        channel.prepare()
        batch = bytearray(8 << 20)
        send = NetworkSend(
            [memoryview(batch)]
        )  # who sent it may hold on to it for longer than the channel does
        channel.set_send(send)
        assert channel.write() is None
        channel.close()
        channel.close()
        batch.append(1)  # BufferError while the view is held
        assert not send.completed
        assert channel.state is ChannelState.LOCAL_CLOSE


def test_a_connection_that_ends_as_soon_as_it_is_there_is_reported_as_ended_only(selector: Selector) -> None:
    with connect(selector) as peer:
        selector.poll(50)
        peer.sendall(b".")
    for _ in range(100):
        selector.poll(50)
        if selector.disconnected:
            break
    assert list(selector.disconnected) == ["0"]
    assert selector.connected == []
