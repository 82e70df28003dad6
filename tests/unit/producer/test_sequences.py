"""The sequences of one partition's batches, taken apart: numbers, what an answer proves, what may be numbered anew."""

from __future__ import annotations

import pytest

from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.producer.internals.idempotence.fate import Fate
from kclient.producer.internals.idempotence.sequences import (
    PartitionSequences,
    ProducerIdAndEpoch,
    sequence_precedes,
)
from kclient.producer.internals.partition_queue import PartitionQueue
from kclient.producer.internals.producer_batch import BatchState, ProducerBatch
from kclient.record import BatchBuilder, BatchResult

LAST = 2**31 - 1
SILENCE_MS = 600_000
ID = ProducerIdAndEpoch(7, 3)
TP = TopicPartition("t", 0)


def batch(records: int = 1) -> ProducerBatch:
    builder = BatchBuilder(TP.topic, TP.partition, 10_000, BatchResult(TP.topic, TP.partition), 0)
    for _ in range(records):
        assert builder.append(0, None, b"v", None) is not None
    return ProducerBatch(builder, PartitionQueue(TP), number=0, created_ms=0, charge=0, queued_ms=0)


def assigned(sequences: PartitionSequences, *records: int) -> list[ProducerBatch]:
    made = [batch(count) for count in records]
    for each in made:
        sequences.assign(each)
    return made


def established(*records: int) -> tuple[PartitionSequences, list[ProducerBatch]]:
    """Sequences whose first record is acknowledged at offset 50, and batches after it."""
    sequences = PartitionSequences(ID)
    (first,) = assigned(sequences, 1)
    sequences.acked(first, 50, 0)
    sequences.forget(first)
    return sequences, assigned(sequences, *records)


@pytest.mark.parametrize(
    ("first", "second", "precedes"),
    [(0, 1, True), (1, 0, False), (5, 5, False), (LAST, 0, True), (0, LAST, False), (LAST - 2, 3, True)],
)
def test_the_order_of_sequences_survives_the_wrap(first: int, second: int, precedes: bool) -> None:
    assert sequence_precedes(first, second) is precedes


def test_batches_are_numbered_by_their_records_under_the_producers_id() -> None:
    sequences = PartitionSequences(ID)
    made = assigned(sequences, 3, 1, 2)
    assert [(each.base_sequence, each.last_sequence) for each in made] == [(0, 2), (3, 3), (4, 5)]
    assert {(each.producer_id, each.producer_epoch) for each in made} == {(7, 3)}
    assert sequences.next_sequence == 6


def test_a_batch_over_the_wrap_ends_at_the_beginning() -> None:
    sequences = PartitionSequences(ID, next_sequence=LAST)
    made = assigned(sequences, 2, 1)
    assert [(each.base_sequence, each.last_sequence) for each in made] == [(LAST, 0), (1, 1)]


def test_parts_of_a_batch_that_was_split_take_their_place_by_sequence() -> None:
    sequences, (whole, behind) = established(4, 1)
    sequences.forget(whole)
    parts = [batch(2), batch(2)]
    parts[0].stamp(7, 3, whole.base_sequence)
    parts[1].stamp(7, 3, whole.base_sequence + 2)
    for part in reversed(parts):
        sequences.insert(part)
    assert sequences.in_flight == [*parts, behind]


def test_the_leader_is_known_to_check_from_the_first_answer_until_it_may_have_forgotten() -> None:
    sequences = PartitionSequences(ID)
    (first,) = assigned(sequences, 1)
    assert not sequences.is_established(0)
    sequences.acked(first, 0, 1000)
    assert sequences.is_established(1000 + SILENCE_MS)
    assert not sequences.is_established(1000 + SILENCE_MS + 1)


def test_until_then_only_the_first_is_sent_again_and_alone() -> None:
    sequences = PartitionSequences(ID)
    first, _ = assigned(sequences, 1, 1)
    assert sequences.next_repetition(0) is first
    sequences.on_wire = 1
    assert sequences.next_repetition(0) is None


def test_a_younger_batch_that_is_written_proves_those_before_it() -> None:
    sequences, (first, second, third) = established(2, 1, 1)
    for each in (first, second):
        each.fate = Fate.UNKNOWN
    sequences.acked(second, 53, 10)  # 51 and 52 are the first's
    assert (first.proven, second.proven, third.proven) == (True, False, False)
    assert sequences.expected_sequence == third.base_sequence
    assert sequences.is_overtaken(first)
    assert not sequences.is_overtaken(third)


def test_it_proves_nothing_if_there_is_no_room_for_them_before_it() -> None:
    sequences, (first, second) = established(2, 1)
    first.fate = Fate.UNKNOWN
    sequences.acked(second, 52, 10)
    assert not first.proven


def test_it_proves_nothing_if_one_of_them_was_certainly_refused() -> None:
    sequences, (first, second, third) = established(1, 1, 1)
    first.fate = Fate.UNKNOWN
    assert second.fate is Fate.NOT_WRITTEN
    assert second.state is BatchState.QUEUED
    sequences.acked(third, 53, 10)
    assert not first.proven


def test_an_old_answer_does_not_take_the_expected_sequence_back() -> None:
    sequences, (first, second) = established(1, 1)
    first.fate = Fate.UNKNOWN
    sequences.acked(second, 52, 10)
    sequences.acked(first, 51, 20)
    assert sequences.expected_sequence == 3


def test_what_the_leader_misses_needs_a_restart_and_what_only_waits_for_answers_is_settled() -> None:
    sequences, (first, second) = established(1, 1)
    assert sequences.is_settled
    assert not sequences.needs_restart
    assert sequences.forget(first)  # given up: its sequence never comes
    assert not sequences.forget(first)
    assert sequences.needs_restart
    assert not sequences.is_settled
    sequences.forget(second)
    assert sequences.needs_restart  # what comes next is behind the gap, too


def test_a_refused_sequence_needs_a_restart() -> None:
    sequences, _ = established(1)
    sequences.broken = True
    assert sequences.needs_restart
    assert not sequences.is_settled


def test_nothing_is_numbered_anew_that_may_be_written_or_is_on_the_wire() -> None:
    sequences, (first, second) = established(1, 1)
    assert sequences.can_restart
    second.fate = Fate.UNKNOWN
    assert not sequences.can_restart
    second.fate = Fate.NOT_WRITTEN
    first.transition_to(BatchState.IN_FLIGHT)
    assert not sequences.can_restart
    first.transition_to(BatchState.QUEUED)
    sequences.on_wire = 1
    assert not sequences.can_restart


def test_a_restart_numbers_what_is_queued_from_0_under_the_new_id() -> None:
    sequences, made = established(2, 1)
    sequences.broken = True
    fresh = ProducerIdAndEpoch(7, 4)
    sequences.restart(fresh)
    assert [(each.producer_epoch, each.base_sequence) for each in made] == [(4, 0), (4, 2)]
    assert (sequences.next_sequence, sequences.expected_sequence, sequences.broken) == (3, 0, False)
    assert sequences.is_of(fresh)
    assert not sequences.is_of(ID)
    assert not sequences.is_established(0)


def test_the_oldest_is_sent_again_first() -> None:
    sequences, (first, _) = established(1, 1)
    assert sequences.next_repetition(0) is first


def test_a_forgotten_batch_is_passed_over_for_one_that_may_prove_it() -> None:
    sequences, (first, second, third) = established(1, 1, 1)
    first.forgotten = True
    second.fate = third.fate = Fate.UNKNOWN
    assert sequences.next_repetition(0) is second
    second.fate = Fate.NOT_WRITTEN
    assert sequences.next_repetition(0) is third


def test_a_forgotten_batch_is_hopeless_once_nothing_behind_it_may_prove_it() -> None:
    sequences, (first, second) = established(1, 1)
    first.forgotten = True
    second.fate = Fate.UNKNOWN
    assert sequences.hopeless(0) == []
    assert sequences.hopeless(SILENCE_MS + 1) == [first]  # the leader may have forgotten the producer
    second.fate = Fate.NOT_WRITTEN
    assert sequences.hopeless(0) == [first]


def test_a_refusal_disproves_a_batch_between_refused_ones() -> None:
    sequences, (first, second, third, fourth) = established(1, 1, 1, 1)
    second.fate = third.fate = Fate.UNKNOWN
    assert sequences.is_disproved_by_refusal(third)
    assert not sequences.is_disproved_by_refusal(second)  # the leader may have the third
    third.fate = Fate.NOT_WRITTEN
    assert sequences.is_disproved_by_refusal(second)
    fourth.transition_to(BatchState.IN_FLIGHT)
    assert not sequences.is_disproved_by_refusal(second)  # the answer is still to come
    fourth.transition_to(BatchState.QUEUED)
    first.fate = Fate.UNKNOWN
    assert not sequences.is_disproved_by_refusal(second)  # former attempts of both may still arrive in order


def test_a_refusal_disproves_nothing_where_a_younger_batch_was_given_up() -> None:
    sequences, (_, second, third) = established(1, 1, 1)
    second.fate = Fate.UNKNOWN
    assert sequences.is_disproved_by_refusal(second)
    sequences.forget(third)
    assert not sequences.is_disproved_by_refusal(second)


def test_a_forgotten_batch_is_asked_about_again_once_what_is_behind_it_was_refused() -> None:
    sequences, (_, second, third) = established(1, 1, 1)
    sequences.broken = second.forgotten = third.forgotten = True
    second.fate = third.fate = Fate.UNKNOWN
    assert sequences.next_repetition(0) is third
    assert sequences.hopeless(0) == []
    third.fate, third.forgotten = Fate.NOT_WRITTEN, False
    assert sequences.next_repetition(0) is second
    assert sequences.hopeless(SILENCE_MS + 1) == [second]


def test_a_refused_batch_that_a_younger_one_overtook_is_hopeless() -> None:
    sequences, (first, second) = established(1, 1)
    sequences.acked(second, 51, 0)
    sequences.forget(second)
    assert sequences.hopeless(0) == [first]


def test_a_topic_with_another_id_is_another_log() -> None:
    sequences, (first, second) = established(1, 1)
    sequences.note_topic_id(Uuid(b"a" * 16))
    assert sequences.is_established(0)
    first.forgotten = second.proven = sequences.broken = True
    sequences.note_topic_id(None)
    sequences.note_topic_id(Uuid(b"a" * 16))
    assert first.forgotten
    sequences.note_topic_id(Uuid(b"b" * 16))
    assert (first.forgotten, second.proven, sequences.broken) == (False, False, False)
    assert not sequences.is_established(0)
    assert sequences.expected_sequence == first.base_sequence
