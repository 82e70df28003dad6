"""Timers: the hierarchical timing wheel, the clock that turns it, and a scheduler of background tasks on
top.
"""

from __future__ import annotations

from kclient.broker.timer.scheduler import ScheduledTask, Scheduler
from kclient.broker.timer.system_timer import SystemTimer
from kclient.broker.timer.timing_wheel import TimerTask, TimingWheel

__all__ = ["ScheduledTask", "Scheduler", "SystemTimer", "TimerTask", "TimingWheel"]
