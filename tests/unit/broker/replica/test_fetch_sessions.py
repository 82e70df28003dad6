"""Incremental fetch sessions: what is remembered, what is told, and who has to go when it gets full."""

from __future__ import annotations

from harness.mock_time import MockTime
from kclient.broker.replica.fetch_sessions import NO_SESSION, FetchSessionCache, next_epoch
from kclient.broker.replica.fetching import PartitionFetch, PartitionFetched
from kclient.common.topic_partition import TopicPartition
from kclient.errors import Errors, OffsetOutOfRangeError

A, B, C = (TopicPartition("t", number) for number in range(3))
EVICTION_MS = 120_000


def fetches(*tps: TopicPartition, offset: int = 0) -> list[PartitionFetch]:
    return [PartitionFetch(tp, offset, 1000) for tp in tps]


def found(*tps: TopicPartition, high_watermark: int = 5, records: bytes = b"") -> list[PartitionFetched]:
    return [
        PartitionFetched(tp, records=records, high_watermark=high_watermark, log_start_offset=0) for tp in tps
    ]


def make(slots: int = 10) -> tuple[FetchSessionCache, MockTime]:
    time = MockTime()
    return FetchSessionCache(slots, EVICTION_MS, time), time


def opened(cache: FetchSessionCache, *tps: TopicPartition) -> int:
    context = cache.context(0, 0, fetches(*tps), ())
    return context.answer(found(*tps)).session_id


def test_the_first_request_opens_a_session_and_is_told_everything() -> None:
    cache, _ = make()
    context = cache.context(0, 0, fetches(A, B), ())
    answer = context.answer(found(A, B))
    assert answer.session_id != NO_SESSION
    assert [result.tp for _, result in answer.results] == [A, B]


def test_an_epoch_of_minus_one_reads_without_a_session() -> None:
    cache, _ = make()
    answer = cache.context(0, -1, fetches(A), ()).answer(found(A))
    assert answer.session_id == NO_SESSION
    assert len(answer.results) == 1
    assert len(cache) == 0


def test_later_requests_read_what_is_remembered_and_are_told_only_what_is_new() -> None:
    cache, _ = make()
    session_id = opened(cache, A, B)
    context = cache.context(session_id, 1, (), ())
    assert [fetch.tp for fetch in context.fetches] == [A, B]
    quiet = context.answer(found(A, B))
    assert (quiet.session_id, list(quiet.results)) == (session_id, [])
    context = cache.context(session_id, 2, (), ())
    news = context.answer([*found(A), *found(B, high_watermark=6)])
    assert [result.tp for _, result in news.results] == [B]


def test_a_request_changes_adds_and_forgets_partitions() -> None:
    cache, _ = make()
    session_id = opened(cache, A, B)
    context = cache.context(session_id, 1, fetches(A, C, offset=7), [B])
    assert [(fetch.tp, fetch.offset) for fetch in context.fetches] == [(A, 7), (C, 7)]
    assert [result.tp for _, result in context.answer(found(A, C)).results] == [C]


def test_partitions_that_had_records_go_to_the_end_of_the_line() -> None:
    cache, _ = make()
    session_id = opened(cache, A, B, C)
    context = cache.context(session_id, 1, (), ())
    context.answer([*found(A, records=b"x"), *found(B, C)])
    assert [fetch.tp for fetch in cache.context(session_id, 2, (), ()).fetches] == [B, C, A]


def test_after_an_error_the_next_success_is_told() -> None:
    cache, _ = make()
    session_id = opened(cache, A)
    failed = cache.context(session_id, 1, (), ()).answer([PartitionFetched(A, OffsetOutOfRangeError())])
    assert len(failed.results) == 1
    assert len(cache.context(session_id, 2, (), ()).answer(found(A)).results) == 1


def test_an_unknown_session_and_a_wrong_epoch_are_errors_of_the_request() -> None:
    cache, _ = make()
    session_id = opened(cache, A)
    assert cache.context(session_id + 1, 1, (), ()).error_code == Errors.FETCH_SESSION_ID_NOT_FOUND
    wrong = cache.context(session_id, 2, (), ())
    assert wrong.error_code == Errors.INVALID_FETCH_SESSION_EPOCH
    assert wrong.answer(()).error_code == Errors.INVALID_FETCH_SESSION_EPOCH
    assert cache.context(session_id, 1, (), ()).error_code == 0, (
        "a wrong request must not cost the right one its turn"
    )


def test_the_answer_of_a_request_that_was_overtaken_is_an_error() -> None:
    cache, _ = make()
    session_id = opened(cache, A)
    slow = cache.context(session_id, 1, (), ())
    cache.context(session_id, 2, (), ())
    assert slow.answer(found(A)).error_code == Errors.INVALID_FETCH_SESSION_EPOCH


def test_a_client_that_is_held_back_is_told_nothing_and_its_session_goes_on() -> None:
    cache, _ = make()
    unanswered = cache.context(0, 0, fetches(A), ()).throttled()
    assert (unanswered.session_id, unanswered.error_code, list(unanswered.results)) == (NO_SESSION, 0, [])
    assert len(cache) == 0
    session_id = opened(cache, A, B)
    held = cache.context(session_id, 1, (), ()).throttled()
    assert (held.session_id, held.error_code, list(held.results)) == (session_id, 0, [])
    answer = cache.context(session_id, 2, (), ()).answer([*found(A, high_watermark=6), *found(B)])
    assert [result.tp for _, result in answer.results] == [A]


def test_one_that_is_held_back_and_was_overtaken_is_told_so() -> None:
    cache, _ = make()
    session_id = opened(cache, A)
    overtaken = cache.context(session_id, 1, (), ())
    cache.context(session_id, 2, (), ())
    assert overtaken.throttled().error_code == Errors.INVALID_FETCH_SESSION_EPOCH


def test_a_full_request_with_a_session_id_ends_that_session() -> None:
    cache, _ = make()
    session_id = opened(cache, A)
    assert cache.context(session_id, 0, fetches(B), ()).answer(found(B)).session_id not in {
        NO_SESSION,
        session_id,
    }
    assert cache.context(session_id, 1, (), ()).error_code == Errors.FETCH_SESSION_ID_NOT_FOUND
    other = opened(cache, A)
    cache.context(other, -1, (), ())
    assert cache.context(other, 1, (), ()).error_code == Errors.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_that_forgets_everything_is_gone() -> None:
    cache, _ = make()
    session_id = opened(cache, A)
    assert cache.context(session_id, 1, (), [A]).answer(()).session_id == NO_SESSION
    assert len(cache) == 0


def test_a_full_cache_gives_the_place_of_the_oldest_only_if_it_was_unused_for_long() -> None:
    cache, time = make(slots=2)
    first, second = opened(cache, A), opened(cache, A)
    assert opened(cache, A) == NO_SESSION
    time.advance(EVICTION_MS - 1)
    cache.context(first, 1, (), ())
    time.advance(1)
    third = opened(cache, A)
    assert third != NO_SESSION
    assert cache.context(second, 1, (), ()).error_code == Errors.FETCH_SESSION_ID_NOT_FOUND
    assert cache.context(first, 2, (), ()).error_code == 0


def test_without_slots_there_are_no_sessions() -> None:
    cache, _ = make(slots=0)
    assert opened(cache, A) == NO_SESSION


def test_epochs_wrap_to_1_as_0_begins_a_session() -> None:
    assert [next_epoch(epoch) for epoch in (0, 1, 2**31 - 1)] == [1, 2, 1]


class TestPartitionsOfAllSessions:
    """Their number is bounded, whatever clients say that they read."""

    @staticmethod
    def many(first: int, count: int) -> list[TopicPartition]:
        return [TopicPartition("made up", number) for number in range(first, first + count)]

    def test_a_session_that_would_grow_beyond_the_bound_ends(self) -> None:
        cache = FetchSessionCache(10, EVICTION_MS, MockTime(), max_partitions=100)
        session_id = opened(cache, *self.many(0, 60))
        assert cache.context(session_id, 1, fetches(*self.many(60, 40)), ()).error_code == 0
        assert cache.partition_count == 100
        refused = cache.context(session_id, 2, fetches(*self.many(100, 1)), ())
        assert refused.error_code == Errors.FETCH_SESSION_ID_NOT_FOUND
        assert (len(cache), cache.partition_count) == (0, 0)

    def test_a_session_that_does_not_fit_beside_others_is_not_opened(self) -> None:
        cache = FetchSessionCache(10, EVICTION_MS, MockTime(), max_partitions=100)
        first = opened(cache, *self.many(0, 60))
        assert opened(cache, *self.many(0, 41)) == NO_SESSION
        assert opened(cache, *self.many(0, 40)) != NO_SESSION
        assert cache.context(first, 1, (), ()).error_code == 0, "those who are in stay"

    def test_what_is_forgotten_or_goes_with_its_session_makes_room(self) -> None:
        time = MockTime()
        cache = FetchSessionCache(2, EVICTION_MS, time, max_partitions=100)
        first = opened(cache, *self.many(0, 60))
        cache.context(first, 1, (), self.many(0, 50))
        assert cache.partition_count == 10
        opened(cache, *self.many(0, 30))
        time.advance(EVICTION_MS)
        opened(cache, *self.many(0, 5))  # takes the place of the first
        assert (len(cache), cache.partition_count, cache.evictions) == (2, 35, 1)
