"""Being a member of a group, over a whole consumer without threads."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kclient.common.topic_partition import TopicPartition
from kclient.consumer.assignor import Assignment, ConsumerPartitionAssignor
from kclient.consumer.assignor.base import Subscription
from kclient.consumer.internals.coordinator import group_protocol
from kclient.consumer.internals.coordinator.member_state import MemberState
from kclient.consumer.listener import ConsumerRebalanceListener
from kclient.errors import (
    CommitFailedError,
    FencedInstanceIdError,
    GroupAuthorizationError,
    GroupMaxSizeReachedError,
    InconsistentGroupProtocolError,
    KafkaError,
    RebalanceInProgressError,
    SchemaError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import find_coordinator, heartbeat, join_group, sync_group

T0, T1, U0, U1 = (TopicPartition(topic, number) for topic in "tu" for number in (0, 1))


class Told(ConsumerRebalanceListener):
    """Writes down what it hears, and does what a test wants of it."""

    def __init__(
        self, revoked: Callable[[], Any] = lambda: None, assigned: Callable[[], Any] = lambda: None
    ) -> None:
        self.calls: list[tuple[str, list[TopicPartition]]] = []
        self.revoked = revoked
        self.assigned = assigned

    def on_partitions_assigned(self, partitions: Any) -> None:
        self.calls.append(("assigned", sorted(partitions)))
        self.assigned()

    def on_partitions_revoked(self, partitions: Any) -> None:
        self.calls.append(("revoked", sorted(partitions)))
        self.revoked()

    def on_partitions_lost(self, partitions: Any) -> None:
        self.calls.append(("lost", sorted(partitions)))


def beat(rig: Any, code: int) -> None:
    """The next heartbeat is answered with `code`."""
    rig.on(ApiKeys.HEARTBEAT, heartbeat.HeartbeatResponse(error_code=code))
    rig.time.advance(3000)
    rig.rounds(2)


def poll_for(rig: Any, ms: int) -> list[Any]:
    deadline = rig.time.monotonic_ms() + ms
    records: list[Any] = []
    while rig.time.monotonic_ms() < deadline:
        records += rig.consumer.poll(10)
    return records


class TestJoining:
    def test_the_listener_hears_of_the_partitions_before_any_record(self, rig: Any) -> None:
        rig.fill(T0, 5)
        told = Told()
        records = rig.join(("t",), told)
        assert told.calls == [("assigned", [T0, T1])]
        assert len(records + poll_for(rig, 200)) == 5

    def test_a_new_member_joins_again_with_the_id_it_is_given(self, rig: Any) -> None:
        rig.join()
        assert [request.member_id for request in rig.sent(ApiKeys.JOIN_GROUP)] == ["", "m-1"]
        assert rig.consumer.group_metadata().member_id == "m-1"
        assert rig.consumer.group_metadata().generation_id == 1

    def test_nobody_joins_before_the_first_poll(self, rig: Any) -> None:
        rig.consumer.subscribe(["t"])
        rig.rounds(50)
        assert not rig.sent(ApiKeys.JOIN_GROUP)

    def test_a_position_sought_in_the_callback_is_where_reading_starts(self, rig: Any) -> None:
        rig.fill(T0, 5)
        records = rig.join(("t",), Told(assigned=lambda: rig.consumer.seek(T0, 3)))
        assert [record.offset for record in records + poll_for(rig, 500)] == [3, 4]

    def test_a_rack_and_an_instance_id_are_told(self, make_rig: Callable[..., Any]) -> None:
        rig = make_rig(group_id="g", client_rack="here", group_instance_id="i-1", enable_auto_commit=False)
        rig.join()
        request = rig.sent(ApiKeys.JOIN_GROUP)[-1]
        assert request.group_instance_id == "i-1"
        assert group_protocol.decode_subscription(request.protocols[0].metadata).rack_id == "here"

    def test_a_follower_takes_what_the_leader_gives(self, rig: Any) -> None:
        given = group_protocol.encode_assignment(Assignment((T1,)))
        rig.handlers[ApiKeys.JOIN_GROUP] = lambda request, _: join_group.JoinGroupResponse(
            generation_id=4, protocol_name="range", leader="other", member_id="m-7"
        )
        rig.on(ApiKeys.SYNC_GROUP, sync_group.SyncGroupResponse(assignment=given))
        rig.join()
        assert rig.consumer.assignment() == {T1}
        assert rig.sent(ApiKeys.SYNC_GROUP)[0].assignments == []

    def test_a_leader_asks_for_topics_that_only_others_subscribe_to(self, rig: Any) -> None:
        other = group_protocol.encode_subscription(Subscription(("u",)))
        rig.members = [join_group.JoinGroupResponseMember(member_id="m-2", metadata=other)]
        rig.join()
        sent = {a.member_id: a.assignment for a in rig.sent(ApiKeys.SYNC_GROUP)[0].assignments}
        assert group_protocol.decode_assignment(sent["m-2"]).partitions == (U0, U1)

    def test_a_leader_that_joins_before_its_own_topics_are_known_waits_for_them(self, rig: Any) -> None:
        told = Told()
        rig.metadata_held = True
        rig.consumer.subscribe(("t",), told)
        poll_for(rig, 200)
        assert rig.sent(ApiKeys.JOIN_GROUP)
        assert told.calls == []
        rig.metadata_held = False
        poll_for(rig, 200)
        assert told.calls == [("assigned", [T0, T1])]

    def test_a_topic_that_is_not_there_does_not_keep_a_leader_waiting(self, rig: Any) -> None:
        told = Told()
        rig.consumer.subscribe(("nowhere", "t"), told)
        poll_for(rig, 500)
        assert told.calls[0] == ("assigned", [T0, T1])

    def test_a_member_with_a_malformed_subscription_does_not_keep_the_others_from_theirs(
        self, rig: Any
    ) -> None:
        for garbage in (b"", b"\0", b"\0\1\xff\xff\xff\xff", b"\xff\xff\0\0"):
            rig.members.append(join_group.JoinGroupResponseMember(member_id=repr(garbage), metadata=garbage))
        rig.join()
        assert rig.consumer.assignment() == {T0, T1}
        assert len(rig.sent(ApiKeys.SYNC_GROUP)) == 1

    def test_an_assignment_that_cannot_be_read_is_raised(self, rig: Any) -> None:
        rig.on(ApiKeys.SYNC_GROUP, sync_group.SyncGroupResponse(assignment=b"\0\1\x7f\xff\xff\xff"))
        rig.consumer.subscribe(["t"])
        with pytest.raises(SchemaError):
            poll_for(rig, 1000)

    def test_a_static_leader_that_comes_back_leaves_the_assignment_as_it_is(
        self, make_rig: Callable[..., Any]
    ) -> None:
        rig = make_rig(group_id="g", group_instance_id="i-1", enable_auto_commit=False)
        given = group_protocol.encode_assignment(Assignment((T1,)))
        mine = group_protocol.encode_subscription(Subscription(("t",)))
        rig.handlers[ApiKeys.JOIN_GROUP] = lambda request, _: join_group.JoinGroupResponse(
            generation_id=4,
            protocol_name="range",
            leader="m-7",
            member_id="m-7",
            skip_assignment=True,
            members=[join_group.JoinGroupResponseMember(member_id="m-7", metadata=mine)],
        )
        rig.on(ApiKeys.SYNC_GROUP, sync_group.SyncGroupResponse(assignment=given))
        rig.join()
        assert rig.sent(ApiKeys.SYNC_GROUP)[0].assignments == []
        rig.topics["t"] = 3
        rig.core.metadata.request_update()
        rig.handlers[ApiKeys.JOIN_GROUP] = lambda request, _: None
        poll_for(rig, 300)
        assert len(rig.sent(ApiKeys.JOIN_GROUP)) == 2  # yet it watches over the group's partitions

    def test_an_assignor_of_the_application_is_used_and_its_failure_raised(
        self, make_rig: Callable[..., Any]
    ) -> None:
        class Broken(ConsumerPartitionAssignor):
            NAME = "broken"

            def assign(self, cluster: Any, subscriptions: Any) -> Any:
                raise ZeroDivisionError

        rig = make_rig(group_id="g", partition_assignment_strategy=[Broken()])
        rig.consumer.subscribe(["t"])
        with pytest.raises(KafkaError, match="broken"):
            poll_for(rig, 1000)

    def test_an_assignor_that_would_end_the_program_fails_in_poll_like_any_other(
        self, make_rig: Callable[..., Any]
    ) -> None:
        class Ending(ConsumerPartitionAssignor):
            NAME = "ending"

            def assign(self, cluster: Any, subscriptions: Any) -> Any:
                raise SystemExit("mine")

        rig = make_rig(group_id="g", partition_assignment_strategy=[Ending()])
        rig.consumer.subscribe(["t"])
        with (
            ThreadPoolExecutor(1) as in_thread,
            pytest.raises(KafkaError, match=r"ending.*SystemExit\('mine'\)"),
        ):
            in_thread.submit(poll_for, rig, 1000).result(20)


class TestErrorsOfJoinAndSync:
    @pytest.mark.parametrize("code", [14, 15, 16, 25, 22, 27])
    def test_join_is_tried_again(self, rig: Any, code: int) -> None:
        rig.on(ApiKeys.JOIN_GROUP, join_group.JoinGroupResponse(error_code=code))
        rig.join()
        assert rig.consumer.assignment() == {T0, T1}

    @pytest.mark.parametrize("code", [14, 15, 16, 22, 25, 27])
    def test_sync_leads_to_another_join(self, rig: Any, code: int) -> None:
        rig.on(ApiKeys.SYNC_GROUP, sync_group.SyncGroupResponse(error_code=code))
        rig.join()
        assert rig.generation == 2

    @pytest.mark.parametrize(
        ("code", "error"),
        [(81, GroupMaxSizeReachedError), (23, InconsistentGroupProtocolError), (30, GroupAuthorizationError)],
    )
    def test_what_cannot_be_mended_is_raised_and_tried_again_with_the_next_poll(
        self, rig: Any, code: int, error: type[KafkaError]
    ) -> None:
        rig.on(ApiKeys.JOIN_GROUP, join_group.JoinGroupResponse(error_code=code))
        rig.consumer.subscribe(["t"])
        with pytest.raises(error):
            poll_for(rig, 1000)
        rig.rounds(20)
        assert len(rig.sent(ApiKeys.JOIN_GROUP)) == 1
        poll_for(rig, 500)
        assert rig.consumer.assignment() == {T0, T1}

    def test_an_unknown_code_keeps_its_number(self, rig: Any) -> None:
        rig.on(ApiKeys.JOIN_GROUP, join_group.JoinGroupResponse(error_code=32000))
        rig.consumer.subscribe(["t"])
        with pytest.raises(KafkaError) as caught:
            poll_for(rig, 1000)
        assert caught.value.code == 32000

    @pytest.mark.parametrize("api", [ApiKeys.JOIN_GROUP, ApiKeys.SYNC_GROUP, ApiKeys.FIND_COORDINATOR])
    def test_a_broken_connection_is_tried_again(self, rig: Any, api: ApiKeys) -> None:
        rig.on(api, ConnectionError())
        rig.join()
        assert rig.consumer.assignment() == {T0, T1}

    def test_a_coordinator_that_is_not_there_yet_is_asked_for_again(self, rig: Any) -> None:
        missing = find_coordinator.Coordinator(key="g", error_code=15)
        rig.on(ApiKeys.FIND_COORDINATOR, find_coordinator.FindCoordinatorResponse(coordinators=[missing]))
        rig.join()
        assert len(rig.sent(ApiKeys.FIND_COORDINATOR)) == 2

    def test_a_group_that_may_not_be_used_is_said_in_poll(self, rig: Any) -> None:
        refused = find_coordinator.Coordinator(key="g", error_code=30)
        rig.on(ApiKeys.FIND_COORDINATOR, find_coordinator.FindCoordinatorResponse(coordinators=[refused]))
        rig.consumer.subscribe(["t"])
        with pytest.raises(GroupAuthorizationError, match="'g'"):
            poll_for(rig, 1000)


class TestHeartbeats:
    def test_they_go_on_while_the_application_does_not_poll(self, rig: Any) -> None:
        rig.join()
        before = len(rig.sent(ApiKeys.HEARTBEAT))
        for _ in range(10):
            rig.time.advance(3000)
            rig.rounds(2)
        assert len(rig.sent(ApiKeys.HEARTBEAT)) - before == 10

    def test_a_rebalance_revokes_commits_in_the_callback_under_the_old_generation_and_assigns(
        self, rig: Any
    ) -> None:
        rig.fill(T0, 5)
        told = Told(revoked=rig.consumer.commit_sync)
        rig.join(("t",), told)
        poll_for(rig, 300)
        beat(rig, 27)
        assert told.calls == [("assigned", [T0, T1])]  # only poll tells
        poll_for(rig, 300)
        assert told.calls == [("assigned", [T0, T1]), ("revoked", [T0, T1]), ("assigned", [T0, T1])]
        assert rig.committed[T0] == 5
        assert rig.sent(ApiKeys.OFFSET_COMMIT)[-1].generation_id_or_member_epoch == 1

    @pytest.mark.parametrize("code", [22, 25])
    def test_a_member_that_was_removed_hears_that_its_partitions_are_lost(self, rig: Any, code: int) -> None:
        told = Told()
        rig.join(("t",), told)
        beat(rig, code)
        with pytest.raises(CommitFailedError):
            rig.consumer.commit_sync({T0: 1})
        poll_for(rig, 300)
        assert told.calls == [("assigned", [T0, T1]), ("lost", [T0, T1]), ("assigned", [T0, T1])]

    def test_a_moved_coordinator_costs_nothing(self, rig: Any) -> None:
        told = Told()
        rig.join(("t",), told)
        beat(rig, 16)
        poll_for(rig, 4000)
        assert len(rig.sent(ApiKeys.FIND_COORDINATOR)) == 2
        assert told.calls == [("assigned", [T0, T1])]
        assert rig.core.membership.state is MemberState.STABLE

    def test_an_instance_id_taken_over_is_final(self, make_rig: Callable[..., Any]) -> None:
        rig = make_rig(group_id="g", group_instance_id="i-1", enable_auto_commit=False)
        rig.join()
        beat(rig, 82)
        for _ in range(2):
            with pytest.raises(FencedInstanceIdError, match="i-1"):
                rig.consumer.poll(100)

    def test_without_polls_the_member_leaves_and_the_next_poll_joins_again(self, rig: Any) -> None:
        told = Told()
        rig.join(("t",), told)
        for _ in range(110):
            rig.time.advance(3000)
            rig.rounds(2)
        (left,) = rig.sent(ApiKeys.LEAVE_GROUP)
        assert "max.poll.interval.ms" in left.members[0].reason
        beats = len(rig.sent(ApiKeys.HEARTBEAT))
        rig.time.advance(10_000)
        rig.rounds(3)
        assert len(rig.sent(ApiKeys.HEARTBEAT)) == beats
        with pytest.raises(CommitFailedError):
            rig.consumer.commit_sync({T0: 1})
        poll_for(rig, 300)
        assert told.calls == [("assigned", [T0, T1]), ("lost", [T0, T1]), ("assigned", [T0, T1])]


class TestWatching:
    def test_a_leader_rebalances_when_a_topic_gets_partitions(self, rig: Any) -> None:
        rig.join()
        rig.topics["t"] = 3
        rig.core.metadata.request_update()
        poll_for(rig, 500)
        assert rig.consumer.assignment() == {T0, T1, TopicPartition("t", 2)}

    def test_a_pattern_takes_in_new_topics(self, rig: Any) -> None:
        rig.consumer.subscribe(re.compile("[tv]"))
        poll_for(rig, 500)
        assert rig.consumer.assignment() == {T0, T1}
        rig.topics["v"] = 1
        rig.topic_ids["v"] = rig.topic_ids["u"]
        rig.core.metadata.request_update()
        poll_for(rig, 500)
        assert rig.consumer.assignment() == {T0, T1, TopicPartition("v", 0)}
        assert rig.consumer.subscription() == {"t", "v"}

    def test_another_subscription_rebalances(self, rig: Any) -> None:
        rig.join()
        rig.consumer.subscribe(["u"])
        poll_for(rig, 500)
        assert rig.consumer.assignment() == {U0, U1}

    def test_enforce_rebalance_tells_its_reason(self, rig: Any) -> None:
        rig.join()
        rig.consumer.enforce_rebalance("because")
        poll_for(rig, 300)
        assert rig.sent(ApiKeys.JOIN_GROUP)[-1].reason == "because"


class TestLeaving:
    def test_close_tells_the_listener_while_commits_still_work_and_leaves(self, rig: Any) -> None:
        told = Told(revoked=lambda: rig.consumer.commit_sync({T0: 4}))
        rig.join(("t",), told)
        rig.consumer.close()
        assert told.calls[-1] == ("revoked", [T0, T1])
        assert rig.committed[T0] == 4
        assert len(rig.sent(ApiKeys.LEAVE_GROUP)) == 1

    def test_a_static_member_leaves_silently(self, make_rig: Callable[..., Any]) -> None:
        rig = make_rig(group_id="g", group_instance_id="i-1", enable_auto_commit=False)
        rig.join()
        rig.consumer.close()
        assert not rig.sent(ApiKeys.LEAVE_GROUP)

    def test_unsubscribe_leaves_and_another_subscription_starts_afresh(self, rig: Any) -> None:
        told = Told()
        rig.join(("t",), told)
        rig.consumer.unsubscribe()
        assert rig.consumer.assignment() == frozenset()
        assert told.calls[-1] == ("revoked", [T0, T1])
        rig.consumer.assign([U0])
        rig.consumer.unsubscribe()
        rig.join(("u",))
        assert rig.consumer.assignment() == {U0, U1}

    def test_an_error_of_the_listener_surfaces_and_the_rebalance_goes_on(self, rig: Any) -> None:
        told = Told(revoked=lambda: 1 // 0)
        rig.join(("t",), told)
        rig.consumer.enforce_rebalance()
        with pytest.raises(ZeroDivisionError):
            poll_for(rig, 300)
        told.revoked = lambda: None
        poll_for(rig, 300)
        assert rig.generation == 2
        assert rig.consumer.assignment() == {T0, T1}

    def test_an_error_of_the_listener_at_close_surfaces_after_everything_is_closed(self, rig: Any) -> None:
        rig.join(("t",), Told(revoked=lambda: 1 // 0))
        with pytest.raises(ZeroDivisionError):
            rig.consumer.close()
        assert len(rig.sent(ApiKeys.LEAVE_GROUP)) == 1


class TestCommitting:
    def test_in_order_and_with_metadata(self, rig: Any) -> None:
        from kclient.common.offsets import OffsetAndMetadata

        rig.consumer.assign([T0])
        rig.consumer.commit_sync({T0: OffsetAndMetadata(7, "note", 3)})
        partition = rig.sent(ApiKeys.OFFSET_COMMIT)[0].topics[0].partitions[0]
        assert (partition.committed_offset, partition.committed_metadata) == (7, "note")
        assert partition.committed_leader_epoch == 3

    @pytest.mark.parametrize("code", [14, 15, 16, 3, 7])
    def test_commit_sync_retries(self, rig: Any, code: int) -> None:
        rig.consumer.assign([T0])
        rig.on(ApiKeys.OFFSET_COMMIT, rig.refuse_commit(code), ConnectionError())
        rig.consumer.commit_sync({T0: 7})
        assert rig.committed == {T0: 7}

    @pytest.mark.parametrize(
        ("code", "error"),
        [
            (22, "CommitFailedError"),
            (25, "CommitFailedError"),
            (27, "RebalanceInProgressError"),
            (12, "OffsetMetadataTooLargeError"),
            (28, "InvalidCommitOffsetSizeError"),
            (29, "TopicAuthorizationError"),
            (30, "GroupAuthorizationError"),
            (82, "FencedInstanceIdError"),
            (32000, "UnknownServerError"),
        ],
    )
    def test_what_is_final_is_raised_by_its_name(self, rig: Any, code: int, error: str) -> None:
        rig.join()
        rig.on(ApiKeys.OFFSET_COMMIT, rig.refuse_commit(code))
        with pytest.raises(KafkaError) as caught:
            rig.consumer.commit_sync({T0: 7})
        assert type(caught.value).__name__ == error

    def test_commit_async_does_not_retry_and_tells_in_a_later_call(self, rig: Any) -> None:
        rig.consumer.assign([T0])
        rig.on(ApiKeys.OFFSET_COMMIT, rig.refuse_commit(14))
        told: list[Any] = []
        rig.consumer.commit_async({T0: 7}, lambda offsets, error: told.append((dict(offsets), error)))
        rig.consumer.commit_async({T0: 8}, lambda offsets, error: told.append((dict(offsets), error)))
        assert len(told) < 2
        rig.consumer.poll(100)
        assert [error is None for _, error in told] == [False, True]
        assert type(told[0][1]).__name__ == "RetriableCommitFailedError"
        assert rig.committed == {T0: 8}

    def test_while_joining_it_is_refused_as_a_rebalance(self, rig: Any) -> None:
        rig.join()
        rig.handlers[ApiKeys.JOIN_GROUP] = lambda request, _: None
        rig.consumer.enforce_rebalance()
        rig.consumer.poll(100)
        with pytest.raises(RebalanceInProgressError):
            rig.consumer.commit_sync({T0: 1})
