"""Changes of the assignment that the application carries out one after another."""

from __future__ import annotations

from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.coordinator.assignment_changes import AssignmentChanges
from kclient.consumer.internals.coordinator.generation import Generation
from kclient.consumer.internals.rebalance_callback import RebalanceCallback, RebalanceKind


def change(kind: RebalanceKind = RebalanceKind.REVOKED) -> RebalanceCallback:
    return RebalanceCallback(kind, frozenset({TopicPartition("t", 0)}), Generation(1, "m"))


class Application:
    """Gets what is posted."""

    def __init__(self) -> None:
        self.posted: list[RebalanceCallback] = []
        self.ended: list[str] = []
        self.changes = AssignmentChanges(self.posted.append)


def test_the_second_change_is_posted_when_the_first_was_carried_out() -> None:
    application = Application()
    first, second = change(), change(RebalanceKind.ASSIGNED)
    application.changes.begin([first, second], lambda: application.ended.append("all"))
    assert application.posted == [first]
    application.changes.done(first)
    assert (application.posted, application.ended) == ([first, second], [])
    application.changes.done(second)
    assert application.ended == ["all"]
    assert not application.changes.under_way


def test_more_can_be_begun_when_all_was_carried_out() -> None:
    application = Application()
    first, second = change(), change(RebalanceKind.ASSIGNED)
    application.changes.begin([first], lambda: application.changes.begin([second]))
    application.changes.done(first)
    assert application.posted == [first, second]
    assert application.changes.under_way


def test_a_change_that_was_cancelled_ends_at_once_and_nothing_follows_it() -> None:
    application = Application()
    first = change()
    application.changes.begin([first, change()], lambda: application.ended.append("all"))
    application.changes.cancel()
    assert not application.changes.under_way
    assert not first.start()
    application.changes.done(first)
    assert (application.posted, application.ended) == ([first], [])


def test_a_change_that_has_begun_is_finished_before_anything_else_though_nothing_follows_it() -> None:
    application = Application()
    first = change()
    application.changes.begin([first, change()], lambda: application.ended.append("all"))
    assert first.start()
    application.changes.cancel()
    assert application.changes.under_way
    application.changes.done(first)
    assert not application.changes.under_way
    assert (application.posted, application.ended) == ([first], [])
