"""The waiting of a consumer that blocks."""

from __future__ import annotations

from typing import Any

from kclient.common.topic_partition import TopicPartition

T0 = TopicPartition("t", 0)


def test_a_wait_ends_with_a_change_since_the_last_look_and_not_with_old_data(rig: Any) -> None:
    rig.fill(T0, 5)
    rig.consumer.assign([T0])
    rig.rounds(20)
    assert rig.core.buffer.turns()
    rig.consumer.pause([T0])
    seen = rig.core.changes.count
    started = rig.time.monotonic_ms()
    rig.consumer._calls.wait_for_change(seen, rig.time.timer(50))
    assert rig.time.monotonic_ms() - started >= 50
    rig.core.changes.notify()
    timer = rig.time.timer(10_000)
    rig.consumer._calls.wait_for_change(seen, timer)
    assert not timer.is_expired()
