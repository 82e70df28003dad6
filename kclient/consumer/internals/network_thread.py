"""The consumer's I/O thread: the one place where its sockets are used."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import attrs

from kclient._accel import belongs_to_caller
from kclient.client.kafka_client import KafkaClient
from kclient.client.request_sender import NEVER, RequestSender
from kclient.consumer.config import ConsumerConfig
from kclient.consumer.internals.requests import Request
from kclient.errors import ClientClosedError, KafkaError
from kclient.utils.log_context import Logger
from kclient.utils.threads import KafkaThread
from kclient.utils.time import Time

Task: TypeAlias = Callable[[int], object]

_CLOSE_GRACE_MS = 200
"""The longest time to wait for the last requests (leaving, ending fetch sessions) to be written."""
_ENDED = "The consumer's I/O thread has ended"


class RequestManager(Protocol):
    """A part of the consumer that gets a turn in every round of the I/O thread's loop."""

    def poll(self, now_ms: int) -> int:
        """Do and send what is due; returns after how many ms it wants the next turn at the latest."""


@attrs.define(kw_only=True, eq=False, repr=False, slots=False)
class NetworkThread:
    """Runs the loop: tasks of the application, a turn for every manager, then I/O.

    `submit`, `wakeup`, `close`, `join` and `connection_failure` may be called by any thread, all else happens on
    the I/O thread. It knows nothing of the public consumer, so that one which was forgotten unclosed can be collected.
    """

    _config: ConsumerConfig
    _sender: RequestSender
    _managers: Sequence[RequestManager]
    _goodbye: Callable[[int], None] = attrs.field(alias="say_goodbye")
    """Asks for what is to be sent last, such as the ends of sessions."""
    _end_parts: Callable[[KafkaError], None] = attrs.field(alias="end")
    """Fails what is not done and never will be."""
    _on_death: Callable[[BaseException], None]
    _time: Time
    _client: KafkaClient = attrs.field(init=False)
    _log: Logger = attrs.field(init=False)
    _tasks: deque[tuple[Task, Request[Any] | None]] = attrs.field(factory=deque, init=False)
    _closing: bool = attrs.field(default=False, init=False)
    _close_deadline_ms: int = attrs.field(default=0, init=False)
    _ended: bool = attrs.field(default=False, init=False)
    _thread: KafkaThread = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._client = self._sender.client
        self._log = self._config.log_context().logger(__name__)
        self._thread = KafkaThread(f"kclient-consumer-{self._config.client_id}", self._run, self._died)

    def update_credentials(self, username: str, password: str) -> None:
        """Authenticate with these from now on, as `KafkaClient.update_credentials`."""
        self._client.update_credentials(username, password)

    def connection_failure(self) -> KafkaError | None:
        """The reason why the broker cannot be reached that failed last, None if it can. From any thread."""
        return self._client.connection_failure()

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    @property
    def ended(self) -> bool:
        """True once nothing is done any more."""
        return self._ended

    @property
    def client(self) -> KafkaClient:
        """The connections; others may ask them only what is for any thread."""
        return self._client

    def submit(self, task: Task, request: Request[Any] | None = None) -> None:
        """Have `task` called with the time; `request`, if it is for one, fails if it raises, or the thread is over."""
        self._tasks.append((task, request))
        if self._ended or sys.is_finalizing():
            self._refuse_tasks()
        else:
            self._client.wakeup()

    def wakeup(self) -> None:
        """Give every manager another turn now."""
        self._client.wakeup()

    def close(self, timeout_ms: int = 0) -> None:
        """Let the thread end and close the connections; what is asked for last has `timeout_ms` to be sent."""
        self._close_deadline_ms = self._time.monotonic_ms() + min(timeout_ms, _CLOSE_GRACE_MS)
        self._closing = True
        self._client.wakeup()

    def join(self, timeout_ms: int) -> None:
        """Wait for the end, at most `timeout_ms`, or as long as the last requests may take."""
        self._thread.join(max(timeout_ms, _CLOSE_GRACE_MS) / 1000)

    def run_once(self) -> None:
        """One round of the loop."""
        now_ms = self._time.monotonic_ms()
        self._run_tasks(now_ms)
        wait_ms = NEVER
        for manager in self._managers:
            turn_ms = manager.poll(now_ms)
            wait_ms = min(wait_ms, turn_ms)
        self._sender.poll(0 if self._tasks else wait_ms, now_ms)

    def _run_tasks(self, now_ms: int) -> None:
        while self._tasks:
            task, request = self._tasks.popleft()
            try:
                task(now_ms)
            except BaseException as error:
                if request is not None:
                    request.fail(error)
                if request is None or not isinstance(error, KafkaError):
                    self._log.exception("A task of the application failed")
                if belongs_to_caller(error):
                    raise

    def _run(self) -> None:
        try:
            while not self._closing:
                self.run_once()
            self._say_goodbye()
        finally:
            self._ended = True
            self._client.close()
            self._end()

    def _end(self) -> None:
        """Fail what is not done: nothing will be any more."""
        self._end_parts(ClientClosedError(_ENDED))
        self._refuse_tasks()

    def _say_goodbye(self) -> None:
        """Let what was asked for last be sent, such as leaving the group; answers are not waited for."""
        now_ms = self._time.monotonic_ms()
        self._run_tasks(now_ms)
        self._goodbye(now_ms)
        while self._sender.has_unsent() and now_ms < self._close_deadline_ms:
            self._sender.poll(self._close_deadline_ms - now_ms, now_ms, return_after_send=True)
            now_ms = self._time.monotonic_ms()
        self._sender.poll(0, now_ms)
        self._sender.fail_all(ClientClosedError("The consumer is closed"), now_ms)

    def _died(self, error: BaseException) -> None:
        self._on_death(error)
        self._refuse_tasks()

    def _refuse_tasks(self) -> None:
        while True:
            try:
                _, request = self._tasks.popleft()
            except IndexError:
                return
            if request is not None:
                request.fail(ClientClosedError(_ENDED))
