"""What follows an answer is written as soon as that is there: by the poll itself, or by the Selector after it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from fetched_batches import batch
from kclient._accel import Poller, PreparedFetch
from kclient.common.uuid import Uuid
from kclient.network.channel_builder import PlaintextChannelBuilder
from kclient.network.selector import Selector
from kclient.network.send import NetworkSend
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.header import response_buffers
from kclient.protocol.messages import fetch

TOPIC_ID = Uuid(b"t" * 16)
LARGE, SMALL = 10_000, 2
REQUEST_BYTES = 60


def answer(correlation_id: int, base: int, count: int) -> bytes:
    """A frame with so many records, from `base` on."""
    data = fetch.PartitionData(partition_index=0, high_watermark=9, records=batch(base, count))
    topic = fetch.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[data])
    response = fetch.FetchResponse(session_id=1, responses=[topic])
    return b"".join(response_buffers(response, ApiKeys.FETCH, 18, correlation_id))


def prepared(answered: int, offset: int = 0, size: int = REQUEST_BYTES) -> PreparedFetch:
    made = PreparedFetch(bytes(size), 20, [30], [(TOPIC_ID.bytes, 0)], bytearray(1))
    made.arm(answered, 1, answered + 1, answered + 1, [offset])
    return made


class Bed:
    """A Selector with one connection, and its other end."""

    def __init__(self, stack: ExitStack) -> None:
        self.selector = Selector(
            max_receive_bytes=1 << 24, connections_max_idle_ms=-1, channel_builder=PlaintextChannelBuilder()
        )
        stack.callback(self.selector.close)
        self.theirs, ours = socket.socketpair()
        stack.enter_context(self.theirs)
        self.theirs.settimeout(20)
        self.selector.register("a", ours)
        self.received: list[bytes] = []
        self.selector.poll(0)

    def ask(self) -> None:
        self.selector.send("a", NetworkSend([b"ask"]))
        self.selector.poll(0)
        assert self.take(3) == b"ask"

    def take(self, size: int) -> bytes:
        """What was written to the other end."""
        data = b""
        while len(data) < size:
            data += self.theirs.recv(size - len(data))
        return data

    def nothing_written(self) -> bool:
        self.theirs.setblocking(False)
        try:
            return not self.theirs.recv(1)
        except BlockingIOError:
            return True
        finally:
            self.theirs.settimeout(20)

    def reply(self, frame: bytes) -> None:
        """Send `frame` to the Selector, and poll until it is there."""
        thread = threading.Thread(target=self.theirs.sendall, args=(frame,))
        thread.start()
        for _ in range(1000):
            self.selector.poll(1000)
            if self.selector.completed_receives:
                break
        thread.join(20)
        self.received.append(bytes(self.selector.completed_receives["a"].payload))
        assert self.received[-1] == frame[4:]


@pytest.fixture
def bed() -> Iterator[Bed]:
    with ExitStack() as stack:
        yield Bed(stack)


def offset_in(request: bytes) -> int:
    return int.from_bytes(request[30:38], "big")


@pytest.mark.parametrize("count", [SMALL, LARGE])
def test_it_is_written_after_its_answer_and_reported_with_it(bed: Bed, count: int) -> None:
    bed.ask()
    bed.reply(answer(1, 0, count))  # from now on the next large one is expected as a whole
    for number in range(2, 6):
        bed.selector.prepare("a", prepared(number, offset=(number - 2) * count))
        if number == 2:
            bed.ask()
        bed.reply(answer(number, (number - 2) * count, count))
        assert bed.selector.followed["a"].remaining == 0
        assert "a" in bed.selector.completed_sends
        assert offset_in(bed.take(REQUEST_BYTES)) == (number - 1) * count
    bed.selector.poll(0)
    assert not bed.selector.followed


def test_a_poll_that_receives_the_frame_as_a_whole_writes_it_itself(bed: Bed) -> None:
    bed.ask()
    bed.reply(answer(1, 0, LARGE))
    follower = prepared(2)
    bed.selector.prepare("a", follower)
    bed.ask()
    bed.reply(answer(2, 0, LARGE))
    assert follower.followed
    assert follower.written == (REQUEST_BYTES if Poller.RECEIVES else 0)


@pytest.mark.parametrize("count", [SMALL, LARGE])
def test_other_answers_before_it_are_not_followed_and_it_waits_for_its_own(bed: Bed, count: int) -> None:
    bed.ask()
    bed.reply(answer(1, 0, count))
    bed.selector.prepare("a", prepared(3))
    bed.ask()
    bed.reply(answer(2, 0, count))
    assert not bed.selector.followed
    assert bed.nothing_written()
    bed.ask()
    bed.reply(answer(3, 0, count))
    assert "a" in bed.selector.followed
    assert offset_in(bed.take(REQUEST_BYTES)) == count


@pytest.mark.parametrize("count", [SMALL, LARGE])
def test_it_is_not_written_into_the_middle_of_another_request(bed: Bed, count: int) -> None:
    bed.ask()
    bed.reply(answer(1, 0, count))
    bed.selector.prepare("a", prepared(2))
    bed.ask()
    much = b"m" * 10_000_000
    bed.selector.send("a", NetworkSend([much]))
    bed.selector.poll(0)
    assert "a" not in bed.selector.completed_sends
    bed.reply(answer(2, 0, count))
    assert not bed.selector.followed
    taken: list[bytes] = []
    thread = threading.Thread(target=lambda: taken.append(bed.take(len(much))))
    thread.start()
    while "a" not in bed.selector.completed_sends:
        bed.selector.poll(1000)
    thread.join(20)
    assert taken == [much]
    assert bed.nothing_written()


@pytest.mark.parametrize("count", [SMALL, LARGE])
def test_what_the_socket_does_not_take_at_once_is_written_by_the_next_polls(bed: Bed, count: int) -> None:
    bed.ask()
    bed.reply(answer(1, 0, count))
    size = 10_000_000
    bed.selector.prepare("a", prepared(2, size=size))
    bed.ask()
    bed.reply(answer(2, 0, count))
    send = bed.selector.followed["a"]
    assert send.remaining
    taken: list[bytes] = []
    thread = threading.Thread(target=lambda: taken.append(bed.take(size)))
    thread.start()
    while send.remaining:
        bed.selector.poll(1000)
    thread.join(20)
    assert len(taken[0]) == size
    assert offset_in(taken[0]) == count


def test_a_connection_that_ends_after_the_answer_has_written_it_or_tells_of_the_end(bed: Bed) -> None:
    bed.ask()
    bed.reply(answer(1, 0, SMALL))
    bed.selector.prepare("a", prepared(2))
    bed.ask()
    bed.theirs.sendall(answer(2, 0, SMALL))
    bed.theirs.close()
    bed.selector.poll(1000)
    assert bed.selector.completed_receives
    assert "a" in bed.selector.followed
    for _ in range(100):
        if "a" in bed.selector.disconnected:
            return
        bed.selector.poll(100)
    raise AssertionError("nobody was told of the end")
