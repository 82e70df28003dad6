"""DelayedOperationPurgatory: where operations wait, watched by the keys that may complete them."""

from __future__ import annotations

import logging
import threading
from collections.abc import Hashable, Iterable
from typing import Generic, TypeVar

from kclient.broker.purgatory.delayed_operation import DelayedOperation, Watch
from kclient.broker.timer.system_timer import SystemTimer
from kclient.utils.threads import KafkaThread
from kclient.utils.time import SYSTEM_TIME, Time

log = logging.getLogger(__name__)

Op = TypeVar("Op", bound=DelayedOperation)

PURGE_INTERVAL = 1000
"""The most completed operations that may stay on the lists of their other keys before the lists are swept."""

_REAPER_POLL_MS = 200


class DelayedOperationPurgatory(Generic[Op]):
    """Holds operations until a key they watch says that something changed, or until they expire. Thread-safe.

    Call `check_and_complete` while holding no other lock: it runs answers of other requests. With
    `reaper_enabled=False` nothing expires until someone calls `advance_clock`.
    """

    def __init__(
        self,
        name: str,
        time: Time = SYSTEM_TIME,
        *,
        timer: SystemTimer | None = None,
        purge_interval: int = PURGE_INTERVAL,
        reaper_enabled: bool = True,
    ) -> None:
        self.name = name
        self._timer = timer if timer is not None else SystemTimer(name, time)
        self._purge_interval = purge_interval
        # Java spreads the keys over 512 locks; here the interpreter lock already serialises the few
        # dictionary operations that this one is held for, and no user code runs under it.
        self._lock = threading.Lock()
        self._watchers: dict[Hashable, dict[Watch, None]] = {}
        self._estimated_operations = 0
        self._stop = threading.Event()
        self._reaper: KafkaThread | None = None
        if reaper_enabled:
            self._reaper = KafkaThread(f"expiration-reaper-{name}", self._reap)
            self._reaper.start()

    @property
    def watched(self) -> int:
        """Entries on the watch lists: an operation counts once per key, completed ones until they are
        purged.
        """
        with self._lock:
            return sum(map(len, self._watchers.values()))

    @property
    def delayed(self) -> int:
        """Operations waiting for their time to run out."""
        return len(self._timer)

    def try_complete_else_watch(self, operation: Op, keys: Iterable[Hashable]) -> bool:
        """Complete `operation` at once if it can be; otherwise watch it under `keys`. Returns whether it is
        complete.

        Between a failed try and the entry on the last watch list an event may pass unseen: another thread
        changes the state after our try and checks a key before our operation is on its list. So there is a
        second try once the operation is on all lists; whatever happens after that finds it there.
        """
        watch = tuple(keys)
        if operation.safe_try_complete_or_else(lambda: self._watch(operation, watch)):
            return True
        if not operation.is_completed():
            # The timer takes nothing that is cancelled, and so nothing that another thread has completed meanwhile.
            self._timer.add(operation)
        return operation.is_completed()

    def check_and_complete(self, key: Hashable) -> int:
        """Something about `key` changed: try the operations that watch it. Returns how many this call
        completed.
        """
        with self._lock:
            watched = self._watchers.get(key)
            if not watched:
                return 0
            watches = list(watched)
        completed = 0
        done = []
        for watch in watches:
            operation = watch.operation
            try:
                if operation is not None and operation.safe_try_complete():
                    completed += 1
            except Exception:
                # One request's answer that fails must not keep the others waiting.
                log.exception("Purgatory %s: an operation watching %s raised", self.name, key)
            if watch.operation is None:
                done.append(watch)
        if done:
            with self._lock:
                self._forget(key, done)
        return completed

    def advance_clock(self, timeout_ms: int) -> None:
        """Expire what is due, waiting up to `timeout_ms`, and sweep the watch lists when enough has
        completed.
        """
        self._timer.advance_clock(timeout_ms)
        if self._estimated_operations - self.delayed > self._purge_interval:
            # Set before sweeping: operations added meanwhile count on top of it.
            with self._lock:
                self._estimated_operations = self.delayed
            self.purge()

    def purge(self) -> int:
        """Take completed operations off all watch lists; returns how many entries went."""
        purged = 0
        with self._lock:
            for key in list(self._watchers):
                done = [watch for watch in self._watchers[key] if watch.operation is None]
                self._forget(key, done)
                purged += len(done)
        return purged

    def shutdown(self) -> None:
        """Stop the reaper and drop the timers; operations still watched are never completed by time.
        Idempotent.
        """
        self._stop.set()
        self._timer.close()
        reaper, self._reaper = self._reaper, None
        if reaper is not None and reaper is not threading.current_thread():
            reaper.join()

    def _watch(self, operation: Op, keys: tuple[Hashable, ...]) -> None:
        with self._lock:
            for key in keys:
                if operation.is_completed():
                    break
                self._watchers.setdefault(key, {})[operation.watch] = None
            if keys:
                self._estimated_operations += 1

    def _forget(self, key: Hashable, watches: Iterable[Watch]) -> None:
        watched = self._watchers.get(key)
        if watched is None:
            return
        for watch in watches:
            watched.pop(watch, None)
        if not watched:
            del self._watchers[key]

    def _reap(self) -> None:
        while not self._stop.is_set():
            self.advance_clock(_REAPER_POLL_MS)
