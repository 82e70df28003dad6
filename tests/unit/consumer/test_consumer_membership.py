"""Being a member of a group whose coordinator assigns, over a whole consumer without threads."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from typing import Any

import pytest

from harness.consumer.consumer_group import ConsumerGroupModel, Told
from kclient.client.api_versions import NodeApiVersions
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.consumer import GroupMembershipOperation
from kclient.consumer.internals.coordinator.consumer_member_state import ConsumerMemberState
from kclient.errors import (
    Errors,
    FencedInstanceIdError,
    GroupAuthorizationError,
    GroupMaxSizeReachedError,
    InvalidRegularExpressionError,
    InvalidRequestError,
    KafkaError,
    TopicAuthorizationError,
    UnreleasedInstanceIdError,
    UnsupportedAssignorError,
    UnsupportedVersionError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import consumer_group_heartbeat

T0, T1, U0, U1 = (TopicPartition(topic, number) for topic in "tu" for number in (0, 1))
HEARTBEAT = ApiKeys.CONSUMER_GROUP_HEARTBEAT


class TestJoining:
    def test_the_listener_hears_of_the_partitions_before_any_record(self, group: ConsumerGroupModel) -> None:
        group.rig.fill(T0, 5)
        told = Told()
        records = group.join(("t",), told)
        assert told.calls == [("assigned", [T0, T1])]
        assert len(records + group.poll_for(200)) == 5

    def test_nobody_joins_before_the_first_poll(self, group: ConsumerGroupModel) -> None:
        group.rig.consumer.subscribe(["t"])
        group.rig.rounds(50)
        assert not group.requests

    def test_the_first_heartbeat_says_everything_and_the_next_ones_what_has_changed(
        self, make_member: Callable[..., ConsumerGroupModel]
    ) -> None:
        group = make_member(
            group_remote_assignor="range",
            client_rack="here",
            group_instance_id="i-1",
            max_poll_interval_ms=70_000,
        )
        group.join(("u", "t"))
        group.poll_for(1500)
        first, acknowledgement, third = group.requests[:3]
        assert Uuid.from_base64(first.member_id)
        assert (first.member_epoch, first.instance_id, first.rack_id) == (0, "i-1", "here")
        assert (first.rebalance_timeout_ms, first.server_assignor) == (70_000, "range")
        assert first.subscribed_topic_names == ["t", "u"]
        assert first.topic_partitions == []
        assert (acknowledgement.member_id, acknowledgement.member_epoch) == (first.member_id, 1)
        assert {each.topic_id: each.partitions for each in acknowledgement.topic_partitions or ()} == {
            group.rig.topic_ids["t"]: [0, 1],
            group.rig.topic_ids["u"]: [0, 1],
        }
        for request in (acknowledgement, third):
            assert (request.rebalance_timeout_ms, request.server_assignor, request.rack_id) == (
                -1,
                None,
                None,
            )
            assert (request.subscribed_topic_names, request.subscribed_topic_regex) == (None, None)
            assert request.instance_id == "i-1"
        assert third.topic_partitions is None

    def test_heartbeats_come_as_often_as_the_coordinator_says(self, group: ConsumerGroupModel) -> None:
        group.interval_ms = 700
        group.join()
        before = len(group.requests)
        group.poll_for(7050)
        assert len(group.requests) - before == 10

    def test_an_interval_that_none_can_be_is_ignored(self, group: ConsumerGroupModel) -> None:
        group.interval_ms = 0
        group.join()
        before = len(group.requests)
        group.poll_for(3100)
        assert len(group.requests) - before == 1  # as heartbeat.interval.ms has it

    def test_a_member_without_partitions_is_told_so_once(self, group: ConsumerGroupModel) -> None:
        told = Told()
        group.want()
        group.join(("t",), told)
        group.poll_for(3000)
        assert told.calls == [("assigned", [])]

    def test_a_position_sought_in_the_callback_is_where_reading_starts(
        self, group: ConsumerGroupModel
    ) -> None:
        group.rig.fill(T0, 5)
        records = group.join(("t",), Told(assigned=lambda: group.rig.consumer.seek(T0, 3)))
        assert [record.offset for record in records + group.poll_for(500)] == [3, 4]

    def test_names_that_match_a_compiled_pattern_are_sent_as_topics_and_again_when_they_change(
        self, group: ConsumerGroupModel
    ) -> None:
        group.join(re.compile("t|v.*"))
        assert group.requests[0].subscribed_topic_names == ["t"]
        group.rig.topics["vv"], group.rig.topic_ids["vv"] = 1, Uuid(b"v" * 16)
        group.rig.core.metadata.request_update()
        group.poll_for(100)
        assert group.requests[-2].subscribed_topic_names == ["t", "vv"]
        assert group.rig.consumer.assignment() == {T0, T1, TopicPartition("vv", 0)}

    def test_another_subscription_is_told_at_once(self, group: ConsumerGroupModel) -> None:
        told = Told()
        group.join(("t",), told)
        group.rig.consumer.subscribe(["u"], told)
        group.poll_for(100)
        assert group.requests[2].subscribed_topic_names == ["u"]
        assert told.calls == [
            ("assigned", [T0, T1]),
            ("revoked", [T0, T1]),
            ("assigned", []),
            ("assigned", [U0, U1]),
        ]


class TestFencing:
    @pytest.mark.parametrize("code", [Errors.FENCED_MEMBER_EPOCH, Errors.UNKNOWN_MEMBER_ID])
    def test_a_member_that_was_removed_has_lost_its_partitions_and_joins_with_the_same_id(
        self, group: ConsumerGroupModel, code: int
    ) -> None:
        told = Told()
        group.join(("t",), told)
        group.remove_member()
        group.rig.on(HEARTBEAT, group.refuse(code))
        group.poll_for(1200)
        assert told.calls == [("assigned", [T0, T1]), ("lost", [T0, T1]), ("assigned", [T0, T1])]
        joined = [request for request in group.requests if request.member_epoch == 0]
        assert len({request.member_id for request in group.requests}) == 1
        assert len(joined) == 2
        assert joined[1].subscribed_topic_names == ["t"]

    def test_it_joins_only_when_the_application_has_heard_of_the_loss(
        self, group: ConsumerGroupModel
    ) -> None:
        group.join()
        group.remove_member()
        group.rig.rounds(200)
        assert group.state is ConsumerMemberState.FENCED
        before = len(group.requests)
        group.rig.rounds(500)
        assert len(group.requests) == before

    def test_one_that_is_fenced_while_it_joins_does_not_hammer(self, group: ConsumerGroupModel) -> None:
        group.rig.handlers[HEARTBEAT] = group.refuse(Errors.FENCED_MEMBER_EPOCH)
        group.rig.consumer.subscribe(["t"])
        group.poll_for(1000)
        assert 2 <= len(group.requests) <= 13

    def test_a_callback_under_way_when_the_member_is_fenced_is_not_followed_by_the_next(
        self, group: ConsumerGroupModel
    ) -> None:
        def be_removed() -> None:
            group.remove_member()
            group.rig.rounds(200)

        told = Told(revoked=be_removed)
        group.join(("t",), told)
        group.want(T1)
        group.poll_for(3500)
        assert told.calls == [
            ("assigned", [T0, T1]),
            ("revoked", [T0]),
            ("lost", [T1]),
            ("assigned", [T1]),
        ]

    def test_an_application_that_does_not_poll_loses_its_partitions_and_joins_when_it_does(
        self, make_member: Callable[..., ConsumerGroupModel]
    ) -> None:
        group = make_member(max_poll_interval_ms=10_000)
        told = Told()
        group.join(("t",), told)
        group.rig.time.advance(10_100)
        group.rig.rounds(20)
        assert group.left == [-1]
        assert group.state is ConsumerMemberState.STALE
        assert told.calls == [("assigned", [T0, T1])]
        group.poll_for(100)
        assert told.calls[1:] == [("lost", [T0, T1]), ("assigned", [T0, T1])]

    def test_a_static_member_that_does_not_poll_keeps_its_place(
        self, make_member: Callable[..., ConsumerGroupModel]
    ) -> None:
        group = make_member(max_poll_interval_ms=10_000, group_instance_id="i-1")
        group.join()
        group.rig.time.advance(10_100)
        group.rig.rounds(20)
        assert group.left == [-2]


class TestErrors:
    @pytest.mark.parametrize(
        ("code", "error", "words"),
        [
            (Errors.GROUP_AUTHORIZATION_FAILED, GroupAuthorizationError, "'g'"),
            (Errors.INVALID_REQUEST, InvalidRequestError, "the broker's words"),
            (Errors.GROUP_MAX_SIZE_REACHED, GroupMaxSizeReachedError, "the broker's words"),
            (Errors.UNSUPPORTED_ASSIGNOR, UnsupportedAssignorError, "the broker's words"),
            (Errors.UNRELEASED_INSTANCE_ID, UnreleasedInstanceIdError, "the broker's words"),
            (Errors.INVALID_REGULAR_EXPRESSION, InvalidRegularExpressionError, "the broker's words"),
            (Errors.UNSUPPORTED_VERSION, UnsupportedVersionError, "set group.protocol=classic"),
            (Errors.UNKNOWN_SERVER_ERROR, KafkaError, "the broker's words"),
        ],
    )
    def test_what_the_member_cannot_go_on_after_is_raised_and_the_next_poll_joins_again(
        self, group: ConsumerGroupModel, code: int, error: type[KafkaError], words: str
    ) -> None:
        told = Told()
        group.join(("t",), told)
        group.rig.on(HEARTBEAT, group.refuse(code, "the broker's words"))
        with pytest.raises(error, match=words):
            group.poll_for(1500)
        assert group.state is ConsumerMemberState.FATAL
        before = len(group.requests)
        group.rig.rounds(300)
        assert len(group.requests) == before
        group.poll_for(100)
        assert told.calls == [("assigned", [T0, T1]), ("lost", [T0, T1]), ("assigned", [T0, T1])]

    def test_one_that_is_not_let_in_does_not_try_again_by_itself(self, group: ConsumerGroupModel) -> None:
        group.rig.on(HEARTBEAT, group.refuse(Errors.GROUP_MAX_SIZE_REACHED))
        with pytest.raises(GroupMaxSizeReachedError):
            group.join()
        group.rig.rounds(300)
        assert len(group.requests) == 1
        group.join()

    def test_a_cluster_without_the_protocol_is_said_to_be_one(self, group: ConsumerGroupModel) -> None:
        group.rig.client.set_api_versions(brokers_with_heartbeats_up_to(None))
        group.rig.consumer.subscribe(["t"])
        with pytest.raises(
            UnsupportedVersionError, match=r"does not support the consumer protocol .*group\.protocol=classic"
        ):
            group.poll_for(500)

    def test_a_place_that_another_one_took_stays_lost(
        self, make_member: Callable[..., ConsumerGroupModel]
    ) -> None:
        group = make_member(group_instance_id="i-1")
        group.join()
        group.rig.on(HEARTBEAT, group.refuse(Errors.FENCED_INSTANCE_ID))
        for _ in range(2):
            with pytest.raises(FencedInstanceIdError, match="'i-1'"):
                group.poll_for(1500)

    def test_missing_rights_for_a_topic_are_raised_once_a_poll_and_the_member_stays(
        self, group: ConsumerGroupModel
    ) -> None:
        told = Told()
        group.join(("t",), told)
        usual = group.rig.handlers[HEARTBEAT]
        group.rig.handlers[HEARTBEAT] = group.refuse(Errors.TOPIC_AUTHORIZATION_FAILED, "topic t")
        group.rig.rounds(500)
        with pytest.raises(TopicAuthorizationError, match="topic t"):
            group.rig.consumer.poll(0)
        group.rig.handlers[HEARTBEAT] = usual
        group.poll_for(2000)
        assert told.calls == [("assigned", [T0, T1])]

    @pytest.mark.parametrize(
        "code",
        [Errors.NOT_COORDINATOR, Errors.COORDINATOR_NOT_AVAILABLE, Errors.COORDINATOR_LOAD_IN_PROGRESS],
    )
    def test_a_coordinator_that_moves_or_loads_is_told_everything_again(
        self, group: ConsumerGroupModel, code: int
    ) -> None:
        told = Told()
        group.join(("t",), told)
        found = len(group.rig.sent(ApiKeys.FIND_COORDINATOR))
        before = len(group.requests)
        group.rig.on(HEARTBEAT, group.refuse(code))
        group.poll_for(1500)
        again = group.requests[before + 1]
        assert again.member_epoch == 1
        assert again.subscribed_topic_names == ["t"]
        assert again.rebalance_timeout_ms == 300_000
        assert len(again.topic_partitions or ()) == 1
        looked = len(group.rig.sent(ApiKeys.FIND_COORDINATOR)) - found
        assert looked == (0 if code == Errors.COORDINATOR_LOAD_IN_PROGRESS else 1)
        assert told.calls == [("assigned", [T0, T1])]

    def test_an_answer_that_is_lost_is_made_up_for(self, group: ConsumerGroupModel) -> None:
        told = Told()
        group.join(("t",), told)
        group.want(T1)
        usual = group.heartbeat

        def heard_and_lost(request: Any, version: int) -> Any:
            usual(request, version)
            return ConnectionError("lost")

        group.rig.on(HEARTBEAT, heard_and_lost)
        group.poll_for(3000)
        assert told.calls == [("assigned", [T0, T1]), ("revoked", [T0]), ("assigned", [])]
        assert group.state is ConsumerMemberState.STABLE
        assert len(group.acknowledged) == 1

    def test_a_coordinator_that_does_not_answer_for_long_does_not_keep_the_thread_busy(
        self, group: ConsumerGroupModel
    ) -> None:
        group.join()
        group.rig.handlers[HEARTBEAT] = lambda _request, _version: None
        group.rig.rounds(200)
        group.rig.time.advance(100_000)
        group.rig.rounds(2)
        membership = group.rig.core.membership
        assert membership is not None
        assert membership.poll(group.rig.time.monotonic_ms()) > 0

    def test_an_epoch_that_none_can_be_is_not_believed(self, group: ConsumerGroupModel) -> None:
        group.join()
        answer = consumer_group_heartbeat.ConsumerGroupHeartbeatResponse(
            member_epoch=-1, heartbeat_interval_ms=1000
        )
        group.rig.on(HEARTBEAT, answer)
        group.poll_for(2000)
        assert group.rig.consumer.group_metadata().generation_id == 1
        assert group.state is ConsumerMemberState.STABLE


class TestLeaving:
    @pytest.mark.parametrize(
        ("instance_id", "operation", "epochs"),
        [
            (None, GroupMembershipOperation.DEFAULT, [-1]),
            (None, GroupMembershipOperation.LEAVE_GROUP, [-1]),
            (None, GroupMembershipOperation.REMAIN_IN_GROUP, []),
            ("i-1", GroupMembershipOperation.DEFAULT, [-2]),
            ("i-1", GroupMembershipOperation.LEAVE_GROUP, [-1]),
            ("i-1", GroupMembershipOperation.REMAIN_IN_GROUP, [-2]),
        ],
    )
    def test_the_last_epoch_says_what_becomes_of_the_place(
        self,
        make_member: Callable[..., ConsumerGroupModel],
        instance_id: str | None,
        operation: GroupMembershipOperation,
        epochs: list[int],
    ) -> None:
        group = make_member(group_instance_id=instance_id)
        told = Told()
        group.join(("t",), told)
        group.rig.consumer.close(group_membership_operation=operation)
        assert group.left == epochs
        assert told.calls[1:] == [("revoked", [T0, T1])]

    def test_a_member_that_unsubscribes_joins_again_with_the_same_id(self, group: ConsumerGroupModel) -> None:
        group.join()
        group.rig.consumer.unsubscribe()
        assert group.left == [-1]
        poll_count = len(group.requests)
        group.rig.rounds(300)
        assert len(group.requests) == poll_count
        group.join(("u",))
        assert len({request.member_id for request in group.requests}) == 1
        assert group.rig.consumer.assignment() == {U0, U1}

    def test_a_member_whose_join_was_not_answered_leaves_as_well(self, group: ConsumerGroupModel) -> None:
        usual = group.heartbeat
        group.rig.handlers[HEARTBEAT] = lambda request, version: (
            usual(request, version) if request.member_epoch < 0 else None
        )
        group.rig.consumer.subscribe(["t"])
        group.poll_for(100)
        group.rig.consumer.unsubscribe()
        assert [request.member_epoch for request in group.requests] == [0, -1]

    def test_an_answer_to_a_heartbeat_from_before_it_left_concerns_nobody(
        self, group: ConsumerGroupModel
    ) -> None:
        group.join()
        usual = group.heartbeat
        group.rig.handlers[HEARTBEAT] = lambda request, version: (
            usual(request, version) if request.member_epoch < 0 else None
        )
        group.rig.rounds(150)
        group.rig.consumer.unsubscribe()
        group.rig.handlers[HEARTBEAT] = usual
        group.rig.rounds(10)
        assert group.state is ConsumerMemberState.UNSUBSCRIBED

    def test_one_that_never_joined_says_nothing(self, group: ConsumerGroupModel) -> None:
        group.rig.consumer.subscribe(["t"])
        group.rig.consumer.unsubscribe()
        assert not group.requests

    def test_a_rebalance_is_not_enforced_but_warned_of(
        self, group: ConsumerGroupModel, caplog: pytest.LogCaptureFixture
    ) -> None:
        group.join()
        before = len(group.requests)
        with caplog.at_level(logging.WARNING):
            group.rig.consumer.enforce_rebalance("new shard map")
        group.poll_for(500)
        assert len(group.requests) == before
        assert "new shard map" in caplog.text


class TestBeingAsked:
    def test_health_and_metrics_tell_of_the_member(self, group: ConsumerGroupModel) -> None:
        group.join()
        group.poll_for(1500)
        health = group.rig.consumer.health()
        assert (health.member_state, health.reasons) == ("stable", ())
        assert health.last_heartbeat_ms is not None
        metrics = group.rig.consumer.metrics()
        assert metrics["rebalance-total"] == 1
        assert metrics["heartbeat-total"] == len(group.requests)
        assert metrics["failed-rebalance-total"] == 0
        assert metrics["last-rebalance-seconds-ago"] >= 1
        group.remove_member()
        group.poll_for(1500)
        assert group.rig.consumer.metrics()["rebalance-total"] == 2


def brokers_with_heartbeats_up_to(version: int | None) -> NodeApiVersions:
    ranges = {api.value: (api.min_version, api.max_version) for api in ApiKeys}
    del ranges[HEARTBEAT.value]
    return NodeApiVersions(ranges if version is None else {**ranges, HEARTBEAT.value: (0, version)})
