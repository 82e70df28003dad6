"""Cooperative rebalancing (KIP-429): a member goes on with what it has, and gives up only what others get."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from harness.consumer.model import ConsumerModel
from kclient.common.cluster import Cluster
from kclient.common.offsets import ConsumerGroupMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import GroupMembershipOperation
from kclient.consumer.assignor import Assignment, RangeAssignor
from kclient.consumer.assignor.base import ConsumerPartitionAssignor, RebalanceProtocol, Subscription
from kclient.consumer.internals.coordinator import group_protocol
from kclient.consumer.internals.coordinator.cooperation import check_nothing_is_taken, rebalance_protocol
from kclient.consumer.listener import ConsumerRebalanceListener
from kclient.errors import ConfigError, Errors, KafkaError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import heartbeat, sync_group

T0, T1, U0, U1 = (TopicPartition(topic, number) for topic in "tu" for number in (0, 1))
MakeRig = Callable[..., ConsumerModel]


class Cooperative(ConsumerPartitionAssignor):
    """Assigns what the test wants next, to everybody; by default all partitions."""

    NAME = "cooperative"

    def __init__(self) -> None:
        self.next: list[tuple[TopicPartition, ...]] = []
        self.told: list[tuple[tuple[TopicPartition, ...], ConsumerGroupMetadata]] = []
        self.error: Exception | None = None

    @property
    def supported_protocols(self) -> tuple[RebalanceProtocol, ...]:
        return RebalanceProtocol.COOPERATIVE, RebalanceProtocol.EAGER

    def assign(self, cluster: Cluster, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        given = self.next.pop(0) if self.next else (T0, T1)
        return dict.fromkeys(subscriptions, Assignment(given))

    def on_assignment(self, assignment: Assignment, metadata: ConsumerGroupMetadata) -> None:
        self.told.append((assignment.partitions, metadata))
        if self.error is not None:
            raise self.error


class Told(ConsumerRebalanceListener):
    """Writes down what it hears."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[TopicPartition]]] = []

    def on_partitions_assigned(self, partitions: Any) -> None:
        self.calls.append(("assigned", sorted(partitions)))

    def on_partitions_revoked(self, partitions: Any) -> None:
        self.calls.append(("revoked", sorted(partitions)))

    def on_partitions_lost(self, partitions: Any) -> None:
        self.calls.append(("lost", sorted(partitions)))


@pytest.fixture
def assignor() -> Cooperative:
    return Cooperative()


@pytest.fixture
def rig(make_rig: MakeRig, assignor: Cooperative) -> ConsumerModel:
    return make_rig(
        group_id="g",
        partition_assignment_strategy=[assignor],
        heartbeat_interval_ms=50,
        auto_commit_interval_ms=10**6,
    )


def owned(rig: ConsumerModel) -> list[list[TopicPartition]]:
    """The partitions that the member said it owns, each time it joined."""
    requests = rig.sent(ApiKeys.JOIN_GROUP)
    told = [group_protocol.decode_subscription(each.protocols[0].metadata) for each in requests]
    return [sorted(each.owned_partitions) for each in told]


def rebalance(rig: ConsumerModel) -> None:
    """The coordinator wants all members to join."""
    rig.on(ApiKeys.HEARTBEAT, heartbeat.HeartbeatResponse(error_code=Errors.REBALANCE_IN_PROGRESS))
    rig.rounds(20)


def poll(rig: ConsumerModel, rounds: int = 10) -> list[Any]:
    return [record for _ in range(rounds) for record in rig.consumer.poll(20)]


class TestTaking:
    def test_a_member_joins_with_what_it_has_and_the_listener_hears_of_what_is_new(
        self, rig: ConsumerModel, assignor: Cooperative
    ) -> None:
        assignor.next = [(T0,), (T0, T1)]
        told = Told()
        rig.join(("t",), told)
        rebalance(rig)
        poll(rig)
        assert told.calls == [("assigned", [T0]), ("assigned", [T1])]
        assert owned(rig) == [[], [], [T0]]
        assert rig.consumer.assignment() == {T0, T1}

    def test_what_others_get_is_given_up_before_the_rest_is_assigned_and_the_member_joins_again(
        self, rig: ConsumerModel, assignor: Cooperative
    ) -> None:
        assignor.next = [(T0, T1), (T0,), (T0,)]
        told = Told()
        rig.join(("t",), told)
        rebalance(rig)
        poll(rig)
        assert told.calls == [
            ("assigned", [T0, T1]),
            ("revoked", [T1]),
            ("assigned", []),
            ("assigned", []),
        ]
        assert owned(rig)[2:] == [[T0, T1], [T0]]
        assert rig.sent(ApiKeys.JOIN_GROUP)[-1].reason == "what this member gave up is for others to take"

    def test_what_is_read_goes_on_while_the_group_rebalances(self, rig: ConsumerModel) -> None:
        rig.fill(T0, 5)
        rig.join()
        usual = rig.handlers[ApiKeys.JOIN_GROUP]
        rig.handlers[ApiKeys.JOIN_GROUP] = lambda _request, _version: None
        poll(rig)
        rebalance(rig)
        rig.fill(T0, 10)
        assert [record.offset for record in poll(rig)] == [5, 6, 7, 8, 9]
        assert rig.core.membership is not None
        assert rig.core.membership.rebalancing
        rig.handlers[ApiKeys.JOIN_GROUP] = usual

    def test_partitions_that_stay_are_read_on_while_the_offsets_of_others_are_committed(
        self, rig: ConsumerModel, assignor: Cooperative
    ) -> None:
        assignor.next = [(T0, T1), (T1,)]
        rig.fill(T0, 3)
        rig.fill(T1, 3)
        told = Told()
        records = rig.join(("t",), told)
        assert len(records + poll(rig)) == 6
        rig.handlers[ApiKeys.OFFSET_COMMIT], usual = (
            lambda _request, _version: None,
            rig.handlers[ApiKeys.OFFSET_COMMIT],
        )
        submit, rig.network.submit = rig.network.submit, rig._submit  # type: ignore[method-assign]
        rebalance(rig)
        rig.fill(T0, 6)
        rig.fill(T1, 6)
        read = poll(rig, 30)
        assert {record.topic_partition for record in read} == {T1}
        assert told.calls[-1][0] == "assigned"
        rig.handlers[ApiKeys.OFFSET_COMMIT] = usual
        for sent in list(rig.client.requests):
            rig.answer_one(sent)
        rig.network.submit = submit  # type: ignore[method-assign]
        poll(rig)
        assert ("revoked", [T0]) in told.calls
        assert rig.committed[T0] == 3

    def test_offsets_of_what_is_given_up_are_committed_in_the_new_generation(
        self, rig: ConsumerModel, assignor: Cooperative
    ) -> None:
        assignor.next = [(T0, T1), (T0,), (T0,)]
        rig.fill(T1, 4)
        read = rig.join()
        read += poll(rig)
        rebalance(rig)
        poll(rig)
        assert rig.committed[T1] == 4
        assert rig.sent(ApiKeys.OFFSET_COMMIT)[0].generation_id_or_member_epoch == 2

    def test_an_automatic_commit_waits_for_the_end_of_the_rebalance_without_a_warning(
        self, rig: ConsumerModel, caplog: pytest.LogCaptureFixture
    ) -> None:
        rig.fill(T0, 4)
        rig.join()
        poll(rig)
        usual = rig.handlers[ApiKeys.JOIN_GROUP]
        rig.handlers[ApiKeys.JOIN_GROUP] = lambda _request, _version: None
        rebalance(rig)
        rig.core.commits.next_auto_ms = 0
        poll(rig)
        assert not rig.committed
        rig.handlers[ApiKeys.JOIN_GROUP] = usual
        poll(rig, 30)
        assert rig.committed[T0] == 4
        assert "commit failed" not in caplog.text

    def test_topics_that_are_not_subscribed_to_any_more_are_given_up_before_joining(
        self, rig: ConsumerModel, assignor: Cooperative
    ) -> None:
        assignor.next = [(T0, U0), (T0,)]
        told = Told()
        rig.join(("t", "u"), told)
        rig.consumer.subscribe(["t"], told)
        poll(rig)
        assert told.calls == [("assigned", [T0, U0]), ("revoked", [U0]), ("assigned", [])]
        assert owned(rig)[-1] == [T0]

    def test_a_member_that_the_group_removed_loses_everything_and_joins_with_nothing(
        self, rig: ConsumerModel
    ) -> None:
        told = Told()
        rig.join(("t",), told)
        rig.on(ApiKeys.HEARTBEAT, heartbeat.HeartbeatResponse(error_code=Errors.UNKNOWN_MEMBER_ID))
        rig.rounds(20)
        poll(rig)
        assert told.calls == [("assigned", [T0, T1]), ("lost", [T0, T1]), ("assigned", [T0, T1])]
        assert owned(rig)[-1] == []

    def test_a_rebalance_that_another_one_ends_takes_nothing_away(self, rig: ConsumerModel) -> None:
        told = Told()
        rig.join(("t",), told)
        rig.on(ApiKeys.SYNC_GROUP, sync_group.SyncGroupResponse(error_code=Errors.REBALANCE_IN_PROGRESS))
        rebalance(rig)
        poll(rig, 30)
        assert told.calls == [("assigned", [T0, T1]), ("assigned", [])]
        assert owned(rig)[2:] == [[T0, T1], [T0, T1]]


class TestAssignors:
    def test_an_assignor_hears_of_its_members_assignment_and_generation(
        self, rig: ConsumerModel, assignor: Cooperative
    ) -> None:
        rig.join()
        ((partitions, metadata),) = assignor.told
        assert partitions == (T0, T1)
        assert (metadata.group_id, metadata.generation_id, metadata.member_id) == ("g", 1, "m-1")

    def test_an_assignor_that_fails_on_its_assignment_is_the_applications_error(
        self, rig: ConsumerModel, assignor: Cooperative
    ) -> None:
        assignor.error = ValueError("not mine")
        rig.consumer.subscribe(["t"])
        with pytest.raises(
            KafkaError, match=r"'cooperative' failed on its assignment: ValueError\('not mine'\)"
        ):
            poll(rig)
        assert not rig.consumer.assignment()

    def test_a_leader_refuses_to_take_partitions_from_a_member_that_has_them(self) -> None:
        subscriptions = {"a": Subscription(("t",), None, (T0, T1)), "b": Subscription(("t",))}
        with pytest.raises(KafkaError, match=r"'mine'.*give them up first: t-1"):
            check_nothing_is_taken("mine", subscriptions, {"a": Assignment((T0,)), "b": Assignment((T1,))})
        check_nothing_is_taken("mine", subscriptions, {"a": Assignment((T0,)), "b": Assignment(())})

    def test_the_protocol_is_the_most_cooperative_that_all_assignors_support(
        self, assignor: Cooperative
    ) -> None:
        assert rebalance_protocol([assignor]) is RebalanceProtocol.COOPERATIVE
        assert rebalance_protocol([RangeAssignor(), assignor]) is RebalanceProtocol.EAGER

    def test_assignors_without_a_protocol_in_common_are_refused(self, assignor: Cooperative) -> None:
        class Only(Cooperative):
            @property
            def supported_protocols(self) -> tuple[RebalanceProtocol, ...]:
                return (RebalanceProtocol.COOPERATIVE,)

        with pytest.raises(
            ConfigError, match=r"partition\.assignment\.strategy.*no rebalance protocol in common"
        ):
            rebalance_protocol([RangeAssignor(), Only()])


class TestClosing:
    def leaving(self, rig: ConsumerModel, operation: GroupMembershipOperation) -> list[Any]:
        rig.join()
        rig.consumer.close(group_membership_operation=operation)
        return rig.sent(ApiKeys.LEAVE_GROUP)

    def test_a_dynamic_member_can_remain_in_the_group(self, make_rig: MakeRig) -> None:
        assert self.leaving(make_rig(group_id="g"), GroupMembershipOperation.DEFAULT)
        assert not self.leaving(make_rig(group_id="g"), GroupMembershipOperation.REMAIN_IN_GROUP)

    def test_a_static_member_can_leave(self, make_rig: MakeRig) -> None:
        static = {"group_id": "g", "group_instance_id": "i-1"}
        assert not self.leaving(make_rig(**static), GroupMembershipOperation.DEFAULT)
        ((sent,),) = (self.leaving(make_rig(**static), GroupMembershipOperation.LEAVE_GROUP),)
        assert [(each.member_id, each.group_instance_id) for each in sent.members] == [("m-1", "i-1")]

    def test_another_operation_is_refused_by_name(self, rig: ConsumerModel) -> None:
        with pytest.raises(
            TypeError, match=r"group_membership_operation must be one of .*LEAVE_GROUP.* not 'stay'"
        ):
            rig.consumer.close(group_membership_operation="stay")  # type: ignore[arg-type]
