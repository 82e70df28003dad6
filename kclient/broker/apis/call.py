"""ApiCall: one request as its handler sees it."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import attrs

from kclient.broker.broker_context import BrokerContext
from kclient.broker.metrics.error_counts import error_counts
from kclient.broker.network.listener import Endpoint
from kclient.broker.network.request_channel import Request, Response, ResponseAction
from kclient.broker.security.principal import KafkaPrincipal
from kclient.errors import Errors, KafkaError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.header import response_buffers

log = logging.getLogger(__name__)


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

    def respond(self, message: Any, version: int | None = None) -> None:
        """Send `message`, in the request's version unless another one is given."""
        version = self.version if version is None else version
        try:
            encoded = response_buffers(message, self.key, version, self.correlation_id)
            record = self.request.record
            record.errors = error_counts(message, version)
            record.throttle_ms = getattr(message, "throttle_time_ms", 0)
        except Exception:
            # Also called by whoever completes a waiting request, to whom this answer's trouble means nothing.
            log.exception("The response to %s cannot be encoded", self.key.name)
            self.close({int(Errors.UNKNOWN_SERVER_ERROR): 1})
            return
        self.request.reply(Response(self.request.connection_id, ResponseAction.SEND, encoded))

    def no_response(self) -> None:
        """The client expects none; its next request may be read."""
        self.request.reply(Response(self.request.connection_id, ResponseAction.NOTHING))

    def close(self, errors: Mapping[int, int]) -> None:
        """Close the connection, because of errors that are counted by their codes."""
        self.request.record.errors = errors
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
