"""CoordinatorCalls: what has to be asked of coordinators, one request after the other, as tasks."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeAlias

import attrs

from kclient.client.coordinators import CoordinatorKey, CoordinatorLookup
from kclient.client.request_sender import NEVER, Reply, RequestSender
from kclient.errors import KafkaError
from kclient.protocol.api_keys import ApiKeys
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.log_context import LogContext


@attrs.frozen
class Ask:
    """A request to the coordinator of `key`, whose versions may be bounded."""

    key: CoordinatorKey
    api_key: ApiKeys
    build: Callable[[int], Any]
    min_version: int | None = None
    max_version: int | None = None


@attrs.frozen
class Delay:
    """Some time before a task goes on."""

    ms: int


Task: TypeAlias = Generator[Ask | Delay, Any, Any]
"""Asks, and is resumed with the Reply; delays, and is resumed with None."""


class CoordinatorCalls:
    """Takes one task at a time through its requests. Belongs to the I/O thread.

    A request without an answer is a Reply with an error, as is a coordinator that nobody may know. What a task raises
    is raised by `poll`, and the task is over.
    """

    def __init__(self, requests: RequestSender, backoff: ExponentialBackoff, log_context: LogContext) -> None:
        self._requests = requests
        self._lookup = CoordinatorLookup(requests, backoff, self._not_found, log_context)
        self._task: Task | None = None
        self._ask: Ask | None = None
        self._resume_ms: int | None = None
        self._reply: Reply | None = None
        self._in_flight = False
        self.last_error: KafkaError | None = None
        """The last failure on the way to an answer, until there is one."""

    @property
    def idle(self) -> bool:
        """True if there is no task."""
        return self._task is None

    def begin(self, task: Task) -> None:
        """Make `task` the present one."""
        assert self._task is None
        self._task = task
        self._resume_ms = 0

    def cancel(self) -> bool:
        """Drop the task, unless a request of it is under way: the next one must not overtake that. True if idle."""
        if self._in_flight:
            return False
        if self._task is not None:
            self._task.close()
            self._end()
        return True

    def mark_unknown(self, key: CoordinatorKey, cause: str) -> None:
        """Look for the coordinator of `key` before the next request to it."""
        self._lookup.mark_unknown(key, cause)

    def poll(self, now_ms: int) -> int:
        """Take the task as far as it comes; returns after how many ms to call again at the latest."""
        while self._task is not None:
            if self._in_flight:
                return NEVER
            if self._resume_ms is not None:
                if now_ms < self._resume_ms:
                    return self._resume_ms - now_ms
                self._resume_ms = None
                self._step(self._task, None, now_ms)
                continue
            ask, reply = self._ask, self._reply
            if reply is not None:
                self._ask = self._reply = None
                self.last_error = reply.error
                self._step(self._task, reply, now_ms)
                continue
            assert ask is not None
            node = self._lookup.known(ask.key)
            if node is None:
                wait_ms = self._lookup.look_for((ask.key,), now_ms)
                self.last_error = self._lookup.last_error(ask.key)
                return wait_ms
            self._in_flight = True
            self._requests.send(
                node,
                ask.api_key,
                ask.build,
                self._on_reply,
                now_ms,
                min_version=ask.min_version,
                max_version=ask.max_version,
            )
        return NEVER

    def _step(self, task: Task, reply: Reply | None, now_ms: int) -> None:
        try:
            wanted = task.send(reply)
        except StopIteration:
            self._end()
            return
        except BaseException:
            self._end()
            raise
        if isinstance(wanted, Delay):
            self._resume_ms = now_ms + wanted.ms
        else:
            self._ask = wanted

    def _end(self) -> None:
        self._task = self._ask = self._resume_ms = self._reply = None

    def _on_reply(self, reply: Reply) -> None:
        self._in_flight = False
        self._reply = reply

    def _not_found(self, key: CoordinatorKey, error: KafkaError) -> None:
        if self._ask is not None and self._ask.key == key:
            self._reply = Reply(None, error, -1, 0)
