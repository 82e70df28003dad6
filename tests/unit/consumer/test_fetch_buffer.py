"""What is buffered, how far ahead is fetched, and what ends a wait."""

from __future__ import annotations

import pytest

from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.completed_fetch import CompletedFetch, DecodeSettings, end_of_batches
from kclient.consumer.internals.fetch_buffer import FetchBuffer
from kclient.record import MemoryRecordsBuilder
from kclient.testing.mock_time import MockTime

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


def batch(base_offset: int, count: int, **settings: int) -> bytes:
    builder = MemoryRecordsBuilder(base_offset=base_offset, **settings)
    for _ in range(count):
        builder.append(1, None, b"v")
    return builder.close()


def fetched(tp: TopicPartition, offset: int, count: int = 5) -> CompletedFetch:
    return CompletedFetch(tp, offset, memoryview(batch(offset, count)), None, DecodeSettings())


@pytest.fixture
def buffer() -> FetchBuffer:
    return FetchBuffer(MockTime())


def test_a_partition_is_fetched_behind_what_is_buffered_until_there_is_enough(buffer: FetchBuffer) -> None:
    assert buffer.next_fetch_offset(A, 3) == 3
    buffer.add([fetched(A, 3)])
    assert buffer.next_fetch_offset(A, 3) == 8
    buffer.add([fetched(A, 8)])
    assert buffer.next_fetch_offset(A, 3) is None


def test_nothing_is_fetched_ahead_when_the_whole_buffer_has_enough() -> None:
    buffer = FetchBuffer(MockTime(), max_bytes_ahead=150)
    buffer.add([fetched(A, 0), fetched(B, 0)])
    assert buffer.next_fetch_offset(A, 0) is None
    buffer.discard(B)
    assert buffer.next_fetch_offset(A, 0) == 5
    assert buffer.next_fetch_offset(B, 7) == 7


def test_nothing_is_fetched_behind_an_error(buffer: FetchBuffer) -> None:
    buffer.add([CompletedFetch.failed(A, 0, ValueError())])  # type: ignore[arg-type]
    assert buffer.next_fetch_offset(A, 0) is None


def test_a_used_up_fetch_sends_its_partition_behind_the_others(buffer: FetchBuffer) -> None:
    buffer.add([fetched(A, 0), fetched(A, 5), fetched(B, 0)])
    first = buffer.first(A)
    assert first is not None
    assert buffer.turns() == [A, B]
    buffer.pop(first)
    assert buffer.turns() == [B, A]
    buffer.pop(first)  # again, by whoever did not know
    second = buffer.first(A)
    assert second is not None
    assert second.fetch_offset == 5


def test_partitions_that_were_given_up_are_dropped(buffer: FetchBuffer) -> None:
    buffer.add([fetched(A, 0), fetched(B, 0)])
    buffer.retain({B})
    assert buffer.turns() == [B]
    assert buffer.first(A) is None


def test_there_is_word_of_room_only_where_the_io_thread_found_none(buffer: FetchBuffer) -> None:
    buffer.add([fetched(A, 0)])
    first = buffer.first(A)
    assert first is not None
    assert buffer.next_fetch_offset(A, 0) is not None  # the next one is asked for already
    buffer.pop(first)
    assert not buffer.room_made

    buffer.add([fetched(A, 5), fetched(A, 10)])
    second = buffer.first(A)
    assert second is not None
    assert buffer.next_fetch_offset(A, 5) is None
    buffer.pop(second)
    assert buffer.room_made


def test_there_is_word_of_room_after_data_was_dropped(buffer: FetchBuffer) -> None:
    buffer.discard(A)
    assert not buffer.room_made
    buffer.add([fetched(A, 0)])
    buffer.discard(A)
    assert buffer.room_made


def test_a_wait_ends_with_a_signal_given_since_the_last_look_and_not_with_old_data(
    buffer: FetchBuffer,
) -> None:
    time = MockTime(auto_tick_ms=1)
    buffer = FetchBuffer(time)
    buffer.add([fetched(A, 0)])
    seen = buffer.signals
    started = time.monotonic_ms()
    buffer.wait(seen, time.timer(50))
    assert time.monotonic_ms() - started >= 50
    buffer.wakeup()
    timer = time.timer(10_000)
    buffer.wait(seen, timer)
    assert not timer.is_expired()


def test_the_end_of_a_fetch_is_read_from_the_batch_headers() -> None:
    whole = batch(0, 3) + batch(3, 2)
    assert end_of_batches(memoryview(whole)) == 5
    assert end_of_batches(memoryview(whole + batch(5, 4)[:-1])) == 5
    assert end_of_batches(memoryview(whole[:20])) is None
    assert end_of_batches(memoryview(b"")) is None
    assert end_of_batches(memoryview(batch(7, 1, magic=1) + batch(8, 1, magic=1))) == 9


def test_malformed_headers_have_no_end() -> None:
    odd = bytearray(batch(0, 3))
    odd[8:12] = (3).to_bytes(4, "big")
    assert end_of_batches(memoryview(odd)) is None
    odd = bytearray(batch(0, 3))
    odd[23:27] = (-2).to_bytes(4, "big", signed=True)
    assert end_of_batches(memoryview(odd)) is None
