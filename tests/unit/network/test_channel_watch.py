from __future__ import annotations

import socket
from collections.abc import Iterator
from typing import Any

import pytest

from kclient._accel import EVENT_READ, EVENT_WRITE
from kclient.errors import InvalidReceiveError
from kclient.network.channel import KafkaChannel
from kclient.network.channel_watch import ChannelWatch
from kclient.network.send import NetworkSend
from kclient.network.transport import PlaintextTransport

LARGE = 200_000


class NotedPoller:
    """Watches nothing; keeps what it is told, and has received what the test says."""

    def __init__(self) -> None:
        self.watched: dict[socket.socket, int] = {}
        self.memory: list[tuple[memoryview, bool]] = []
        self.received = 0

    def register(self, sock: socket.socket, events: int, data: KafkaChannel) -> None:
        assert sock not in self.watched
        self.watched[sock] = events

    def modify(self, sock: socket.socket, events: int, data: KafkaChannel) -> None:
        assert sock in self.watched
        self.watched[sock] = events

    def unregister(self, sock: socket.socket) -> None:
        del self.watched[sock]

    def expect(self, sock: socket.socket, memory: memoryview, ahead: bool) -> None:
        self.memory.append((memory, ahead))

    def taken(self, sock: socket.socket) -> int:
        return self.received


class Watched:
    def __init__(self) -> None:
        self.poller = NotedPoller()
        poller: Any = self.poller
        self.watch = ChannelWatch(poller)
        self.sock, self.peer = socket.socketpair()
        self.sock.setblocking(False)
        self.channel = KafkaChannel("0", PlaintextTransport(self.sock), 1 << 20)

    def events(self) -> int:
        """The events watched for after an update."""
        self.watch.update(self.channel)
        return self.poller.watched.get(self.sock, 0)

    def receive(self, size: int) -> None:
        """Have a whole frame come by the channel itself."""
        self.peer.sendall(size.to_bytes(4, "big") + bytes(size))
        while self.channel.read() is None:
            pass


@pytest.fixture
def watched() -> Iterator[Watched]:
    made = Watched()
    yield made
    made.channel.close()
    made.peer.close()


def test_what_is_watched_follows_what_the_channel_wants(watched: Watched) -> None:
    assert watched.events() == EVENT_WRITE
    watched.channel.prepare()
    assert watched.events() == EVENT_READ
    watched.channel.set_send(NetworkSend([b"x"]))
    assert watched.events() == EVENT_READ | EVENT_WRITE
    watched.channel.write()
    watched.channel.mute()
    assert watched.events() == 0
    assert watched.channel.interest == 0
    watched.channel.unmute()
    assert watched.events() == EVENT_READ
    watched.watch.forget(watched.channel)
    watched.watch.forget(watched.channel)
    assert not watched.poller.watched


def test_only_after_a_large_frame_the_next_is_expected_as_a_whole(watched: Watched) -> None:
    watched.channel.prepare()
    for size, expected in ((10, 0), (LARGE, 1)):
        watched.receive(size)
        watched.watch.to_expect.append(watched.channel)
        watched.watch.expect_answers()
        assert len(watched.poller.memory) == expected
    assert watched.poller.memory[0][1]
    assert watched.channel.expecting
    assert not watched.watch.to_expect


def test_nothing_is_expected_for_a_channel_that_is_muted_or_closed(watched: Watched) -> None:
    watched.channel.prepare()
    watched.receive(LARGE)
    watched.channel.mute()
    watched.watch.to_expect.append(watched.channel)
    watched.watch.expect_answers()
    watched.channel.close()
    watched.watch.to_expect.append(watched.channel)
    watched.watch.expect_answers()
    assert not watched.poller.memory


def expecting(watched: Watched, length: bytes) -> None:
    """The Poller received the length of the next frame; then the channel is muted."""
    watched.channel.prepare()
    watched.receive(LARGE)
    watched.events()
    watched.watch.to_expect.append(watched.channel)
    watched.watch.expect_answers()
    watched.poller.memory[0][0][:4] = length
    watched.poller.received = 4
    watched.channel.mute()


def test_what_was_received_is_accounted_before_the_channel_is_left(watched: Watched) -> None:
    expecting(watched, (100).to_bytes(4, "big"))
    assert watched.events() == 0
    assert not watched.channel.expecting
    assert watched.channel.arrived == 4


def test_an_impossible_length_is_told_and_the_channel_is_left_all_the_same(watched: Watched) -> None:
    expecting(watched, b"\xff\xff\xff\xff")
    with pytest.raises(InvalidReceiveError):
        watched.watch.update(watched.channel)
    assert not watched.poller.watched
    assert watched.channel.interest == 0
