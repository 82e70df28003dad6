"""Reconciliation: from the assignment that a member has to the one that its coordinator wants."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.consumer.consumer_group import ConsumerGroupModel, Told
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.consumer.internals.coordinator.consumer_member_state import ConsumerMemberState
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import consumer_group_heartbeat

T0, T1, U0, U1 = (TopicPartition(topic, number) for topic in "tu" for number in (0, 1))
HEARTBEAT = ApiKeys.CONSUMER_GROUP_HEARTBEAT


class TestReconciliation:
    def test_what_goes_is_given_up_before_what_comes_is_taken_and_what_stays_is_read_on(
        self, group: ConsumerGroupModel
    ) -> None:
        for tp in (T0, T1, U0):
            group.rig.fill(tp, 5)
        told = Told()
        group.want(T0, T1)
        records = group.join(("t", "u"), told)
        records += group.poll_for(100)
        kept = group.rig.core.assigned.state(T1)
        group.want(T1, U0)
        records += group.poll_for(2200)
        assert told.calls == [
            ("assigned", [T0, T1]),
            ("revoked", [T0]),
            ("assigned", []),
            ("assigned", [U0]),
        ]
        assert group.rig.core.assigned.state(T1) is kept
        assert len(records) == 15
        assert group.acknowledged == {(group.rig.topic_ids[tp.topic], tp.partition) for tp in (T1, U0)}

    def test_it_is_acknowledged_at_once_and_not_before_the_application_has_polled(
        self, group: ConsumerGroupModel
    ) -> None:
        group.join()
        group.want(T1)
        group.rig.rounds(300)
        assert group.state is ConsumerMemberState.RECONCILING
        assert len(group.acknowledged) == 2
        assert len(group.requests) >= 4  # heartbeats go on
        group.poll_for(30)
        assert len(group.acknowledged) == 1
        assert group.state is ConsumerMemberState.STABLE

    def test_a_newer_assignment_waits_for_the_callbacks_of_the_one_before(
        self, group: ConsumerGroupModel
    ) -> None:
        def hear_of_another() -> None:
            group.want(U0)
            group.rig.rounds(250)

        told = Told(revoked=hear_of_another)
        group.want(T0, T1)
        group.join(("t", "u"), told)
        group.want(T1)
        group.poll_for(1100)
        told.revoked = lambda: None
        group.poll_for(2200)
        assert told.calls == [
            ("assigned", [T0, T1]),
            ("revoked", [T0]),
            ("assigned", []),
            ("revoked", [T1]),
            ("assigned", []),
            ("assigned", [U0]),
        ]
        assert group.state is ConsumerMemberState.STABLE

    def test_the_same_assignment_after_another_one_is_acknowledged_again(
        self, group: ConsumerGroupModel
    ) -> None:
        told = Told()
        group.join(("t",), told)
        answers = [
            consumer_group_heartbeat.ConsumerGroupHeartbeatResponse(
                member_epoch=1,
                heartbeat_interval_ms=1000,
                assignment=consumer_group_heartbeat.Assignment(
                    topic_partitions=[
                        consumer_group_heartbeat.ConsumerGroupHeartbeatResponseTopicPartitions(
                            topic_id=group.rig.topic_ids["t"], partitions=partitions
                        )
                    ]
                ),
            )
            for partitions in ([0], [0, 1])
        ]
        group.rig.on(HEARTBEAT, *answers)
        group.rig.rounds(250)  # both answers, and no poll
        before = len(group.requests)
        group.poll_for(50)
        assert told.calls == [("assigned", [T0, T1]), ("revoked", [T1]), ("assigned", []), ("assigned", [T1])]
        acknowledged = [request.topic_partitions for request in group.requests[before:]]
        assert [[each.partitions for each in topics or ()] for topics in acknowledged] == [[[0]], [[0, 1]]]

    def test_topics_that_are_not_known_yet_come_later(self, group: ConsumerGroupModel) -> None:
        told = Told()
        group.rig.fill(T0, 1)
        group.join(("t", "new"), told)
        group.rig.topics["new"], group.rig.topic_ids["new"] = 1, Uuid(b"n" * 16)
        group.rig.metadata_held = True
        group.poll_for(3000)
        assert told.calls == [("assigned", [T0, T1])]
        assert group.state is ConsumerMemberState.RECONCILING
        acknowledgements = [each for each in group.requests if each.topic_partitions]
        assert len(acknowledgements) == 2  # also that of the part that is known
        group.rig.metadata_held = False
        group.poll_for(100)
        assert told.calls[1:] == [("assigned", [TopicPartition("new", 0)])]
        assert len(group.acknowledged) == 3
        assert group.state is ConsumerMemberState.STABLE

    def test_partitions_are_not_read_while_their_callback_runs(self, group: ConsumerGroupModel) -> None:
        group.rig.fill(T0, 5)
        group.join(("t",), Told(assigned=lambda: group.rig.rounds(100)))
        assert len(group.rig.sent(ApiKeys.OFFSET_FETCH)) == 1

    def test_a_listener_that_fails_is_heard_of_and_the_member_goes_on(
        self, group: ConsumerGroupModel
    ) -> None:
        def fail() -> None:
            raise ZeroDivisionError

        told = Told(revoked=fail)
        group.join(("t",), told)
        group.want(T1)
        with pytest.raises(ZeroDivisionError):
            group.poll_for(2000)
        told.revoked = lambda: None
        group.poll_for(2000)
        assert group.rig.consumer.assignment() == {T1}
        assert group.state is ConsumerMemberState.STABLE

    def test_offsets_are_committed_before_partitions_are_given_up(
        self, make_member: Callable[..., ConsumerGroupModel]
    ) -> None:
        group = make_member(enable_auto_commit=True, auto_commit_interval_ms=100_000)
        group.rig.fill(T0, 5)
        committed: list[int] = []
        told = Told(revoked=lambda: committed.append(group.rig.committed[T0]))
        group.join(("t",), told)
        group.poll_for(100)
        group.want(T1)
        group.poll_for(1500)
        assert committed == [5]

    def test_what_stays_is_read_on_while_the_offsets_of_what_goes_are_committed(
        self, make_member: Callable[..., ConsumerGroupModel]
    ) -> None:
        group = make_member(enable_auto_commit=True, auto_commit_interval_ms=100_000)
        told = Told()
        group.join(("t",), told)
        usual = group.rig.handlers[ApiKeys.OFFSET_COMMIT]
        group.rig.handlers[ApiKeys.OFFSET_COMMIT] = lambda _request, _version: None
        group.want(T1)
        group.poll_for(1100)
        group.rig.fill(T0, 5)
        group.rig.fill(T1, 5)
        assert {record.partition for record in group.poll_for(1000)} == {1}
        assert told.calls == [("assigned", [T0, T1])]
        group.rig.handlers[ApiKeys.OFFSET_COMMIT] = usual
        group.poll_for(100)
        assert told.calls[1:] == [("revoked", [T0]), ("assigned", [])]

    def test_hostile_partition_numbers_are_left_out(self, group: ConsumerGroupModel) -> None:
        group.want(TopicPartition("t", -1), T1)
        group.join()
        assert group.rig.consumer.assignment() == {T1}
