"""Headers of every request and response on a connection."""

from __future__ import annotations

from kclient.protocol.schema import Message, message, wire
from kclient.protocol.wire import Int16, Int32, String


@message(kind="header", versions="1-2", flexible="2+")
class RequestHeader(Message):
    """Version 1 has the client id, 2 tagged fields as well. The client id keeps its old form in all versions."""

    request_api_key: int = wire(Int16, "0+")
    request_api_version: int = wire(Int16, "0+")
    correlation_id: int = wire(Int32, "0+")
    client_id: str | None = wire(String, "1+", nullable="1+", flexible=False)


@message(kind="header", versions="0-1", flexible="1+")
class ResponseHeader(Message):
    """Version 1 has tagged fields."""

    correlation_id: int = wire(Int32, "0+")
