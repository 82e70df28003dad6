"""Answers that are too large: which partition is asked for next, until the one to blame is known."""

from __future__ import annotations

from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.consumer.internals.fetch_session import WantedPartition
from kclient.consumer.internals.too_large import TooLargeAnswers
from kclient.errors import InvalidReceiveError, RecordTooLargeError

T0, T1, T2 = (TopicPartition("t", number) for number in range(3))


def wanted(*partitions: TopicPartition) -> dict[TopicPartition, WantedPartition]:
    return {tp: WantedPartition(10 + tp.partition, Uuid.ZERO, 1 << 20) for tp in partitions}


def too_large() -> InvalidReceiveError:
    return InvalidReceiveError("too large", size=2000, limit=1000)


def test_as_long_as_nothing_was_too_large_all_is_fetched() -> None:
    answers = TooLargeAnswers()
    assert answers.choose(wanted(T0, T1)) == (wanted(T0, T1), False)
    answers.cleared(wanted(T0))
    assert answers.choose(wanted(T0, T1)) == (wanted(T0, T1), False)


def test_after_one_that_was_its_partitions_are_fetched_one_by_one() -> None:
    answers = TooLargeAnswers()
    assert answers.refused(wanted(T0, T1), too_large()) is None
    assert answers.choose(wanted(T0, T1, T2)) == (wanted(T0), True)
    answers.cleared(wanted(T0))
    assert answers.choose(wanted(T0, T1, T2)) == (wanted(T1), True)
    answers.cleared(wanted(T1))
    assert answers.choose(wanted(T0, T1, T2)) == (wanted(T0, T1, T2), False)


def test_the_one_to_blame_is_told_with_its_size() -> None:
    answers = TooLargeAnswers()
    answers.refused(wanted(T0, T1), too_large())
    failed = answers.refused(wanted(T0), too_large())
    assert failed is not None
    assert failed.tp == T0
    assert failed.position == 10
    assert isinstance(failed.error, RecordTooLargeError)
    assert failed.error.sizes == {T0: 2000}
    assert "t-0: what comes next at offset 10" in str(failed.error)


def test_the_others_have_a_turn_before_the_blamed_one_is_asked_for_again() -> None:
    answers = TooLargeAnswers()
    answers.refused(wanted(T0), too_large())
    assert answers.choose(wanted(T0, T1)) == (wanted(T1), True)
    assert answers.choose(wanted(T0, T1)) == (wanted(T0), True)


def test_the_blamed_one_is_asked_for_if_there_is_nothing_else() -> None:
    answers = TooLargeAnswers()
    answers.refused(wanted(T0), too_large())
    assert answers.choose(wanted(T0))[0] == wanted(T0)


def test_a_suspect_that_is_not_wanted_any_more_keeps_nobody_waiting() -> None:
    answers = TooLargeAnswers()
    answers.refused(wanted(T0, T1), too_large())
    assert answers.choose(wanted(T2)) == (wanted(T2), False)
