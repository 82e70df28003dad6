"""Error codes that this client does not know, in every answer of the group's coordinator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.coordinator.member_state import MemberState
from kclient.errors import UnknownServerError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import find_coordinator, heartbeat, join_group, offset_fetch, sync_group

UNKNOWN = 32000
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def poll_until_assigned(rig: Any) -> None:
    for _ in range(100):
        rig.consumer.poll(10)
        if rig.consumer.assignment():
            return
    raise AssertionError("the consumer got no partitions")


def group_error(request: Any, version: int) -> Any:
    group = offset_fetch.OffsetFetchResponseGroup(group_id="g", error_code=UNKNOWN)
    return offset_fetch.OffsetFetchResponse(groups=[group])


def partition_error(request: Any, version: int) -> Any:
    partition = offset_fetch.OffsetFetchResponsePartitions(partition_index=0, error_code=UNKNOWN)
    topic = offset_fetch.OffsetFetchResponseTopics(name="t", partitions=[partition])
    group = offset_fetch.OffsetFetchResponseGroup(group_id="g", topics=[topic])
    return offset_fetch.OffsetFetchResponse(groups=[group])


MISSING = find_coordinator.Coordinator(key="g", error_code=UNKNOWN)
IN_A_JOIN = {
    ApiKeys.FIND_COORDINATOR: find_coordinator.FindCoordinatorResponse(coordinators=[MISSING]),
    ApiKeys.JOIN_GROUP: join_group.JoinGroupResponse(error_code=UNKNOWN),
    ApiKeys.SYNC_GROUP: sync_group.SyncGroupResponse(error_code=UNKNOWN),
}


@pytest.mark.parametrize("api", IN_A_JOIN)
def test_while_joining_poll_raises_it_with_its_number_and_the_next_poll_joins(rig: Any, api: ApiKeys) -> None:
    rig.fill(T0, 5)
    rig.on(api, IN_A_JOIN[api])
    rig.consumer.subscribe(["t"])
    with pytest.raises(UnknownServerError, match=str(UNKNOWN)) as caught:
        poll_until_assigned(rig)
    assert caught.value.code == UNKNOWN
    rig.rounds(50)
    assert len(rig.sent(api)) == 1  # the application decides whether to go on
    poll_until_assigned(rig)
    assert rig.consumer.assignment() == {T0, T1}


def test_a_heartbeat_refused_with_it_is_repeated_and_costs_no_partitions(
    rig: Any, caplog: pytest.LogCaptureFixture
) -> None:
    rig.join()
    before = len(rig.sent(ApiKeys.HEARTBEAT))
    rig.on(ApiKeys.HEARTBEAT, *[heartbeat.HeartbeatResponse(error_code=UNKNOWN)] * 3)
    rig.time.advance(3000)
    rig.rounds(100)
    assert len(rig.sent(ApiKeys.HEARTBEAT)) - before == 4  # and then no more before the interval is over
    rig.consumer.poll(100)
    assert rig.consumer.assignment() == {T0, T1}
    assert rig.core.membership.state is MemberState.STABLE
    assert rig.generation == 1
    rig.consumer.commit_sync({T0: 1})
    (warned,) = [line for line in caplog.messages if "heartbeat" in line]
    assert str(UNKNOWN) in warned


def test_heartbeats_refused_with_it_are_repeated_less_and_less_often_until_the_session_is_over(
    rig: Any,
) -> None:
    rig.join()
    rig.handlers[ApiKeys.HEARTBEAT] = lambda _request, _version: heartbeat.HeartbeatResponse(
        error_code=UNKNOWN
    )
    before = len(rig.sent(ApiKeys.HEARTBEAT))
    rig.time.advance(3000)
    rig.rounds(4000)
    assert 35 < len(rig.sent(ApiKeys.HEARTBEAT)) - before < 60
    assert len(rig.sent(ApiKeys.FIND_COORDINATOR)) == 1
    rig.rounds(500)
    assert len(rig.sent(ApiKeys.FIND_COORDINATOR)) == 2  # perhaps another broker knows better
    assert rig.consumer.assignment() == {T0, T1}


@pytest.mark.parametrize("in_group", [True, False], ids=["member", "alone"])
def test_commit_sync_raises_it_with_its_number_and_the_partition(rig: Any, in_group: bool) -> None:
    if in_group:
        rig.join()
    else:
        rig.consumer.assign([T0])
    rig.on(ApiKeys.OFFSET_COMMIT, rig.refuse_commit(UNKNOWN))
    with pytest.raises(UnknownServerError, match="t-0") as caught:
        rig.consumer.commit_sync({T0: 7})
    assert caught.value.code == UNKNOWN
    assert str(UNKNOWN) in str(caught.value)
    assert len(rig.sent(ApiKeys.OFFSET_COMMIT)) == 1
    rig.consumer.commit_sync({T0: 8})
    assert rig.committed == {T0: 8}


def test_commit_async_tells_it_with_its_number(rig: Any) -> None:
    rig.consumer.assign([T0])
    rig.on(ApiKeys.OFFSET_COMMIT, rig.refuse_commit(UNKNOWN))
    told: list[Any] = []
    rig.consumer.commit_async({T0: 7}, lambda _offsets, error: told.append(error))
    rig.consumer.poll(100)
    (error,) = told
    assert isinstance(error, UnknownServerError)
    assert error.code == UNKNOWN


def test_an_automatic_commit_refused_with_it_is_warned_of_and_reading_goes_on(
    make_rig: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    rig = make_rig(group_id="g", auto_commit_interval_ms=100)
    rig.fill(T0, 5)
    rig.on(ApiKeys.OFFSET_COMMIT, rig.refuse_commit(UNKNOWN))
    records = rig.join()
    for _ in range(50):
        records += rig.consumer.poll(10)
    assert [record.offset for record in records] == [0, 1, 2, 3, 4]
    assert rig.committed[T0] == 5
    assert [line for line in caplog.messages if "automatic commit" in line and str(UNKNOWN) in line]


@pytest.mark.parametrize("answer", [group_error, partition_error])
def test_committed_raises_it_with_its_number(rig: Any, answer: Callable[..., Any]) -> None:
    rig.on(ApiKeys.OFFSET_FETCH, answer)
    with pytest.raises(UnknownServerError, match=str(UNKNOWN)) as caught:
        rig.consumer.committed([T0])
    assert caught.value.code == UNKNOWN
    assert rig.consumer.committed([T0]) == {T0: None}


@pytest.mark.parametrize("answer", [group_error, partition_error])
def test_a_position_that_it_keeps_from_being_known_makes_poll_raise_it_and_the_next_poll_ask_again(
    rig: Any, answer: Callable[..., Any]
) -> None:
    rig.fill(T0, 5)
    rig.committed[T0] = 3
    rig.on(ApiKeys.OFFSET_FETCH, answer)
    rig.consumer.assign([T0])
    with pytest.raises(UnknownServerError, match=str(UNKNOWN)) as caught:
        rig.consumer.poll(1000)
    assert caught.value.code == UNKNOWN
    assert [record.offset for record in rig.consumer.poll(1000)] == [3, 4]
