"""A consumer whose wall clock jumps, and one that finds nothing for a day."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.coordinator.member_state import MemberState
from kclient.protocol.api_keys import ApiKeys

T0 = TopicPartition("t", 0)
HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS


@pytest.mark.parametrize("jump_ms", [HOUR_MS, -HOUR_MS])
def test_a_wall_clock_that_jumps_moves_no_deadline(make_rig: Callable[..., Any], jump_ms: int) -> None:
    rig = make_rig(group_id="g", auto_commit_interval_ms=20_000)
    rig.fill(T0, 5)
    rig.join()
    rig.consumer.poll(100)
    beats, commits = (len(rig.sent(api)) for api in (ApiKeys.HEARTBEAT, ApiKeys.OFFSET_COMMIT))
    before_ms = rig.time.monotonic_ms()
    rig.time.set_wall_ms(rig.time.wall_ms() + jump_ms)
    assert not rig.consumer.poll(1000)
    assert rig.time.monotonic_ms() - before_ms == 1000, "a poll takes its time by another clock"
    assert len(rig.sent(ApiKeys.HEARTBEAT)) == beats
    assert len(rig.sent(ApiKeys.OFFSET_COMMIT)) == commits
    rig.time.set_wall_ms(rig.time.wall_ms() - 2 * jump_ms)
    rig.consumer.poll(9000)
    assert len(rig.sent(ApiKeys.HEARTBEAT)) - beats == 3
    rig.consumer.poll(11_000)
    rig.consumer.poll(100)
    assert rig.committed[T0] == 5
    assert rig.core.membership.state is MemberState.STABLE
    assert len(rig.sent(ApiKeys.JOIN_GROUP)) == 2  # one for the id, one with it
    assert rig.sent(ApiKeys.LEAVE_GROUP) == []


def test_after_a_day_without_records_the_first_one_is_read_at_once(make_rig: Callable[..., Any]) -> None:
    rig = make_rig(group_id="g", fetch_max_wait_ms=500)
    rig.fill(T0, 3)
    rig.join()
    rig.consumer.poll(100)
    sent = len(rig.client.sent)
    rig.time.round_ms = 1000
    for _ in range(DAY_MS // 60_000):
        assert not rig.consumer.poll(0)
        rig.time.advance(60_000)
        rig.rounds(1)
    idle = rig.client.sent[sent:]
    # A model's rounds are a minute apart: whatever is due is asked for once in each, and no more.
    assert len(idle) < 6 * DAY_MS // 60_000
    assert rig.sent(ApiKeys.LEAVE_GROUP) == []
    assert rig.core.membership.state is MemberState.STABLE
    rig.time.round_ms = 10
    rig.fill(T0, 1, start=3)
    rig.log_starts[T0] = 0
    assert [record.offset for record in rig.consumer.poll(2000)] == [3]
