"""Both Lanes send the same requests, take the expected answer from the socket, and leave every other one there."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import wait_until
from kclient._accel.readiness import EVENT_READ
from kclient.common.topic_partition import TopicPartition
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.header import parse_request
from kclient.protocol.messages.produce import ProduceRequest
from kclient.record import iter_batches
from lane_bed import BODIES, CORRELATION_ID, TOPIC_ID, LaneBed, answer, batch_of, new_lane
from poller_bed import LONG_MS

READABLE = [("data", EVENT_READ)]
VERSIONS = range(ApiKeys.PRODUCE.min_version, ApiKeys.PRODUCE.max_version + 1)


@pytest.fixture(params=BODIES)
def bed(request: Any) -> Iterator[LaneBed]:
    with LaneBed(request.param) as made:
        yield made


def send(bed: LaneBed, **options: Any) -> Any:
    """Send a batch; its result."""
    builder = batch_of(**options)
    assert bed.lane.send(builder)
    return builder.result


def answered(bed: LaneBed, frame: bytes) -> Any:
    """Send a batch, answer it with `frame`, and wait for it with somebody waiting from before that; the outcome."""
    waiter = bed.in_background(bed.lane.wait, send(bed), 20)
    bed.take()
    until_somebody_waits(bed)
    bed.theirs.sendall(frame)
    return waiter.outcome()


def until_somebody_waits(bed: LaneBed) -> None:
    wait_until(lambda: bed.lane.waiting, what="somebody who waits")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("size", [0, 1, 50, 66, 67, 200, 5000, 16300, 20000])
def test_it_sends_what_the_codec_reads_as_the_request(version: int, size: int) -> None:
    frames = []
    for body in BODIES:
        with LaneBed(body, new_lane(body, version)) as bed:
            bed.start()
            send(bed, value=b"v" * size)
            frames.append(bed.take())
            header, message = parse_request(frames[-1][4:])
        assert header.api_version == version
        assert header.correlation_id == CORRELATION_ID + 1
        assert header.client_id == "client"
        assert isinstance(message, ProduceRequest)
        assert (message.acks, message.timeout_ms, message.transactional_id) == (-1, 1234, None)
        (topic,) = message.topic_data
        assert (topic.topic_id == TOPIC_ID) == (version >= 13)
        assert (topic.name == "topic") == (version < 13)
        (partition,) = topic.partition_data
        assert partition.index == 3
        (batch,) = iter_batches(partition.records or b"")
        assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (9, 2, 100)
        assert [record.value for record in batch.records()] == [b"v" * size]
    assert frames[0] == frames[1]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("body", BODIES)
def test_it_takes_the_answer_of_every_version_and_the_poll_goes_on(body: str, version: int) -> None:
    with LaneBed(body, new_lane(body, version)) as bed:
        bed.start()
        assert answered(bed, answer(version, log_append_time_ms=12)) == (77, 12)
        assert bed.waits
        assert bed.lane.answered == 1


def test_topics_with_the_longest_names_and_without_ids_are_answered_too() -> None:
    tp = TopicPartition("n" * 249, 2**31 - 1)
    for body in BODIES:
        with LaneBed(body, new_lane(body, 12, tp, None)) as bed:
            bed.start()
            assert answered(bed, answer(12, tp=tp, topic_id=None)) == (77, -1)


def test_one_after_the_other_they_have_the_numbers_that_follow(bed: LaneBed) -> None:
    bed.start(producer=(9, 2, 2**31 - 2))
    for number in range(4):
        builder = batch_of()
        assert bed.lane.send(builder)
        assert not bed.lane.open
        assert not bed.lane.send(batch_of()), "one at a time"
        header, message = bed.request()
        (batch,) = iter_batches(message.topic_data[0].partition_data[0].records)
        assert header.correlation_id == CORRELATION_ID + 1 + number
        assert batch.base_sequence == (2**31 - 2 + number) % 2**31
        waiter = bed.in_background(bed.lane.wait, builder.result, 20)
        until_somebody_waits(bed)
        bed.theirs.sendall(answer(correlation_id=CORRELATION_ID + 1 + number, base_offset=number))
        assert waiter.outcome() == (number, -1)
        assert bed.lane.pending is builder
        bed.lane.taken(builder.result)
        assert bed.lane.open
        assert bed.lane.pending is None
    assert bed.waits
    assert bed.lane.answered == 4
    assert bed.lane.total_bytes == 4 * bed.lane.largest_bytes > 4 * 61
    assert bed.lane.latency_ms >= bed.lane.longest_ms >= 0


def test_without_idempotence_batches_have_no_sequence(bed: LaneBed) -> None:
    bed.start(producer=(-1, -1, -1))
    send(bed)
    (batch,) = iter_batches(bed.request()[1].topic_data[0].partition_data[0].records)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)


def test_an_answer_that_nobody_waits_for_ends_the_poll_and_stays_in_the_socket(bed: LaneBed) -> None:
    bed.start()
    result = send(bed)
    bed.theirs.sendall(answer())
    assert bed.ended() == READABLE
    builder, taken = bed.lane.settle()
    assert builder.result is result
    assert taken is None
    assert bed.ours.recv(1000) == answer()
    assert bed.lane.wait(result, 20) is None, "who comes later does not wait"


UNEXPECTED = {
    "an error": answer(error_code=6, base_offset=-1),
    "an error with an offset": answer(error_code=6),
    "another request's": answer(correlation_id=CORRELATION_ID),
    "throttled": answer(throttle_time_ms=1),
    "another partition": answer(index=4),
    "another topic": answer(topic_id=None),
    "no offset": answer(base_offset=-1),
    "a message": answer(error_message="odd"),
    "half of it": answer()[:20],
    "all but a byte": answer()[:-1],
    "more than it": answer() + b"x",
    "twice": answer() * 2,
    "nothing but a length": answer()[:4],
}


@pytest.mark.parametrize("what", UNEXPECTED)
def test_what_is_not_the_expected_answer_is_left_for_others_to_read(bed: LaneBed, what: str) -> None:
    bed.start()
    result = send(bed)
    waiter = bed.in_background(bed.lane.wait, result, 20)
    until_somebody_waits(bed)
    bed.theirs.sendall(UNEXPECTED[what])
    assert bed.ended() == READABLE
    builder, taken = bed.lane.settle()
    assert builder.result is result
    assert taken is None
    assert waiter.outcome() is None
    assert bed.lane.answered == 0
    assert bed.ours.recv(1000) == UNEXPECTED[what]


def test_a_peer_that_hangs_up_ends_the_poll(bed: LaneBed) -> None:
    bed.start()
    waiter = bed.in_background(bed.lane.wait, send(bed), 20)
    until_somebody_waits(bed)
    bed.take()
    bed.theirs.shutdown(socket.SHUT_RDWR)
    assert bed.ended() == READABLE
    assert bed.lane.settle()[1] is None
    assert waiter.outcome() is None


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_both_bodies_take_the_same_answers(data: st.DataObject) -> None:
    frame = bytearray(answer(log_append_time_ms=data.draw(st.integers(-1, 2**63 - 1)), base_offset=3))
    for _ in range(data.draw(st.integers(0, 2))):
        at = data.draw(st.integers(0, len(frame) - 1))
        frame[at] = data.draw(st.integers(0, 255))
    frame = frame[: data.draw(st.integers(max(len(frame) - 2, 1), len(frame)))]
    outcomes = []
    for body in BODIES:
        with LaneBed(body) as bed:
            bed.start()
            waiter = bed.in_background(bed.lane.wait, send(bed), 20)
            until_somebody_waits(bed)
            bed.theirs.sendall(frame)
            wait_until(lambda: not bed.waits or not waiter.is_alive())  # noqa: B023
            if bed.waits:
                outcomes.append((waiter.outcome(), b""))
            else:
                assert bed.lane.settle()[1] is None
                outcomes.append((waiter.outcome(), bed.ours.recv(1000)))
    assert outcomes[0] == outcomes[1]
    assert outcomes[0][1] in (b"", bytes(frame))


def test_it_is_open_only_while_a_poll_waits(bed: LaneBed) -> None:
    assert not bed.lane.open
    assert not bed.lane.send(batch_of())
    bed.start()
    bed.poller.wake()
    assert not bed.lane.open, "from the moment on that the poll has to end"
    assert bed.ended() == []
    assert not bed.lane.send(batch_of())
    assert bed.lane.settle() == (None, None)
    assert bed.poller.poll(0) == []
    bed.start(timeout_ms=0)
    assert bed.ended() == []
    assert not bed.lane.send(batch_of()), "a poll that only looks does not wait"


def test_what_was_sent_before_a_wake_is_to_be_settled(bed: LaneBed) -> None:
    bed.start()
    result = send(bed)
    waiter = bed.in_background(bed.lane.wait, result)
    until_somebody_waits(bed)
    bed.poller.wake()
    assert bed.ended() == []
    with pytest.raises(ValueError, match="in use"):
        bed.lane.prepare(1, 1, 1)
    with pytest.raises(ValueError, match="in use"):
        bed.poller.lend(bed.ours, bed.lane, 0, LONG_MS)
    builder, taken = bed.lane.settle()
    assert builder.result is result
    assert taken is None
    assert waiter.outcome() is None


def test_an_answer_that_was_not_fetched_yet_is_settled_with_it(bed: LaneBed) -> None:
    bed.start()
    result = send(bed)
    waiter = bed.in_background(bed.lane.wait, result, 20)
    until_somebody_waits(bed)
    bed.theirs.sendall(answer())
    assert waiter.outcome() == (77, -1)
    assert bed.lane.wait(result, 20) == (77, -1), "until it is taken, it can be had again"
    assert not bed.lane.send(batch_of())
    bed.poller.wake()
    bed.ended()
    builder, taken = bed.lane.settle()
    assert builder.result is result
    assert taken == (77, -1)
    bed.lane.taken(result)
    assert not bed.lane.open
    assert bed.lane.wait(result, 20) is None


def test_all_who_wait_are_told(bed: LaneBed) -> None:
    bed.start()
    result = send(bed)
    waiters = [bed.in_background(bed.lane.wait, result, 20) for _ in range(5)]
    wait_until(lambda: bed.lane.waiting == 5)
    bed.theirs.sendall(answer())
    assert [waiter.outcome() for waiter in waiters] == [(77, -1)] * 5
    bed.lane.taken(result)
    assert bed.lane.send(batch_of())


def test_waiting_ends_with_its_time_and_not_at_all_for_others(bed: LaneBed) -> None:
    bed.start()
    result = send(bed)
    assert bed.lane.wait(result, 0) is None
    assert bed.lane.wait(result, 0.01) is None
    assert bed.lane.wait(batch_of().result) is None
    assert bed.lane.waiting == 0


def test_after_a_while_the_poll_ends_so_that_its_owner_sees_what_was_sent(bed: LaneBed) -> None:
    bed.start(patrol_ms=1000)
    assert answered(bed, answer()) == (77, -1)
    assert bed.ended() == []
    bed.lane.settle()
    bed.start(patrol_ms=1000)
    result = send(bed)
    assert bed.ended() == []
    assert bed.lane.settle()[0].result is result


def test_a_lane_that_nobody_uses_is_shut_and_the_poll_goes_on_without(bed: LaneBed) -> None:
    bed.start(patrol_ms=1000)
    wait_until(lambda: not bed.lane.open, what="a lane that is shut")
    assert bed.waits
    bed.poller.wake()
    assert bed.ended() == []


def test_the_time_of_a_poll_is_kept_beside_a_lane(bed: LaneBed) -> None:
    bed.start(timeout_ms=250, patrol_ms=100)
    assert bed.ended() == []
    bed.lane.settle()
    bed.start(timeout_ms=20)
    assert bed.ended() == []


def test_a_poll_that_was_to_end_before_it_began_to_wait_opens_no_lane() -> None:
    lane = new_lane("python")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        lane.lend(ours, CORRELATION_ID, 100)
        lane.end()
        lane.begin()
        assert not lane.open
        lane.lend(ours, CORRELATION_ID, 100)
        lane.begin()
        assert lane.open


def test_an_interrupted_poll_does_not_open_its_lane_again() -> None:
    # It was shut when the interrupt came, and the poll may have been woken since. The poll itself goes on.
    before = signal.signal(signal.SIGUSR1, lambda *_: None)
    try:
        with LaneBed("c") as bed:
            bed.start()
            ident = bed.ident

            def is_shut_by_a_signal() -> bool:
                signal.pthread_kill(ident, signal.SIGUSR1)
                return not bed.lane.open

            wait_until(is_shut_by_a_signal, what="a lane that is shut")
            for _ in range(50):
                time.sleep(0.001)
                assert is_shut_by_a_signal()
            assert not bed.lane.send(batch_of())
            assert bed.waits
            bed.poller.wake()
            assert bed.ended() == []
    finally:
        signal.signal(signal.SIGUSR1, before)


def test_other_sockets_end_the_poll(bed: LaneBed) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        bed.poller.register(ours, EVENT_READ, "other")
        bed.start()
        theirs.send(b"x")
        assert bed.ended() == [("other", EVENT_READ)]
        assert not bed.lane.open


def test_nothing_is_sent_when_the_socket_takes_nothing_and_the_lane_stays_open(bed: LaneBed) -> None:
    try:
        while True:
            bed.ours.send(b"x" * 65536)
    except BlockingIOError:
        pass
    bed.start()
    for _ in range(3):
        assert not bed.lane.send(batch_of())
        assert bed.lane.open
        assert bed.lane.pending is None
    bed.poller.wake()
    bed.ended()
    assert bed.lane.settle() == (None, None)
    assert (bed.lane.answered, bed.lane.total_bytes) == (0, 0)


def test_a_request_that_is_written_in_part_says_so(bed: LaneBed) -> None:
    bed.ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    bed.start()
    assert bed.lane.send(batch_of(value=b"x" * 1_000_000))
    assert bed.lane.partly
    bed.poller.wake()
    bed.ended()
    assert bed.lane.settle()[0] is not None


def test_a_batch_that_cannot_be_closed_leaves_the_lane_open(bed: LaneBed) -> None:
    bed.start()
    closed = batch_of()
    closed.close(1, 1, 1, 0)
    with pytest.raises(ValueError, match="closed already"):
        bed.lane.send(closed)
    assert bed.lane.open
    send(bed)


def test_sums_begin_again_with_every_lending(bed: LaneBed) -> None:
    bed.start()
    answered(bed, answer())
    bed.poller.wake()
    bed.ended()
    bed.lane.settle()
    assert bed.lane.answered == 1
    bed.start()
    assert (bed.lane.answered, bed.lane.total_bytes, bed.lane.largest_bytes) == (0, 0, 0)
    assert (bed.lane.latency_ms, bed.lane.longest_ms, bed.lane.partly, bed.lane.pending) == (
        0,
        0,
        False,
        None,
    )


@pytest.mark.parametrize("body", BODIES)
def test_places_outside_of_the_answer_and_answers_that_are_too_long_are_refused(body: str) -> None:
    lane = BODIES[body][0]
    head, frame = bytes(20), bytes(40)
    assert not lane(head, b"", True, frame, (8, 16, 32)).open
    for places in ((7, 16, 24), (8, 33, 24), (8, 16, -1), (8, 16, 2**40)):
        with pytest.raises(ValueError, match="answer"):
            lane(head, b"", True, frame, places)
    with pytest.raises(ValueError, match="answer"):
        lane(head, b"", True, bytes(513), (8, 16, 24))
    with pytest.raises(ValueError, match="answer"):
        lane(head, b"", True, bytes(7), (8, 16, 24))
    with pytest.raises(ValueError, match="request"):
        lane(bytes(11), b"", True, frame, (8, 16, 24))


@pytest.mark.parametrize("body", BODIES)
def test_a_socket_that_is_not_watched_cannot_be_lent_to(body: str) -> None:
    with LaneBed(body) as bed:
        bed.poller.unregister(bed.ours)
        with pytest.raises(KeyError):
            bed.poller.lend(bed.ours, bed.lane, 0, LONG_MS)


def test_a_poll_without_end_is_kept_too(bed: LaneBed) -> None:
    bed.start(timeout_ms=-1)
    assert answered(bed, answer()) == (77, -1)
    bed.poller.wake()
    assert bed.ended() == []


def test_threads_that_send_at_once_share_the_lane_without_harm(bed: LaneBed) -> None:
    bed.start(timeout_ms=LONG_MS)
    sent = [bed.in_background(bed.lane.send, batch_of()) for _ in range(20)]
    assert sum(each.outcome() for each in sent) == 1
    bed.take()
