"""Which broker coordinates the group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from kclient.client.request_sender import NEVER, Reply, RequestSender
from kclient.common.node import Node
from kclient.errors import Errors, GroupAuthorizationError, KafkaError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.log_context import LogContext, RepeatedWarning

_FIRST_VERSION_WITH_MANY_KEYS: Final = 4
_COORDINATOR_ID_BASE: Final = 2**31 - 1
_CREATION_ATTEMPTS: Final = 4
"""Times that a coordinator may be missing: the first group of a cluster has the topic of offsets made."""


class CoordinatorFinder:
    """Finds the group's coordinator and remembers it until somebody says that it is wrong. For the I/O thread.

    The coordinator gets a connection of its own (a node id from the top of the range): brokers answer a connection's
    requests in order, so a heartbeat behind a waiting fetch would come too late.
    """

    def __init__(
        self,
        group_id: str,
        sender: RequestSender,
        backoff: ExponentialBackoff,
        on_fatal: Callable[[KafkaError], None],
        log_context: LogContext,
    ) -> None:
        self._group_id = group_id
        self._sender = sender
        self._backoff = backoff
        self._on_fatal = on_fatal
        self._log = log_context.logger(__name__)
        self._warning = RepeatedWarning(self._log)
        self._coordinator: Node | None = None
        self._in_flight = False
        self._wanted = False
        self._attempts = 0
        self._retry_ms = 0

    @property
    def coordinator(self) -> Node | None:
        """The coordinator as far as known. Asking for it while it is not makes `poll` look for it."""
        if self._coordinator is None:
            self._wanted = True
        return self._coordinator

    @property
    def known(self) -> bool:
        """Whether the coordinator is known; asking does not start a search."""
        return self._coordinator is not None

    def mark_unknown(self, cause: str) -> None:
        """The coordinator is another one, or cannot be reached: look again."""
        if self._coordinator is not None:
            self._log.info("Group coordinator %s is not usable any more: %s", self._coordinator, cause)
            self._coordinator = None
        self._wanted = True

    def poll(self, now_ms: int) -> int:
        """Ask for the coordinator if it is wanted and not known."""
        if not self._wanted or self._in_flight:
            return NEVER
        if now_ms < self._retry_ms:
            return self._retry_ms - now_ms
        self._in_flight = True
        self._sender.send(None, ApiKeys.FIND_COORDINATOR, self._request, self._on_reply, now_ms)
        return NEVER

    def _request(self, version: int) -> FindCoordinatorRequest:
        if version >= _FIRST_VERSION_WITH_MANY_KEYS:
            return FindCoordinatorRequest(coordinator_keys=[self._group_id])
        return FindCoordinatorRequest(key=self._group_id)

    def _on_reply(self, reply: Reply) -> None:
        self._in_flight = False
        error = reply.error or self._take(reply.message)
        if error is None:
            return
        self._retry_ms = reply.now_ms + self._backoff.backoff_ms(self._attempts)
        self._attempts += 1
        if error.retriable:
            if error.code == Errors.COORDINATOR_NOT_AVAILABLE and self._attempts <= _CREATION_ATTEMPTS:
                self._log.debug("The coordinator of group %r is not there yet: %s", self._group_id, error)
                return
            cause = f"The coordinator of group {self._group_id!r} could not be found, trying again: {error}"
            self._warning.warn("find", cause, reply.now_ms)
            return
        self._wanted = False
        self._on_fatal(error)

    def _take(self, response: FindCoordinatorResponse) -> KafkaError | None:
        if response.coordinators:
            found = response.coordinators[0]
            node_id, host, port = found.node_id, found.host, found.port
            code, message = found.error_code, found.error_message
        else:
            node_id, host, port = response.node_id, response.host, response.port
            code, message = response.error_code, response.error_message
        if code == Errors.GROUP_AUTHORIZATION_FAILED:
            return GroupAuthorizationError(f"Not authorized to use group {self._group_id!r}")
        error = Errors.for_code(code, message)
        if error is not None:
            return error
        self._coordinator = Node(_COORDINATOR_ID_BASE - node_id, host, port)
        self._wanted = False
        self._attempts = 0
        self._warning.clear("find")
        self._log.info("Found group coordinator %s:%d (id %d)", host, port, node_id)
        return None
