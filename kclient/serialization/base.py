"""Interfaces of serializers and deserializers, which turn keys and values into bytes and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

import attrs

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)

Headers = Sequence[tuple[str, bytes | None]]
"""A record's headers, in order; a name may come more than once."""


class Serializer(Protocol[T_contra]):
    """Turns keys or values of one type into bytes. Thread-safe, if threads share the producer."""

    def serialize(self, topic: str, data: T_contra, headers: Headers, /) -> bytes | None:
        """`data`, which is never None, as bytes; None makes the value a tombstone.

        Any exception becomes the cause of a SerializationError that `send()` raises.
        """


class Deserializer(Protocol[T_co]):
    """Turns bytes into keys or values of one type. Called by the thread that polls."""

    def deserialize(self, topic: str, data: bytes, headers: Headers, /) -> T_co:
        """Return the key or value that `data`, which is never None, stands for.

        Any exception becomes the cause of a RecordDeserializationError that `poll()` raises.
        """


@attrs.frozen
class Serde(Generic[T]):
    """A serializer and the deserializer that reads what it writes."""

    serializer: Serializer[T]
    deserializer: Deserializer[T]
