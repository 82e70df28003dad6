"""Changes of the assignment: each is carried out or cancelled."""

from __future__ import annotations

from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.coordinator.generation import Generation
from kclient.consumer.internals.rebalance_callback import RebalanceCallback, RebalanceKind


def callback() -> RebalanceCallback:
    return RebalanceCallback(RebalanceKind.REVOKED, frozenset({TopicPartition("t", 1)}), Generation())


def test_one_that_was_cancelled_is_not_started() -> None:
    change = callback()
    assert change.cancel()
    assert not change.start()
    assert change.cancel()


def test_one_that_was_started_cannot_be_cancelled_and_may_go_on() -> None:
    change = callback()
    assert change.start()
    assert not change.cancel()
    assert change.start()


def test_its_repr_names_the_change_and_the_partitions() -> None:
    assert repr(callback()) == "RebalanceCallback(revoked, [TopicPartition(topic='t', partition=1)])"
