"""The member of a share group: joining, heartbeats, being fenced, leaving."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.consumer.share_model import ShareModel
from harness.consumer.ways import SHARE, pairs, watched
from kclient.client.api_versions import NodeApiVersions
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.share.member_state import ShareMemberState
from kclient.errors import (
    Errors,
    GroupAuthorizationError,
    KafkaError,
    TopicAuthorizationError,
    UnsupportedVersionError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatResponse

T0 = TopicPartition("t", 0)


def heartbeats(share: ShareModel) -> list[Any]:
    return share.sent(ApiKeys.SHARE_GROUP_HEARTBEAT)


def refusal(code: int) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(error_code=code, error_message="no")


def test_a_member_tells_everything_once_and_then_what_has_changed(share: ShareModel) -> None:
    share.subscribe()
    share.poll(2500)
    first, *others = heartbeats(share)
    assert (first.member_epoch, first.subscribed_topic_names) == (0, ["t"])
    assert {each.member_epoch for each in others} == {1}
    assert all(each.subscribed_topic_names is None for each in others)
    assert {each.member_id for each in heartbeats(share)} == {share.core.membership.member_id}
    share.consumer.subscribe(["t", "u"])
    share.poll(50)
    assert heartbeats(share)[-1].subscribed_topic_names == ["t", "u"]


def test_the_coordinator_says_how_often_a_heartbeat_comes(share: ShareModel) -> None:
    share.subscribe()
    before = len(heartbeats(share))
    share.poll(5000)
    assert 4 <= len(heartbeats(share)) - before <= 6


def test_the_rack_is_told_at_joining(make_share: Callable[..., ShareModel]) -> None:
    share = make_share(client_rack="r1")
    share.subscribe()
    assert heartbeats(share)[0].rack_id == "r1"


@pytest.mark.parametrize("code", [Errors.FENCED_MEMBER_EPOCH, Errors.UNKNOWN_MEMBER_ID])
def test_a_member_that_the_group_does_not_know_joins_anew(share: ShareModel, code: int) -> None:
    share.subscribe()
    share.on(ApiKeys.SHARE_GROUP_HEARTBEAT, refusal(code))
    share.poll(1500)
    epochs = [each.member_epoch for each in heartbeats(share)]
    assert epochs[-2:] == [1, 0] or 0 in epochs[1:]
    rejoined = next(each for each in heartbeats(share)[1:] if each.member_epoch == 0)
    assert rejoined.subscribed_topic_names == ["t"]
    share.fill(T0, 1)
    assert len(share.poll(2000)) == 1


@pytest.mark.parametrize("code", [Errors.NOT_COORDINATOR, Errors.COORDINATOR_NOT_AVAILABLE])
def test_another_coordinator_is_looked_for_and_told_everything(share: ShareModel, code: int) -> None:
    share.subscribe()
    searches = len(share.sent(ApiKeys.FIND_COORDINATOR))
    share.on(ApiKeys.SHARE_GROUP_HEARTBEAT, refusal(code))
    share.poll(3000)
    assert len(share.sent(ApiKeys.FIND_COORDINATOR)) == searches + 1
    assert [each.subscribed_topic_names for each in heartbeats(share)].count(["t"]) == 2
    assert share.core.membership.state is ShareMemberState.STABLE


def test_a_coordinator_that_is_loading_is_asked_again(share: ShareModel) -> None:
    share.on(ApiKeys.SHARE_GROUP_HEARTBEAT, *[refusal(Errors.COORDINATOR_LOAD_IN_PROGRESS)] * 3)
    share.subscribe()
    assert share.core.membership.state is ShareMemberState.STABLE


@pytest.mark.parametrize(
    ("code", "error", "text"),
    [
        (Errors.GROUP_AUTHORIZATION_FAILED, GroupAuthorizationError, "share group 'g'"),
        (Errors.UNSUPPORTED_VERSION, UnsupportedVersionError, r"share\.version"),
        (Errors.GROUP_MAX_SIZE_REACHED, KafkaError, "no"),
    ],
)
def test_a_refusal_is_raised_and_the_next_poll_tries_again(
    share: ShareModel, code: int, error: type[KafkaError], text: str
) -> None:
    share.on(ApiKeys.SHARE_GROUP_HEARTBEAT, refusal(code))
    share.consumer.subscribe(["t"])
    with pytest.raises(error, match=text):
        share.poll()
    assert share.core.membership.state is ShareMemberState.FATAL
    share.fill(T0, 1)
    assert len(share.poll()) == 1


def test_a_broker_without_share_groups_is_named_as_that(share: ShareModel) -> None:
    apis = set(ApiKeys) - {ApiKeys.SHARE_GROUP_HEARTBEAT}
    share.client.set_api_versions(NodeApiVersions.all_of_ours(apis))
    share.client.features["share.version"] = 0
    share.consumer.subscribe(["t"])
    with pytest.raises(UnsupportedVersionError, match=r"no share groups .* is at 0 here"):
        share.poll()


def test_a_topic_that_may_not_be_described_is_raised_and_the_member_stays(share: ShareModel) -> None:
    share.subscribe()
    share.on(ApiKeys.SHARE_GROUP_HEARTBEAT, refusal(Errors.TOPIC_AUTHORIZATION_FAILED))
    with pytest.raises(TopicAuthorizationError):
        share.poll(3000)
    assert share.core.membership.state is ShareMemberState.STABLE


def test_a_member_whose_application_is_stuck_leaves_and_comes_back_with_the_next_poll(
    make_share: Callable[..., ShareModel],
) -> None:
    share = make_share(max_poll_interval_ms=3000)
    share.subscribe()
    share.rounds(400)
    assert share.core.membership.state is ShareMemberState.STALE
    assert heartbeats(share)[-1].member_epoch == -1
    share.fill(T0, 1)
    assert len(share.poll()) == 1
    assert share.core.membership.state is ShareMemberState.STABLE


def test_who_waits_inside_poll_is_not_stuck(make_share: Callable[..., ShareModel]) -> None:
    share = make_share(max_poll_interval_ms=3000)
    share.subscribe()
    assert share.poll(10_000) == []
    assert all(each.member_epoch >= 0 for each in heartbeats(share))


def test_a_member_whose_leaving_was_answered_late_joins_again(make_share: Callable[..., ShareModel]) -> None:
    share = make_share(default_api_timeout_ms=200)
    share.subscribe()
    held: list[Any] = []

    def hold(request: Any, version: int) -> Any:
        return None if not held else share.share_heartbeat(request, version)

    share.handlers[ApiKeys.SHARE_GROUP_HEARTBEAT] = hold
    share.consumer.unsubscribe()
    share.consumer.unsubscribe()
    share.consumer.subscribe(["t"])
    assert share.poll(100) == []
    assert share.core.membership.state is ShareMemberState.LEAVING
    held.append(True)
    share.fill(T0, 1)
    assert len(share.poll(3000)) == 1
    assert share.core.membership.state is ShareMemberState.STABLE


def test_closing_ends_the_sessions_and_then_leaves(share: ShareModel) -> None:
    share.subscribe()
    share.poll(50)
    share.consumer.close()
    last = [sent.message for sent in share.client.sent][-2:]
    assert last[0].share_session_epoch == -1
    assert last[1].member_epoch == -1


def test_closing_takes_no_longer_than_it_may(share: ShareModel) -> None:
    share.subscribe()
    share.poll(50)
    share.handlers.pop(ApiKeys.SHARE_ACKNOWLEDGE)
    share.handlers.pop(ApiKeys.SHARE_GROUP_HEARTBEAT)
    before_ms = share.time.monotonic_ms()
    share.consumer.close(500)
    assert share.time.monotonic_ms() - before_ms < 700


EVENTS = (
    "poll",
    "subscribe",
    "unsubscribe",
    "fence",
    "unknown",
    "move",
    "load",
    "refuse",
    "break",
    "wait",
    "stuck",
)


@settings(max_examples=60, deadline=None)
@given(events=st.lists(st.sampled_from(EVENTS), max_size=14))
def test_whatever_happens_the_member_comes_back_and_reads_on(events: list[str]) -> None:
    share = ShareModel(max_poll_interval_ms=30_000)
    with watched(ShareMemberState) as taken:
        try:
            share.consumer.subscribe(["t"])
            for event in events:
                happen(share, event)
            share.handlers[ApiKeys.SHARE_GROUP_HEARTBEAT] = share.share_heartbeat
            share.consumer.subscribe(["t"])
            share.fill(T0, 1)
            end = share.shares[T0].end - 1
            seen: set[int] = set()
            for _ in range(20):
                try:
                    seen |= {record.offset for record in share.poll(1000) if record.partition == 0}
                except GroupAuthorizationError:
                    continue
                if end in seen:
                    break
            assert end in seen
            assert share.core.membership.state is ShareMemberState.STABLE
        finally:
            share.consumer.close(100)
        assert share.core.membership.state is ShareMemberState.UNJOINED
    assert taken.keys() <= pairs(SHARE)


def happen(share: ShareModel, event: str) -> None:
    codes = {
        "fence": Errors.FENCED_MEMBER_EPOCH,
        "unknown": Errors.UNKNOWN_MEMBER_ID,
        "move": Errors.NOT_COORDINATOR,
        "load": Errors.COORDINATOR_LOAD_IN_PROGRESS,
        "refuse": Errors.GROUP_AUTHORIZATION_FAILED,
    }
    if event in codes:
        share.on(ApiKeys.SHARE_GROUP_HEARTBEAT, refusal(codes[event]))
    elif event == "break":
        share.on(ApiKeys.SHARE_GROUP_HEARTBEAT, ConnectionError())
    elif event == "subscribe":
        share.consumer.subscribe(["t", "u"])
    elif event == "unsubscribe":
        share.consumer.unsubscribe()
    elif event == "wait":
        share.rounds(150)
    elif event == "stuck":
        share.time.advance(40_000)
        share.rounds(2)
    elif event == "poll" and not share.core.subscription.has_nothing():
        try:
            share.poll(1200)
        except GroupAuthorizationError:
            pass
