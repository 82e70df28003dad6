"""The types of a client's keys and values, and what its constructor takes them from."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from kclient.serialization.base import Deserializer, Serializer, T

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # type checkers bring it along, and only they need the default

    K = TypeVar("K", default=bytes)
    V = TypeVar("V", default=bytes)
else:
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")

SerializerLike: TypeAlias = Serializer[T] | Callable[[T], bytes | None]
DeserializerLike: TypeAlias = Deserializer[T] | Callable[[bytes], T]
