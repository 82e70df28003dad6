"""The assignment that a coordinator wants, and how far a member has it."""

from __future__ import annotations

from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.consumer.internals.coordinator.target_assignment import TargetAssignment, by_id

A, B = Uuid(b"a" * 16), Uuid(b"b" * 16)


def test_nothing_is_wanted_before_the_first_word() -> None:
    target = TargetAssignment(lambda _: None)
    assert target.reconciled
    target.want({})
    assert not target.reconciled  # that it has nothing is to be acknowledged as well


def test_only_topics_that_are_known_can_be_taken() -> None:
    target = TargetAssignment({A: "a"}.get)
    target.want({A: frozenset({0, 1}), B: frozenset({0})})
    assignment, partitions, unknown = target.resolve()
    assert partitions == {TopicPartition("a", 0), TopicPartition("a", 1)}
    assert unknown == {B}
    target.take(assignment)
    assert not target.reconciled


def test_a_topic_that_the_metadata_forgets_keeps_its_name_while_the_member_has_it() -> None:
    names = {A: "a", B: "b"}
    target = TargetAssignment(names.get)
    target.want({A: frozenset({0}), B: frozenset({0})})
    target.take(target.resolve()[0])
    names.clear()
    target.want({A: frozenset({1})})
    assignment, partitions, unknown = target.resolve()
    assert (partitions, unknown) == ({TopicPartition("a", 1)}, frozenset())
    target.take(assignment)
    target.want({B: frozenset({0})})
    assert target.resolve()[2] == {B}


def test_the_same_word_twice_is_no_news_and_one_that_comes_back_is() -> None:
    target = TargetAssignment({A: "a"}.get)
    target.want({A: frozenset({0})})
    target.take(target.resolve()[0])
    target.want({A: frozenset({0})})
    assert target.reconciled
    target.want({})
    target.want({A: frozenset({0})})
    assert not target.reconciled


def test_what_is_forgotten_has_no_names() -> None:
    names = {A: "a"}
    target = TargetAssignment(names.get)
    target.want({A: frozenset({0})})
    target.resolve()
    names.clear()
    target.forget()
    assert target.reconciled
    target.want({A: frozenset({0})})
    assert target.resolve()[2] == {A}


def test_partitions_that_none_can_be_and_topics_without_any_are_left_out() -> None:
    assert by_id([(A, [0, -1]), (B, [-2]), (A, [1])]) == {A: frozenset({0, 1})}
