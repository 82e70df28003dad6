"""The work that goes on behind the logs of a broker, in turns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from kclient.broker.timer.scheduler import ScheduledTask, Scheduler

if TYPE_CHECKING:
    from kclient.broker.log.log_manager import LogManager


@attrs.frozen(kw_only=True)
class LogIntervals:
    """Intervals, in ms, of the background work on the logs: Kafka's defaults. Immutable."""

    retention_check_ms: int = 5 * 60 * 1000
    flush_check_ms: int = 3_000
    recovery_point_checkpoint_ms: int = 60_000
    log_start_offset_checkpoint_ms: int = 60_000
    high_watermark_checkpoint_ms: int = 5_000
    producer_expiration_check_ms: int = 10 * 60 * 1000


def schedule_tasks(logs: LogManager, scheduler: Scheduler, intervals: LogIntervals) -> list[ScheduledTask]:
    """Have the work done at its intervals until the tasks that are returned are cancelled."""
    return [
        scheduler.schedule(name, body, period_ms, period_ms)
        for name, body, period_ms in (
            ("log-retention", logs.delete_old_segments, intervals.retention_check_ms),
            ("log-flusher", logs.flush_due_logs, intervals.flush_check_ms),
            (
                "recovery-point-checkpoint",
                logs.checkpoint_recovery_points,
                intervals.recovery_point_checkpoint_ms,
            ),
            (
                "log-start-offset-checkpoint",
                logs.checkpoint_log_start_offsets,
                intervals.log_start_offset_checkpoint_ms,
            ),
            (
                "high-watermark-checkpoint",
                logs.checkpoint_high_watermarks,
                intervals.high_watermark_checkpoint_ms,
            ),
            ("producer-expiration", logs.remove_expired_producers, intervals.producer_expiration_check_ms),
        )
    ]
