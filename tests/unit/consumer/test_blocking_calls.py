"""The waiting of a consumer that blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kclient.common.topic_partition import TopicPartition
from kclient.consumer.interceptor import ConsumerInterceptor

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


def test_a_poll_whose_records_interceptors_keep_to_themselves_waits_for_no_others(
    make_rig: Callable[..., Any],
) -> None:
    class Nothing(ConsumerInterceptor):
        def on_consume(self, records: Any) -> Any:
            return type(records)({})

    rig = make_rig(interceptor_classes=[Nothing()])
    rig.fill(T0, 5)
    rig.consumer.assign([T0])
    started = rig.time.monotonic_ms()
    assert not rig.consumer.poll(10_000)
    assert rig.time.monotonic_ms() - started < 10_000
    assert rig.consumer.position(T0) == 5
