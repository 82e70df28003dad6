"""Whole frames: length, header and body of requests and responses, for the side that writes and the side that reads.

Frames to be written begin with their length of four bytes; frames to be parsed are without it.
"""

from __future__ import annotations

import functools
import struct

import attrs

from kclient.errors import InvalidRequestError, SchemaError, UnsupportedVersionError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.codec import Buffer, append, decode, decode_prefix, split
from kclient.protocol.messages import headers
from kclient.protocol.registry import request_class, response_class
from kclient.protocol.schema import Message

_LENGTH = struct.Struct(">i")
_LENGTH_AND_CORRELATION_ID = struct.Struct(">ii")
_MAX_LENGTH = 2**31 - 1
_CORRELATION_ID_AT = 8  # behind the length, the API's number and the version
_NO_TAGS_AT = 4  # of a response's header without its length: the number of its tagged fields


@attrs.frozen
class RequestHeader:
    """The header of a request. `api_key` is a plain number if there is no such API."""

    api_key: ApiKeys | int
    api_version: int
    correlation_id: int
    client_id: str | None = None


class UnknownApiError(InvalidRequestError):
    """A request for an API that there is not, or that no broker answers. Nothing can be said in return."""

    header: RequestHeader

    default_message = "The request is for an unknown API."


class RequestVersionError(UnsupportedVersionError):
    """A request in a version that its API does not have.

    With `header.api_key` API_VERSIONS, a broker answers in version 0 with error 35 and its own range (KIP-511).
    """

    header: RequestHeader


def request_buffers(
    message: Message, version: int, correlation_id: int, client_id: str | None
) -> list[Buffer]:
    """The frame of a request; large `records` in it are passed on, not copied (see `codec.encode_buffers`).

    Raises as `codec.append` does.
    """
    api = message.API_KEY
    if api is None:
        raise TypeError(f"{type(message).__name__} is no request")
    out = bytearray(_request_header(api, version, client_id))
    _LENGTH.pack_into(out, _CORRELATION_ID_AT, correlation_id)
    return _frame(out, message, version)


@functools.lru_cache(maxsize=1024)
def _request_header(api: ApiKeys, version: int, client_id: str | None) -> bytes:
    """Return the start of a frame with length and correlation id 0: nothing else differs between requests."""
    header = headers.RequestHeader(
        request_api_key=int(api), request_api_version=version, correlation_id=0, client_id=client_id
    )
    out = bytearray(4)
    append(header, api.request_header_version(version), out)
    return bytes(out)


def response_buffers(message: Message, api_key: ApiKeys, version: int, correlation_id: int) -> list[Buffer]:
    """The frame of a response to a request of this API and version; as `request_buffers`."""
    out = bytearray(_LENGTH_AND_CORRELATION_ID.pack(0, correlation_id))
    if api_key.response_header_version(version):
        out.append(0)  # the number of tagged fields, of which there are none
    return _frame(out, message, version)


def _frame(out: bytearray, message: Message, version: int) -> list[Buffer]:
    """The frame that begins with `out`: room for the length, and the header."""
    refs: list[tuple[int, Buffer]] = []
    append(message, version, out, refs)
    size = len(out) - 4 + sum(len(buffer) for _, buffer in refs)
    if size > _MAX_LENGTH:
        raise SchemaError(f"{type(message).__name__} has {size} bytes, more than a frame can hold")
    _LENGTH.pack_into(out, 0, size)
    return split(out, refs)


def parse_request_header(frame: bytes | memoryview) -> tuple[RequestHeader, int]:
    """The header of a request and where its body begins.

    Raises UnknownApiError or RequestVersionError, both with the header, if the body cannot be understood;
    SchemaError if not even the header can.
    """
    # Both versions of the header begin alike, so this much is safe to read whatever the peer speaks.
    raw, pos = decode_prefix(headers.RequestHeader, 1, frame)
    number, version = raw.request_api_key, raw.request_api_version
    api = ApiKeys.for_id(number)
    header = RequestHeader(number if api is None else api, version, raw.correlation_id, raw.client_id)
    if api is None or not api.on_broker_listener:
        raise UnknownApiError(
            f"There is no API {number} (version {version}) to ask a broker for", header=header
        )
    # The body decides, and not the API's stable range: whoever reads it knows whether the newest is enabled.
    cls = request_class(api)
    if not cls.MIN_VERSION <= version <= cls.MAX_VERSION:
        raise RequestVersionError(
            f"{api.title} has versions {cls.MIN_VERSION} to {cls.MAX_VERSION}, not {version}", header=header
        )
    if api.request_header_version(version) > 1:
        _, pos = decode_prefix(headers.RequestHeader, 2, frame)
    return header, pos


def parse_request(frame: bytes | memoryview) -> tuple[RequestHeader, Message]:
    """A request with its header. Raises as `parse_request_header` does, and SchemaError for a bad body."""
    header, pos = parse_request_header(frame)
    assert isinstance(header.api_key, ApiKeys)
    message, pos = decode_prefix(request_class(header.api_key), header.api_version, frame, pos)
    if pos != len(frame):
        raise SchemaError(f"{type(message).__name__} is followed by {len(frame) - pos} more bytes")
    return header, message


def parse_response(api_key: ApiKeys, version: int, frame: bytes | memoryview) -> tuple[int, Message]:
    """The correlation id and the body of a response to a request of this API and version."""
    return peek_correlation_id(frame), parse_response_body(api_key, version, frame)


def parse_response_body(api_key: ApiKeys, version: int, frame: bytes | memoryview) -> Message:
    """As `parse_response`, for who has looked at the correlation id."""
    header_version = api_key.response_header_version(version)
    if header_version and len(frame) > _NO_TAGS_AT and frame[_NO_TAGS_AT] == 0:
        pos = _NO_TAGS_AT + 1  # as nearly always, and worth not making a message of it
    else:
        _, pos = decode_prefix(headers.ResponseHeader, header_version, frame)
    return decode(response_class(api_key), version, frame, pos)


def peek_correlation_id(frame: bytes | memoryview) -> int:
    """The correlation id of a response, without reading the rest."""
    if len(frame) < 4:
        raise SchemaError(f"A response of {len(frame)} bytes has no room for its correlation id")
    correlation_id: int = _LENGTH.unpack_from(frame)[0]
    return correlation_id
