"""Serializers and deserializers of simple types, with the bytes of Java's classes of the same names.

All are stateless and thread-safe. They raise SerializationError for a value of another type and for bytes that
cannot be one. Types are checked: in Python, a value of the wrong type would often have some bytes, too.
"""

from __future__ import annotations

import struct
import uuid
from typing import ClassVar

import attrs

from kclient.errors import SerializationError
from kclient.serialization.base import Headers


def _wrong_type(data: object, expected: str) -> SerializationError:
    return SerializationError(f"Expected {expected}, not an object of type {type(data).__name__}.")


@attrs.frozen
class BytesSerializer:
    """Bytes as they are. A bytearray or memoryview is copied, so that it may change after `send()`."""

    def serialize(self, _topic: str, data: bytes | bytearray | memoryview, _headers: Headers) -> bytes:
        if isinstance(data, bytes):
            return data
        if not isinstance(data, bytearray | memoryview):
            raise _wrong_type(data, "bytes")
        return bytes(data)


@attrs.frozen
class BytesDeserializer:
    """Bytes as they are."""

    def deserialize(self, _topic: str, data: bytes, _headers: Headers) -> bytes:
        return data


@attrs.frozen
class StringSerializer:
    """Text in `encoding`."""

    encoding: str = "utf-8"

    def serialize(self, _topic: str, data: str, _headers: Headers) -> bytes:
        if not isinstance(data, str):
            raise _wrong_type(data, "a str")
        return data.encode(self.encoding)


@attrs.frozen
class StringDeserializer:
    """Text in `encoding`. Bytes that are no such text are an error, where Java puts replacement characters."""

    encoding: str = "utf-8"

    def deserialize(self, _topic: str, data: bytes, _headers: Headers) -> str:
        return data.decode(self.encoding)


class _Number:
    """The base of the numbers: a fixed big-endian form."""

    __slots__ = ()
    _form: ClassVar[struct.Struct]
    _what: ClassVar[str]

    def _pack(self, data: float) -> bytes:
        try:
            return self._form.pack(data)
        except (struct.error, OverflowError):
            raise SerializationError(f"{data} does not fit into {self._what}.") from None

    def _check_size(self, data: bytes) -> None:
        if len(data) != self._form.size:
            raise SerializationError(f"{self._what} has {self._form.size} bytes, not {len(data)}.")


class _WholeNumberSerializer(_Number):
    __slots__ = ()

    def serialize(self, _topic: str, data: int, _headers: Headers) -> bytes:
        if isinstance(data, bool) or not isinstance(data, int):
            raise _wrong_type(data, "an int")
        return self._pack(data)


class _WholeNumberDeserializer(_Number):
    __slots__ = ()

    def deserialize(self, _topic: str, data: bytes, _headers: Headers) -> int:
        self._check_size(data)
        return int.from_bytes(data, "big", signed=True)


class _FloatingSerializer(_Number):
    __slots__ = ()

    def serialize(self, _topic: str, data: float, _headers: Headers) -> bytes:
        if isinstance(data, bool) or not isinstance(data, int | float):
            raise _wrong_type(data, "a float")
        return self._pack(data)


class _FloatingDeserializer(_Number):
    __slots__ = ()

    def deserialize(self, _topic: str, data: bytes, _headers: Headers) -> float:
        self._check_size(data)
        value: float = self._form.unpack(data)[0]
        return value


class ShortSerializer(_WholeNumberSerializer):
    """An int of 16 bits."""

    __slots__ = ()
    _form, _what = struct.Struct(">h"), "a short"


class ShortDeserializer(_WholeNumberDeserializer):
    """An int of 16 bits."""

    __slots__ = ()
    _form, _what = struct.Struct(">h"), "a short"


class IntegerSerializer(_WholeNumberSerializer):
    """An int of 32 bits."""

    __slots__ = ()
    _form, _what = struct.Struct(">i"), "an integer"


class IntegerDeserializer(_WholeNumberDeserializer):
    """An int of 32 bits."""

    __slots__ = ()
    _form, _what = struct.Struct(">i"), "an integer"


class LongSerializer(_WholeNumberSerializer):
    """An int of 64 bits."""

    __slots__ = ()
    _form, _what = struct.Struct(">q"), "a long"


class LongDeserializer(_WholeNumberDeserializer):
    """An int of 64 bits."""

    __slots__ = ()
    _form, _what = struct.Struct(">q"), "a long"


class FloatSerializer(_FloatingSerializer):
    """A float rounded to IEEE 754 single precision."""

    __slots__ = ()
    _form, _what = struct.Struct(">f"), "a float"


class FloatDeserializer(_FloatingDeserializer):
    """A float of IEEE 754 single precision."""

    __slots__ = ()
    _form, _what = struct.Struct(">f"), "a float"


class DoubleSerializer(_FloatingSerializer):
    """A float, which is of IEEE 754 double precision."""

    __slots__ = ()
    _form, _what = struct.Struct(">d"), "a double"


class DoubleDeserializer(_FloatingDeserializer):
    """A float, which is of IEEE 754 double precision."""

    __slots__ = ()
    _form, _what = struct.Struct(">d"), "a double"


@attrs.frozen
class BooleanSerializer:
    """One byte: 1 for True, 0 for False."""

    def serialize(self, _topic: str, data: bool, _headers: Headers) -> bytes:
        if not isinstance(data, bool):
            raise _wrong_type(data, "a bool")
        return b"\x01" if data else b"\x00"


@attrs.frozen
class BooleanDeserializer:
    """One byte: 1 for True, 0 for False, anything else is an error."""

    def deserialize(self, _topic: str, data: bytes, _headers: Headers) -> bool:
        if data not in {b"\x00", b"\x01"}:
            raise SerializationError("A boolean is one byte, 0 or 1.")
        return data == b"\x01"


@attrs.frozen
class UUIDSerializer:
    """A `uuid.UUID` as its text of 36 characters."""

    def serialize(self, _topic: str, data: uuid.UUID, _headers: Headers) -> bytes:
        if not isinstance(data, uuid.UUID):
            raise _wrong_type(data, "a uuid.UUID")
        return str(data).encode("ascii")


@attrs.frozen
class UUIDDeserializer:
    """A `uuid.UUID` from its text of 36 characters."""

    def deserialize(self, _topic: str, data: bytes, _headers: Headers) -> uuid.UUID:
        try:
            # The constructor alone would also take braces, "urn:uuid:" and a text without dashes.
            if len(data) == 36:
                return uuid.UUID(data.decode("ascii"))
        except ValueError:
            pass
        raise SerializationError("The bytes are not the text of a UUID.")


@attrs.frozen
class VoidSerializer:
    """For keys or values that are always None."""

    def serialize(self, _topic: str, data: None, _headers: Headers) -> None:
        raise _wrong_type(data, "None")


@attrs.frozen
class VoidDeserializer:
    """For keys or values that are always None."""

    def deserialize(self, _topic: str, data: bytes, _headers: Headers) -> None:
        raise SerializationError(f"Expected null, not {len(data)} bytes.")
