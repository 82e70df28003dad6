"""The buffer of fetches: how far ahead is fetched, and what ends a wait."""

from __future__ import annotations

import weakref

import pytest

from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.completed_fetch import RECORDS, CompletedFetch, DecodeSettings, end_of_batches
from kclient.consumer.internals.fetch_buffer import FetchBuffer
from kclient.record import MemoryRecordsBuilder

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


def batch(base_offset: int, count: int, **settings: int) -> bytes:
    builder = MemoryRecordsBuilder(base_offset=base_offset, **settings)
    for _ in range(count):
        builder.append(1, None, b"v")
    return builder.close()


def fetched(tp: TopicPartition, offset: int, count: int = 5) -> CompletedFetch:
    return CompletedFetch(tp, offset, memoryview(batch(offset, count)), None, DecodeSettings())


class Buffer(FetchBuffer):
    """Counts how often it wakes either side."""

    def __init__(self, max_bytes_ahead: int = 2**31 - 1) -> None:
        self.notified = self.woken = 0
        super().__init__(self.count_notified, self.count_woken, max_bytes_ahead)

    def count_notified(self) -> None:
        self.notified += 1

    def count_woken(self) -> None:
        self.woken += 1

    def look(self, tp: TopicPartition, position: int) -> int | None:
        """A round of the I/O thread, which sees `tp` alone."""
        self.begin_round()
        offset = self.next_fetch_offset(tp, position)
        self.end_round(room_wanted=offset is None)
        return offset

    def order(self) -> list[TopicPartition]:
        return [fetch.tp for fetch in self.turns()]


@pytest.fixture
def buffer() -> Buffer:
    return Buffer()


def test_a_partition_is_fetched_behind_what_is_buffered_until_there_is_enough(buffer: Buffer) -> None:
    assert buffer.look(A, 3) == 3
    buffer.add([fetched(A, 3)])
    assert buffer.look(A, 3) == 8
    buffer.add([fetched(A, 8)])
    assert buffer.look(A, 3) is None


def test_nothing_is_fetched_ahead_when_the_whole_buffer_has_enough() -> None:
    buffer = Buffer(max_bytes_ahead=150)
    buffer.add([fetched(A, 0), fetched(B, 0)])
    assert buffer.look(A, 0) is None
    buffer.discard(B)
    assert buffer.look(A, 0) == 5
    assert buffer.look(B, 7) == 7


def test_nothing_is_fetched_behind_an_error(buffer: Buffer) -> None:
    buffer.add([CompletedFetch.failed(A, 0, ValueError())])  # type: ignore[arg-type]
    assert buffer.look(A, 0) is None


def test_a_used_up_fetch_sends_its_partition_behind_the_others(buffer: Buffer) -> None:
    buffer.add([fetched(A, 0), fetched(A, 5), fetched(B, 0)])
    first = buffer.first(A)
    assert first is not None
    assert buffer.order() == [A, B]
    buffer.use_up(first)
    assert buffer.order() == [B, A]
    buffer.use_up(first)  # again, by whoever did not know
    second = buffer.first(A)
    assert second is not None
    assert second.fetch_offset == 5


def test_partitions_that_were_given_up_are_dropped(buffer: Buffer) -> None:
    buffer.add([fetched(A, 0), fetched(B, 0)])
    buffer.retain({B})
    assert buffer.order() == [B]
    assert buffer.first(A) is None


def test_there_is_word_of_room_only_where_the_io_thread_found_none(buffer: Buffer) -> None:
    buffer.add([fetched(A, 0)])
    first = buffer.first(A)
    assert first is not None
    assert buffer.look(A, 0) is not None  # the next one is asked for already
    buffer.use_up(first)
    assert not buffer.woken

    buffer.add([fetched(A, 5), fetched(A, 10)])
    second = buffer.first(A)
    assert second is not None
    assert buffer.look(A, 5) is None
    buffer.use_up(second)
    assert buffer.woken


def test_there_is_word_of_room_after_data_was_dropped(buffer: Buffer) -> None:
    buffer.discard(A)
    assert not buffer.woken
    buffer.add([fetched(A, 0)])
    buffer.discard(A)
    assert buffer.woken


def test_room_that_is_made_while_the_io_thread_looks_gives_another_round(buffer: Buffer) -> None:
    buffer.add([fetched(A, 0), fetched(A, 5)])
    first = buffer.first(A)
    assert first is not None
    buffer.begin_round()
    assert buffer.next_fetch_offset(A, 0) is None
    buffer.use_up(first)
    buffer.end_round(room_wanted=True)
    assert buffer.woken == 1


def test_a_round_begins_with_the_partitions_whose_data_has_changed(buffer: Buffer) -> None:
    assert buffer.begin_round() == set()
    buffer.add([fetched(A, 0), fetched(B, 0)])
    assert buffer.begin_round() == {A, B}
    assert buffer.begin_round() == set()
    buffer.add([fetched(A, 5)])
    first = buffer.first(A)
    assert first is not None
    buffer.begin_round()
    buffer.use_up(first)
    assert buffer.begin_round() == {A}
    buffer.discard(B)
    assert buffer.begin_round() == {B}


def test_a_round_begins_with_all_that_have_data_while_the_buffer_has_enough_and_once_after() -> None:
    buffer = Buffer(max_bytes_ahead=150)
    buffer.add([fetched(A, 0), fetched(B, 0)])
    for _ in range(2):
        assert buffer.begin_round() == {A, B}
    buffer.discard(B)
    assert buffer.begin_round() == {A, B}
    assert buffer.begin_round() == set()


def test_what_is_over_is_pruned_in_the_next_round_and_its_memory_given_back_at_once(buffer: Buffer) -> None:
    class Answer(bytearray):
        """Memory whose end can be seen."""

    answer = Answer(batch(0, 5))
    end = weakref.ref(answer)
    buffer.add([CompletedFetch(A, 0, memoryview(answer), None, DecodeSettings()), fetched(A, 5)])
    del answer
    first = buffer.first(A)
    assert first is not None
    assert first.portion(RECORDS, 2) is not None
    buffer.use_up(first)
    assert end() is None
    assert len(buffer._chains[A]) == 2
    assert buffer.look(A, 5) == 10
    assert len(buffer._chains[A]) == 1


def test_data_notifies_the_application(buffer: Buffer) -> None:
    buffer.add([fetched(A, 0), fetched(B, 0)])
    assert buffer.notified == 1


def test_a_partition_is_put_before_or_behind_the_others(buffer: Buffer) -> None:
    buffer.add([fetched(A, 0), fetched(B, 0)])
    buffer.put_first(B)
    assert buffer.order() == [B, A]
    buffer.put_last(B)
    assert buffer.order() == [A, B]


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
