"""AdminDriver: the I/O thread of an admin client. It sends single calls to the right broker until they are answered.

A call names its target by role (any broker, the controller, a coordinator, a given node). The driver finds
the broker, connects, sends, and tries again with backoff while the failure is passing and the deadline has not come.
A coordinator that calls wait for is looked up once for all of them (`client/coordinators.py`).
Errors inside an answer are the operation's business, with one exception: `retry_on` looks at the answer and returns
the passing error that makes the driver look up the target again.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import Any

import attrs

from kclient.client.coordinators import CoordinatorKey, CoordinatorLookup, CoordinatorType
from kclient.client.health import ClientHealth, common_health, connection_reasons
from kclient.client.kafka_client import KafkaClient
from kclient.client.metadata import Metadata
from kclient.client.request_sender import RequestSender
from kclient.client.requests import ClientResponse
from kclient.common.node import Node
from kclient.errors import (
    ClientClosedError,
    DisconnectError,
    Errors,
    KafkaError,
    KafkaTimeoutError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.futures import CompletableFuture
from kclient.utils.log_context import LogContext
from kclient.utils.threads import KafkaThread
from kclient.utils.time import Time

_IDLE_POLL_MS = 60_000


class Role(Enum):
    """The broker that a call goes to."""

    ANY = "any broker"
    CONTROLLER = "the controller"
    COORDINATOR = "the coordinator"
    NODE = "a given broker"
    LEADER = "the broker that led a partition"
    """As NODE, but gone to only once: if it fails, the operation looks for another leader."""


@attrs.frozen
class Target:
    """The destination of a call: a role and, for a coordinator, its key, for a node or a leader, its id."""

    role: Role = Role.ANY
    key: CoordinatorKey | None = None
    node_id: int = -1

    @classmethod
    def of_group(cls, group_id: str) -> Target:
        """The coordinator of a group."""
        return cls(Role.COORDINATOR, CoordinatorKey(CoordinatorType.GROUP, group_id))

    @classmethod
    def of_transactional_id(cls, transactional_id: str) -> Target:
        """The coordinator of a transactional id."""
        return cls(Role.COORDINATOR, CoordinatorKey(CoordinatorType.TRANSACTION, transactional_id))

    def __str__(self) -> str:
        if self.role in (Role.NODE, Role.LEADER):
            return f"broker {self.node_id}"
        return self.role.value if self.key is None else f"{self.role.value} of {self.key}"


@attrs.define(eq=False)
class Call:
    """One request and everything about its tries. Belongs to the driver's thread once submitted.

    Without `build` nothing is sent: the broker that the call would go to is all that is asked for. `min_version` and
    `max_version` narrow what is agreed on with the broker: where it is too old, the future fails with
    UnsupportedVersionError.
    """

    api_key: ApiKeys
    build: Callable[[int], Any] | None
    target: Target
    deadline_ms: int
    owner: object
    """The operation that waits for it, and may abandon it."""
    retry_on: Callable[[Any], KafkaError | None] | None = None
    min_version: int | None = None
    max_version: int | None = None
    future: CompletableFuture[Any] = attrs.field(factory=CompletableFuture, init=False)
    attempts: int = attrs.field(default=0, init=False)
    not_before_ms: int = attrs.field(default=0, init=False)
    last_error: KafkaError | None = attrs.field(default=None, init=False)
    missing_in: int | None = attrs.field(default=None, init=False)
    """The first version of the metadata that was looked at and has no such broker."""


class AdminDriver:
    """Sends calls from its own thread, once started. All methods may be called from any thread."""

    def __init__(
        self,
        client: KafkaClient,
        metadata: Metadata,
        *,
        client_id: str,
        request_timeout_ms: int,
        retry_backoff: ExponentialBackoff,
        retries: int,
        time: Time,
        log_context: LogContext,
    ) -> None:
        self._client = client
        self._metadata = metadata
        self._client_id = client_id
        self._backoff = retry_backoff
        self._retries = retries
        self._time = time
        self._log = log_context.logger(__name__)
        self._lock = threading.Lock()
        self._submitted: deque[Call] = deque()
        self._abandoned: list[object] = []
        self._waiting: list[Call] = []
        self._in_flight: set[Call] = set()
        self._sender = RequestSender(client, request_timeout_ms)
        self._coordinators = CoordinatorLookup(
            self._sender, retry_backoff, self._fail_waiting, log_context, retries=retries
        )
        self._closing = False
        self._drain_until_ms = 0
        self._thread = KafkaThread(f"kafka-admin-client-thread | {client_id}", self._run, self._die)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def submit(self, call: Call) -> CompletableFuture[Any]:
        """Send one request; the future gives the answer's message. Raises ClientClosedError after `close`."""
        with self._lock:
            if self._closing:
                raise ClientClosedError("The admin client is closed; create a new one.")
            self._submitted.append(call)
        self._client.wakeup()
        return call.future

    def abandon(self, owner: object) -> None:
        """Forget every call of `owner`, who waits for none of them any more."""
        with self._lock:
            self._abandoned.append(owner)
        self._client.wakeup()

    def health(self) -> ClientHealth:
        """Return how the client stands. From any thread."""
        fields = common_health(self._client_id, self._client, self._metadata, self._time.monotonic_ms())
        reasons = connection_reasons(self._client, fields["connections"])
        if self._closing:
            reasons.insert(0, "The admin client is closed")
        return ClientHealth(**fields, reasons=tuple(reasons))

    def update_credentials(self, username: str, password: str) -> None:
        """Authenticate with these from now on, as `KafkaClient.update_credentials`."""
        self._client.update_credentials(username, password)

    def close(self, timeout_ms: int) -> None:
        """Let calls under way finish for at most `timeout_ms`, fail the rest, end the thread.

        May be called again, to wait no longer than until then.
        """
        until_ms = self._time.monotonic_ms() + timeout_ms
        with self._lock:
            self._drain_until_ms = min(self._drain_until_ms, until_ms) if self._closing else until_ms
            self._closing = True
        self._client.wakeup()
        if threading.current_thread() is not self._thread:
            self._thread.join((timeout_ms + 1000) / 1000)

    def close_soon(self) -> None:
        """End the thread without waiting for it. Takes no lock: a finalizer may run in the middle of what holds it."""
        self._closing = True
        self._client.wakeup()

    def _run(self) -> None:
        try:
            while self._step():
                pass
        finally:
            self._client.close()

    def _die(self, error: BaseException) -> None:
        with self._lock:
            self._closing = True
        self._fail_all(KafkaError(f"The admin client's I/O thread died: {error!r}"))

    def _step(self) -> bool:
        now_ms = self._time.monotonic_ms()
        with self._lock:
            self._waiting.extend(self._submitted)
            self._submitted.clear()
            abandoned, self._abandoned = self._abandoned, []
            closing = self._closing
        if abandoned:
            for call in [c for c in (*self._waiting, *self._in_flight) if c.owner in abandoned]:
                self._forget(call)
        if closing and (now_ms >= self._drain_until_ms or not (self._waiting or self._in_flight)):
            self._fail_all(ClientClosedError("The admin client was closed before the call was answered."))
            return False
        self._expire(now_ms)
        wait_ms = self._send_ready(now_ms)
        self._sender.poll(wait_ms, now_ms, return_after_send=True)
        return True

    def _expire(self, now_ms: int) -> None:
        for call in [c for c in (*self._waiting, *self._in_flight) if now_ms >= c.deadline_ms]:
            self._give_up(call, self._timeout_of(call))

    def _timeout_of(self, call: Call) -> KafkaTimeoutError:
        where = call.target
        if call.attempts:
            text = f"{call.api_key.name} to {where} got no answer in time after {call.attempts} attempts"
        else:
            text = f"{call.api_key.name} was never sent: {where} could not be reached"
        nodes = self._metadata.fetch().nodes
        text += f"; known are {', '.join(map(str, nodes)) or 'no brokers'} (bootstrap.servers)"
        looked_up = None if call.target.key is None else self._coordinators.last_error(call.target.key)
        cause = looked_up or call.last_error or self._metadata.last_error or self._client.connection_failure()
        if cause is not None:
            text += f"; the last failure was: {cause}"
        return KafkaTimeoutError(text).because_of(cause)

    def _forget(self, call: Call) -> None:
        self._in_flight.discard(call)
        if call in self._waiting:
            self._waiting.remove(call)

    def _send_ready(self, now_ms: int) -> int:
        """Send what can be sent; returns how long the next poll may wait."""
        wait_ms = _IDLE_POLL_MS
        for call in (*self._waiting, *self._in_flight):
            wait_ms = min(wait_ms, max(call.deadline_ms - now_ms, 0))
        if self._closing:
            wait_ms = min(wait_ms, max(self._drain_until_ms - now_ms, 0))
        wanted: dict[CoordinatorKey, None] = {}
        for call in list(self._waiting):
            if now_ms < call.not_before_ms:
                wait_ms = min(wait_ms, call.not_before_ms - now_ms)
                continue
            node = self._find(call.target, now_ms)
            if node is None and call.target.key is not None:
                wanted[call.target.key] = None
                continue
            if node is None:
                if call.target.role is Role.LEADER and self._is_gone(call):
                    self._give_up(call, DisconnectError(f"{call.target} is not in the cluster any more"))
                    continue
                wait_ms = min(wait_ms, max(self._metadata.time_to_next_update_ms(now_ms), 10))
                continue
            if call.build is None:
                self._forget(call)
                call.future.complete(node)
                continue
            error = self._client.connections.authentication_error(node.id)
            if error is not None:
                self._give_up(call, error)
                continue
            if not self._client.ready(node, now_ms):
                over = self._client.connections.is_disconnected(node.id)
                cause = self._client.connection_failure(node.id)
                if call.target.role is Role.LEADER and over and cause is not None:
                    lost = DisconnectError(f"{call.target} cannot be reached: {cause}").because_of(cause)
                    self._give_up(call, lost)
                    continue
                delay_ms = self._client.connections.poll_delay_ms(node.id, now_ms)
                if call.target.key is not None and over:
                    # It may be gone for good, and another broker the coordinator by now.
                    self._coordinators.mark_unknown(call.target.key, "it cannot be reached")
                    delay_ms = max(delay_ms, self._backoff.backoff_ms(0))
                    call.not_before_ms = now_ms + delay_ms
                wait_ms = min(wait_ms, delay_ms)
                continue
            self._send(call, call.build, node, now_ms)
        return min(wait_ms, self._coordinators.look_for(wanted, now_ms))

    def _find(self, target: Target, now_ms: int) -> Node | None:
        if target.key is not None:
            return self._coordinators.known(target.key)
        cluster = self._metadata.fetch()
        if target.role is Role.ANY:
            return self._client.least_loaded_node(now_ms)
        node = cluster.controller if target.role is Role.CONTROLLER else cluster.node_by_id(target.node_id)
        if node is None:
            self._metadata.request_update()
        return node

    def _is_gone(self, call: Call) -> bool:
        """True if its broker is missing in metadata that came after it was first missed."""
        version = self._metadata.update_version
        if call.missing_in is None:
            call.missing_in = version
        return version > call.missing_in

    def _give_up(self, call: Call, error: KafkaError) -> None:
        self._forget(call)
        call.future.fail(error)

    def _fail_waiting(self, key: CoordinatorKey, error: KafkaError) -> None:
        """Nobody coordinates `key`, so what waits for that fails."""
        for call in [call for call in self._waiting if call.target.key == key]:
            self._give_up(call, error)

    def _send(self, call: Call, build: Callable[[int], Any], node: Node, now_ms: int) -> None:
        self._waiting.remove(call)
        self._in_flight.add(call)
        call.attempts += 1
        request = self._client.new_request(
            node.id,
            build,
            api_key=call.api_key,
            on_complete=lambda response: self._complete(call, response),
            min_version=call.min_version,
            max_version=call.max_version,
        )
        self._client.send(request, now_ms)

    def _complete(self, call: Call, response: ClientResponse) -> None:
        if call not in self._in_flight:
            return  # expired meanwhile; its future has its error
        self._in_flight.discard(call)
        error = response.failure()
        if error is None and call.retry_on is not None:
            error = call.retry_on(response.message)
        if error is None:
            call.future.complete(response.message)
            return
        call.last_error = error
        # Of another transaction that is not over yet only the coordinator itself can tell.
        if error.retriable and call.target.key is not None and error.code != Errors.CONCURRENT_TRANSACTIONS:
            self._coordinators.mark_unknown(call.target.key, str(error))
        if not error.retriable or call.attempts > self._retries:
            call.future.fail(error)
            return
        self._log.debug("%s failed and is tried again: %s", call.api_key.name, error)
        if (
            error.invalid_metadata
            or isinstance(error, DisconnectError)
            or call.target.role is Role.CONTROLLER
        ):
            self._metadata.request_update()
        if call.target.role is Role.LEADER:
            call.future.fail(error)
            return
        call.not_before_ms = self._time.monotonic_ms() + self._backoff.backoff_ms(call.attempts - 1)
        self._waiting.append(call)

    def _fail_all(self, error: KafkaError) -> None:
        with self._lock:
            left = [*self._submitted, *self._waiting, *self._in_flight]
            self._submitted.clear()
        self._waiting.clear()
        self._in_flight.clear()
        for call in left:
            call.future.fail(error)
