"""The log about topics that are not there, and about a start at which nothing is wrong."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from kclient.common.topic_partition import TopicPartition
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import find_coordinator

T0 = TopicPartition("t", 0)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.parametrize("assigned", [False, True])
def test_a_topic_that_does_not_exist_is_warned_of_once(
    make_rig: Callable[..., Any], caplog: pytest.LogCaptureFixture, assigned: bool
) -> None:
    rig = make_rig(group_id="g", enable_auto_commit=False, allow_auto_create_topics=False)
    if assigned:
        rig.consumer.assign([T0, TopicPartition("typo", 0)])
    else:
        rig.consumer.subscribe(["t", "typo"])
    rig.consumer.poll(50)
    assert len(warnings(caplog)) == 1
    assert "'typo' does not exist" in warnings(caplog)[0]
    rig.consumer.poll(20_000)
    assert len(warnings(caplog)) == 1


def test_it_is_warned_of_again_after_it_existed(
    make_rig: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    rig = make_rig(allow_auto_create_topics=False)
    rig.consumer.assign([T0])
    rig.fill(T0, 1)
    assert len(rig.consumer.poll(1000)) == 1
    for _ in range(2):
        partitions = rig.topics.pop("t")
        rig.core.metadata.request_update()
        rig.consumer.poll(2000)
        rig.topics["t"] = partitions
        rig.core.metadata.request_update()
        rig.consumer.poll(2000)
    assert len(warnings(caplog)) == 2


def test_a_topic_that_the_broker_creates_is_not_warned_of(
    make_rig: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    rig = make_rig()
    partitions = rig.topics.pop("t")
    rig.consumer.assign([T0])
    rig.consumer.poll(300)
    assert not warnings(caplog)
    rig.topics["t"] = partitions
    rig.consumer.poll(2000)
    assert not warnings(caplog)
    del rig.topics["t"]
    rig.core.metadata.request_update()
    rig.consumer.poll(5000)
    assert len(warnings(caplog)) == 1


def test_the_first_group_of_a_cluster_waits_for_its_coordinator_without_a_word(
    rig: Any, caplog: pytest.LogCaptureFixture
) -> None:
    missing = find_coordinator.FindCoordinatorResponse(
        coordinators=[find_coordinator.Coordinator(key="g", node_id=-1, host="", port=-1, error_code=15)]
    )
    rig.on(ApiKeys.FIND_COORDINATOR, *[missing] * 4)
    rig.fill(T0, 1)
    rig.consumer.subscribe(["t"])
    assert len(rig.consumer.poll(10_000)) == 1
    assert not warnings(caplog)


def test_a_coordinator_that_stays_away_is_warned_of(rig: Any, caplog: pytest.LogCaptureFixture) -> None:
    missing = find_coordinator.FindCoordinatorResponse(
        coordinators=[find_coordinator.Coordinator(key="g", node_id=-1, host="", port=-1, error_code=15)]
    )
    rig.handlers[ApiKeys.FIND_COORDINATOR] = lambda _request, _version: missing
    rig.consumer.subscribe(["t"])
    rig.consumer.poll(10_000)
    assert len(warnings(caplog)) == 1
