"""Scheduler: background tasks of the broker, once or periodically, on one thread driven by a
`SystemTimer`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

import attrs

from kclient.broker.timer.system_timer import SystemTimer
from kclient.broker.timer.timing_wheel import TimerTask
from kclient.utils.threads import KafkaThread
from kclient.utils.time import SYSTEM_TIME, Time

log = logging.getLogger(__name__)

_POLL_MS = 60_000  # only an upper bound: adding an earlier task wakes the thread


@attrs.define(eq=False)
class ScheduledTask(TimerTask):
    """A task of a scheduler; `cancel()` ends it, also a periodic one."""

    _timer: SystemTimer
    name: str
    _body: Callable[[], object]
    _period_ms: int | None = None

    def run(self) -> None:
        try:
            self._body()
        except Exception:
            log.exception("Scheduled task %s failed", self.name)
        if self._period_ms is not None and not self.is_cancelled():
            # From the end of this run: a task slower than its period must not pile up.
            self.delay_ms = self._period_ms
            self._timer.add(self)


class Scheduler:
    """Runs tasks one after the other on a thread of its own. Thread-safe.

    Tasks can be scheduled before `startup`. A task that raises is logged and, if periodic, runs again.
    """

    def __init__(self, name: str, time: Time = SYSTEM_TIME) -> None:
        self.name = name
        self.timer = SystemTimer(name, time)
        self._stop = threading.Event()
        self._thread: KafkaThread | None = None

    def startup(self) -> None:
        """Start the thread."""
        if self._thread is None:
            self._thread = KafkaThread(f"scheduler-{self.name}", self._loop)
            self._thread.start()

    def shutdown(self) -> None:
        """Drop what has not run and wait for the task that is running. Idempotent."""
        self._stop.set()
        self.timer.close()
        thread, self._thread = self._thread, None
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def schedule_once(self, name: str, body: Callable[[], object], delay_ms: int = 0) -> ScheduledTask:
        """Run `body` once in `delay_ms`."""
        return self._add(ScheduledTask(delay_ms, self.timer, name, body))

    def schedule(self, name: str, body: Callable[[], object], delay_ms: int, period_ms: int) -> ScheduledTask:
        """Run `body` in `delay_ms` and then again `period_ms` after each run has ended."""
        if period_ms < 1:
            raise ValueError(f"The period of task {name} must be positive, not {period_ms} ms")
        return self._add(ScheduledTask(delay_ms, self.timer, name, body, period_ms))

    def _add(self, task: ScheduledTask) -> ScheduledTask:
        self.timer.add(task)
        return task

    def _loop(self) -> None:
        while not self._stop.is_set():
            self.timer.advance_clock(_POLL_MS)
