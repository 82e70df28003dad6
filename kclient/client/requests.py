"""A request for a broker, and what became of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import attrs

from kclient.errors import DisconnectError, KafkaError
from kclient.protocol.api_keys import ApiKeys

MessageBuilder: TypeAlias = Callable[[int], Any]
"""Makes the message for the version that the broker and this client have in common."""
ResponseCallback: TypeAlias = "Callable[[ClientResponse], None]"
_MAX_CORRELATION_ID: Final = 0x7FFFFFFF


@attrs.define(eq=False)
class ClientRequest:
    """One request before it has a version. Belongs to the thread of its NetworkClient.

    `timeout_ms` counts from the moment of sending. `on_complete` is called exactly once by
    `NetworkClient.poll`, also when the connection breaks, the time is over or the broker lacks a usable
    version.
    """

    node_id: int
    api_key: ApiKeys
    build: MessageBuilder
    correlation_id: int
    timeout_ms: int
    expect_response: bool = True
    on_complete: ResponseCallback | None = None
    min_version: int | None = None
    max_version: int | None = None

    def __str__(self) -> str:
        return f"{self.api_key.name} request {self.correlation_id} to node {self.node_id}"


class RequestFactory:
    """Makes requests and numbers them. Belongs to the thread of its client.

    `timeout_ms` is for requests that are given none: request.timeout.ms.
    """

    __slots__ = ("_correlation_id", "_timeout_ms")

    def __init__(self, timeout_ms: int) -> None:
        self._timeout_ms = timeout_ms
        self._correlation_id = 0

    def __call__(
        self,
        node_id: int,
        message_or_builder: Any | MessageBuilder,
        *,
        api_key: ApiKeys | None = None,
        expect_response: bool = True,
        timeout_ms: int | None = None,
        on_complete: ResponseCallback | None = None,
        min_version: int | None = None,
        max_version: int | None = None,
    ) -> ClientRequest:
        """Return a request for a message, or for a function of the version, which needs `api_key` beside it.

        Raises TypeError for a function without `api_key`.
        """
        if callable(message_or_builder):
            build = message_or_builder
        else:
            message = message_or_builder
            api_key = message.API_KEY if api_key is None else api_key

            def build(_: int) -> Any:
                return message

        if api_key is None:
            raise TypeError("new_request() needs api_key when it is given a function that builds the message")
        self._correlation_id = (self._correlation_id + 1) & _MAX_CORRELATION_ID
        return ClientRequest(
            node_id,
            api_key,
            build,
            self._correlation_id,
            self._timeout_ms if timeout_ms is None else timeout_ms,
            expect_response,
            on_complete,
            min_version,
            max_version,
        )


@attrs.define(eq=False)
class ClientResponse:
    """The outcome of a request: a message, or the reason why there is none.

    `message` is None if the request failed, and also for a request that expects no response (acks=0), which
    is complete once written. `error` is the typed cause: UnsupportedVersionError, AuthenticationError or SchemaError.
    `timed_out` implies `disconnected`. `cause` is what ended the connection when this answer was due.
    """

    request: ClientRequest
    version: int
    received_ms: int
    latency_ms: int = 0
    message: Any = None
    disconnected: bool = False
    timed_out: bool = False
    error: KafkaError | None = None
    cause: KafkaError | None = None

    @property
    def failed(self) -> bool:
        """True if no answer came, or none that could be used."""
        return self.disconnected or self.error is not None

    def failure(self) -> KafkaError | None:
        """The reason why there is no answer: `error` if there is one, else a DisconnectError; None if all went well."""
        if self.error is not None:
            return self.error
        if not self.disconnected:
            return None
        if self.timed_out:
            return DisconnectError(
                f"{self.request} got no answer within {self.request.timeout_ms} ms (request.timeout.ms), "
                "so the connection was closed"
            ).because_of(self.cause)
        why = "" if self.cause is None else f": {self.cause}"
        return DisconnectError(f"The connection closed before {self.request} was answered{why}").because_of(
            self.cause
        )

    def raise_if_failed(self) -> None:
        """Raise `failure()` if there is one."""
        failure = self.failure()
        if failure is not None:
            raise failure
