"""ApiCall: one request as its handler sees it."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import attrs

from kclient.broker.broker_context import BrokerContext
from kclient.broker.network.listener import Endpoint
from kclient.broker.network.request_channel import Request, Response, ResponseAction
from kclient.broker.quota.mutation_quota_manager import MutationQuota
from kclient.broker.security.principal import KafkaPrincipal
from kclient.errors import Errors, KafkaError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.header import response_buffers

log = logging.getLogger(__name__)

_PERCENT_NS = 10_000_000  # of a second


@attrs.define(eq=False)
class ApiCall:
    """One request, its version, and the ways to answer it.

    `respond`, `no_response` or `close` is called exactly once, from any thread.
    """

    broker: BrokerContext
    request: Request
    key: ApiKeys
    version: int
    correlation_id: int
    client_id: str | None
    started_ns: int = 0
    """The time at which a handler took the request, if that is of interest: while there are quotas of request time."""
    handled_ns: int = 0
    """The time at which the handler was done with it, if it was before the answer."""
    throttle_ms: int = 0
    """The time for which the connection is held back once the request is answered."""

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
        """Hold the handler's time against the client's quota, once; returns for how many ms the client is held back."""
        if not self.started_ns:
            return 0
        used_ns = (self.handled_ns or time.perf_counter_ns()) - self.started_ns
        self.started_ns = 0
        held_ms = self.broker.quotas.request.record(self.user, self.client_id, used_ns / _PERCENT_NS)
        self.hold_back(held_ms)
        return held_ms

    def respond(self, message: Any, version: int | None = None) -> None:
        """Send `message`, in the request's version unless another one is given."""
        if self.started_ns:
            self.charge_request_time()
        if self.throttle_ms and hasattr(message, "throttle_time_ms"):
            message.throttle_time_ms = self.throttle_ms
        try:
            encoded = response_buffers(
                message, self.key, self.version if version is None else version, self.correlation_id
            )
        except Exception:
            # Also called by whoever completes a waiting request, to whom this answer's trouble means nothing.
            log.exception("The response to %s cannot be encoded", self.key.name)
            self.close()
            return
        self.request.reply(
            Response(self.request.connection_id, ResponseAction.SEND, encoded, self.throttle_ms)
        )

    def no_response(self) -> None:
        """The client expects none; its next request may be read."""
        response = Response(self.request.connection_id, ResponseAction.NOTHING, throttle_ms=self.throttle_ms)
        self.request.reply(response)

    def close(self) -> None:
        """Close the connection."""
        self.request.reply(Response(self.request.connection_id, ResponseAction.CLOSE))


@contextmanager
def error_in(result: Any) -> Iterator[None]:
    """A context: a KafkaError in it ends it and is told in `result`, by its code and, where there is one, its text."""
    try:
        yield
    except KafkaError as error:
        result.error_code = Errors.code_for(error)
        if hasattr(result, "error_message"):
            result.error_message = str(error)
