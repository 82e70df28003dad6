"""ApiCall: one request as its handler sees it."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import attrs

from kclient.broker.apis.access import ERRORS, EVERYTHING, OPERATIONS, bits
from kclient.broker.apis.error_responses import error_response
from kclient.broker.broker_context import BrokerContext
from kclient.broker.metrics.error_counts import error_counts
from kclient.broker.network.listener import Endpoint
from kclient.broker.network.request_channel import Request, Response, ResponseAction
from kclient.broker.quota.client_quota_manager import ClientQuotaManager
from kclient.broker.quota.mutation_quota_manager import MutationQuota
from kclient.broker.security.authorizer import Requester, java_address
from kclient.broker.security.principal import KafkaPrincipal
from kclient.common.acl import CLUSTER_NAME, AclOperation, ResourceType
from kclient.errors import Errors, InvalidRequestError, KafkaError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.header import response_buffers

log = logging.getLogger(__name__)

_PERCENT_NS = 10_000_000  # of a second


class UnreadableRequestError(InvalidRequestError):
    """A request that Java's broker cannot even read, though its bytes are in order: the connection is closed."""


@attrs.define(eq=False)
class ApiCall:
    """One request, its version, and the ways to answer it.

    `respond`, `no_response` or `close` is called exactly once, from any thread; `fail` where that did not come about.
    """

    broker: BrokerContext
    request: Request
    key: ApiKeys
    version: int
    correlation_id: int
    client_id: str | None
    message: Any = None
    """The request as it was decoded."""
    started_ns: int = 0
    """The time at which a handler took the request, if that is of interest: while there are quotas of request time."""
    handled_ns: int = 0
    """The time at which the handler was done with it, if it was before the answer."""
    throttle_ms: int = 0
    """The time for which the connection is held back once the request is answered."""
    _known: Requester | None = attrs.field(default=None, init=False)
    _answered: bool = attrs.field(default=False, init=False)
    _failed: bool = attrs.field(default=False, init=False)

    @property
    def client_host(self) -> str:
        """The client's address as groups show it."""
        return f"/{self.request.client_host}"

    @property
    def principal(self) -> KafkaPrincipal:
        """The client, as it has proven who it is."""
        return self.request.principal

    @property
    def endpoint(self) -> Endpoint:
        """The address that the client is told for the broker: that of the listener it came to."""
        return self.broker.advertised[self.request.listener]

    # Access. Without an authorizer everything is allowed, at the price of one test.

    def authorized(
        self,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str = CLUSTER_NAME,
        *,
        log_denied: bool = True,
    ) -> bool:
        """True if the client may do `operation` on a resource.

        A denial is logged unless the client did not ask for this very resource, or may do it in another way.
        """
        authorizer = self.broker.authorizer
        return authorizer is None or authorizer.authorized(
            self._requester(), operation, resource_type, name, log_denied=log_denied
        )

    def require(self, operation: AclOperation, resource_type: ResourceType, name: str = CLUSTER_NAME) -> None:
        """Raise the AuthorizationError for resources of the type unless the client may do `operation`."""
        if not self.authorized(operation, resource_type, name):
            raise ERRORS[resource_type]

    def authorized_names(
        self,
        operation: AclOperation,
        resource_type: ResourceType,
        names: Iterable[str],
        *,
        log_denied: bool = True,
    ) -> Container[str]:
        """Those of `names`, which may come several times, that the client may do `operation` on."""
        authorizer = self.broker.authorizer
        if authorizer is None:
            return EVERYTHING
        who = self._requester()
        return {
            name
            for name, count in Counter(names).items()
            if authorizer.authorized(who, operation, resource_type, name, count=count, log_denied=log_denied)
        }

    def authorized_for_any(self, operation: AclOperation, resource_type: ResourceType) -> bool:
        """True if there could be a resource of the type on which the client may do `operation`."""
        authorizer = self.broker.authorizer
        return authorizer is None or authorizer.authorized_for_any(
            self._requester(), operation, resource_type
        )

    def authorized_operations(self, resource_type: ResourceType, name: str = CLUSTER_NAME) -> int:
        """All that the client may do with a resource, as bits (KIP-430). For the log nothing of it is asked for."""
        authorizer = self.broker.authorizer
        operations = OPERATIONS[resource_type]
        if authorizer is None:
            return bits(operations)
        who = self._requester()
        return bits(
            operation
            for operation in operations
            if authorizer.authorized(who, operation, resource_type, name, log_allowed=False, log_denied=False)
        )

    def authorized_cluster_operations(self) -> int:
        """The same for the cluster: nothing for those who may not see it."""
        if not self.authorized(AclOperation.DESCRIBE, ResourceType.CLUSTER):
            return 0
        return self.authorized_operations(ResourceType.CLUSTER)

    def _requester(self) -> Requester:
        if self._known is None:
            host = java_address(self.request.client_host)
            self._known = Requester(str(self.principal), host, self.key.title)
        return self._known

    @property
    def user(self) -> str:
        """The name of the client's principal, by which quotas know it."""
        return self.request.principal.name

    def hold_back(self, throttle_ms: int) -> None:
        """Hold the connection back for that long once the request is answered; of several times the longest counts."""
        self.throttle_ms = max(self.throttle_ms, throttle_ms)

    def mutation_quota(self, *, strict_since: int) -> MutationQuota:
        """Return the quota for what the client makes and deletes; versions from `strict_since` on are refused by it."""
        manager = self.broker.quotas.mutation
        return manager.quota_of(self.user, self.client_id, strict=self.version >= strict_since)

    def charge_request_time(self) -> int:
        """Hold the handler's time against the client's quota, once; returns for how many ms the client is held back.

        The time of the network thread is added when the answer has left, and holds back from the next request on.
        """
        if not self.started_ns:
            return 0
        used_ns = (self.handled_ns or time.perf_counter_ns()) - self.started_ns
        self.started_ns = 0
        quota = self.broker.quotas.request
        held_ms = quota.record(self.user, self.client_id, used_ns / _PERCENT_NS)
        # Not by a method of this call, which would keep the request's memory until the answer has left.
        self.request.record.charge_network_ns = partial(_charge_network, quota, self.user, self.client_id)
        self.hold_back(held_ms)
        return held_ms

    def respond(self, message: Any, version: int | None = None) -> None:
        """Send `message`, in the request's version unless another one is given."""
        if self.started_ns:
            self.charge_request_time()
        if self.throttle_ms and hasattr(message, "throttle_time_ms"):
            message.throttle_time_ms = self.throttle_ms
        version = self.version if version is None else version
        try:
            encoded = response_buffers(message, self.key, version, self.correlation_id)
            record = self.request.record
            record.errors = error_counts(message, version)
            record.throttle_ms = getattr(message, "throttle_time_ms", 0)
        except Exception as error:
            # Also called by whoever completes a waiting request, to whom this answer's trouble means nothing.
            self.fail(error)
            return
        self._answered = True
        self.request.reply(
            Response(self.request.connection_id, ResponseAction.SEND, encoded, self.throttle_ms)
        )

    def fail(self, error: Exception) -> None:
        """Log an error that nobody expected, and answer the request with it; close the connection if that fails, too.

        Never raises. A request that was answered before stays so.
        """
        log.error(
            "%s request of version %d with correlation id %d from client %r at %s failed%s",
            self.key.title, self.version, self.correlation_id, self.client_id, self.request.client_host,
            " after it was answered" if self._answered else "", exc_info=error,
        )  # fmt: skip
        if self._answered:
            return
        if self._failed or self.message is None:
            self.close({Errors.code_for(error): 1})
            return
        self._failed = True
        try:
            response = error_response(self.message, self.version, error)
        except Exception as second:
            self.fail(second)
            return
        if response is None:
            self.close({Errors.code_for(error): 1})
        else:
            self.respond(response)

    def no_response(self) -> None:
        """The client expects none; its next request may be read."""
        self._answered = True
        response = Response(self.request.connection_id, ResponseAction.NOTHING, throttle_ms=self.throttle_ms)
        self.request.reply(response)

    def close(self, errors: Mapping[int, int]) -> None:
        """Close the connection, because of errors that are counted by their codes."""
        self._answered = True
        self.request.record.errors = errors
        self.request.reply(Response(self.request.connection_id, ResponseAction.CLOSE))


def _charge_network(quota: ClientQuotaManager, user: str, client_id: str | None, used_ns: int) -> None:
    quota.note(user, client_id, used_ns / _PERCENT_NS)


@contextmanager
def error_in(result: Any) -> Iterator[None]:
    """A context: a KafkaError in it ends it and is told in `result`, by its code and, where there is one, its text."""
    try:
        yield
    except KafkaError as error:
        result.error_code = Errors.code_for(error)
        if hasattr(result, "error_message"):
            result.error_message = str(error)
