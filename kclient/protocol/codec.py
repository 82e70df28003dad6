"""Messages to bytes and back: the functions that the rest of kclient calls.

All are thread-safe, as long as nobody changes the message meanwhile. Decoding raises SchemaError for any bytes that
are not a message, and UnsupportedVersionError for a version that the message does not have.
"""

from __future__ import annotations

import struct
from typing import TypeVar

from kclient.errors import SchemaError
from kclient.protocol.codegen import build
from kclient.protocol.guard import budget
from kclient.protocol.schema import Message

M = TypeVar("M", bound=Message)
Buffer = bytes | bytearray | memoryview

_VERSION = struct.Struct(">h")
# What Python raises in generated code for values that do not fit their fields.
_BAD_VALUE = (struct.error, TypeError, AttributeError, ValueError, OverflowError)


def append(
    message: Message, version: int, out: bytearray, refs: list[tuple[int, Buffer]] | None = None
) -> None:
    """Append the bytes of `message` to `out`; large records go to `refs` with their position, unless it is None.

    Raises UnsupportedVersionError for a version the message does not have, or that lacks a field which is set and may
    not be left out; SchemaError for a value that does not fit its field.
    """
    cls = type(message)
    encoder = cls.ENCODERS.get(version) or build(cls, version)[0]
    try:
        encoder(message, out, refs)
    except _BAD_VALUE as error:
        raise SchemaError(f"{cls.__name__} v{version} has a value that cannot be encoded: {error}") from error


def encode(message: Message, version: int) -> bytes:
    """The bytes of `message` at `version`, without any header. Raises as `append` does."""
    out = bytearray()
    append(message, version, out)
    return bytes(out)


def split(out: bytearray, refs: list[tuple[int, Buffer]]) -> list[Buffer]:
    """The bytes of `out` with the buffers of `refs` between them, in order of the wire and without copying."""
    if not refs:
        return [out]
    view = memoryview(out)
    buffers: list[Buffer] = []
    done = 0
    for position, buffer in refs:
        if position > done:
            buffers.append(view[done:position])
        buffers.append(buffer)
        done = position
    if done < len(out):
        buffers.append(view[done:])
    return buffers


def encode_buffers(message: Message, version: int) -> list[Buffer]:
    """As `encode`, in pieces: `records` of more than a kibibyte are the caller's own buffers and are not copied.

    They must not change until the pieces are sent.
    """
    out = bytearray()
    refs: list[tuple[int, Buffer]] = []
    append(message, version, out, refs)
    return split(out, refs)


def decode_prefix(cls: type[M], version: int, buf: bytes | memoryview, pos: int = 0) -> tuple[M, int]:
    """The message that begins at `pos` of `buf`, and the position after it.

    `records` fields are slices of `buf`; everything else is copied out of it.
    """
    decoder = cls.DECODERS.get(version) or build(cls, version)[1]
    end = len(buf)
    try:
        message: M
        message, pos = decoder(buf, pos, end, budget(end))
    except (struct.error, IndexError) as error:
        raise SchemaError(f"{cls.__name__} v{version} is cut off: {error}") from error
    return message, pos


def decode(cls: type[M], version: int, buf: bytes | memoryview, pos: int = 0) -> M:
    """The message that begins at `pos` of `buf`, which must end where the message does."""
    message, pos = decode_prefix(cls, version, buf, pos)
    if pos != len(buf):
        raise SchemaError(f"{cls.__name__} v{version} is followed by {len(buf) - pos} more bytes")
    return message


def encode_versioned(message: Message, version: int) -> bytes:
    """As `encode`, with the version before it, as in records and in the consumer group protocol."""
    out = bytearray(_VERSION.pack(version))
    append(message, version, out)
    return bytes(out)


def decode_versioned(cls: type[M], buf: bytes | memoryview) -> tuple[int, M]:
    """The version that `buf` begins with, and the message after it.

    Raises UnsupportedVersionError if `cls` does not have that version.
    """
    if len(buf) < 2:
        raise SchemaError(f"{cls.__name__} has no room for its version")
    version = _VERSION.unpack_from(buf)[0]
    message, pos = decode_prefix(cls, version, buf, 2)
    if pos != len(buf):
        raise SchemaError(f"{cls.__name__} v{version} is followed by {len(buf) - pos} more bytes")
    return version, message
