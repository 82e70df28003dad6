"""Listeners that take longer than a session: heartbeats go on meanwhile, and the member keeps its place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.consumer.consumer_group import ConsumerGroupModel, Told
from kclient.common.topic_partition import TopicPartition
from kclient.protocol.api_keys import ApiKeys

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
_BEATS = 30  # three seconds apart: twice the session of 45


class Slow:
    """Lets the time of a listener's call pass, and counts the heartbeats in it."""

    def __init__(self, rig: Any, api: ApiKeys) -> None:
        self.beats: list[int] = []
        self._rig = rig
        self._api = api

    def __call__(self) -> None:
        before = len(self._rig.sent(self._api))
        for _ in range(_BEATS):
            self._rig.time.advance(3000)
            self._rig.rounds(2)
        self.beats.append(len(self._rig.sent(self._api)) - before)


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_of_a_classic_group(make_rig: Callable[..., Any], strategy: str) -> None:
    rig = make_rig(group_id="g", enable_auto_commit=False, partition_assignment_strategy=[strategy])
    slow = Slow(rig, ApiKeys.HEARTBEAT)
    told = Told(assigned=slow, revoked=slow)
    rig.join(("t",), told)
    rig.consumer.subscribe(["u"], told)
    for _ in range(40):
        rig.consumer.poll(20)
    assert [call for call, _ in told.calls] == ["assigned", "revoked", "assigned"]
    assert slow.beats == [_BEATS] * 3


def test_of_the_consumer_protocol(group: ConsumerGroupModel) -> None:
    group.interval_ms = 3000
    slow = Slow(group.rig, ApiKeys.CONSUMER_GROUP_HEARTBEAT)
    told = Told(assigned=slow, revoked=slow)
    group.join(("t",), told)
    group.want(T0)
    group.poll_for(7000)
    group.want(T0, T1)
    group.poll_for(7000)
    assert [call for call, given in told.calls if given] == ["assigned", "revoked", "assigned"]
    assert min(slow.beats) >= _BEATS - 1
