"""One calling convention for everything that users may give as a serializer or deserializer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, final

import attrs

from kclient.errors import ConfigError, SerializationError
from kclient.serialization import primitives
from kclient.serialization.base import Headers

DeserializeFunction = Callable[[str, Headers, bytes], Any]
"""Called with topic, headers and data: the order in which a record has them on the wire and the reader finds them."""

_SIMPLE_TYPES: dict[str, tuple[Any, Any]] = {
    "boolean": (primitives.BooleanSerializer(), primitives.BooleanDeserializer()),
    "bytes": (primitives.BytesSerializer(), primitives.BytesDeserializer()),
    "double": (primitives.DoubleSerializer(), primitives.DoubleDeserializer()),
    "float": (primitives.FloatSerializer(), primitives.FloatDeserializer()),
    "integer": (primitives.IntegerSerializer(), primitives.IntegerDeserializer()),
    "long": (primitives.LongSerializer(), primitives.LongDeserializer()),
    "short": (primitives.ShortSerializer(), primitives.ShortDeserializer()),
    "string": (primitives.StringSerializer(), primitives.StringDeserializer()),
    "uuid": (primitives.UUIDSerializer(), primitives.UUIDDeserializer()),
    "void": (primitives.VoidSerializer(), primitives.VoidDeserializer()),
}


@final
@attrs.define(eq=False, repr=False)
class AdaptedSerializer:
    """A function `(topic, data, headers) -> bytes | None` over what the user gave as `which` serializer.

    None as data is never passed on: it stays None. Calling it raises SerializationError, naming topic and setting,
    with the serializer's exception as its cause. Thread-safe, if the serializer is.

    Whoever serializes many records may call `function` itself (with topic, data and headers if `takes_topic`, else
    with the data alone; None stands for no serializer) and leave to `as_bytes` and `failed` what is not bytes.
    """

    function: Callable[..., Any] | None
    takes_topic: bool
    _which: Literal["key", "value"]

    def __call__(self, topic: str, data: Any, headers: Headers) -> bytes | None:
        if data is None:
            return None
        function = self.function
        if function is None:
            return data if type(data) is bytes else self._as_given(data, topic)
        try:
            made = function(topic, data, headers) if self.takes_topic else function(data)
        except Exception as error:
            raise self.failed(topic, error) from error
        return made if type(made) is bytes else self.as_bytes(made, topic)

    def failed(self, topic: str, error: Exception) -> SerializationError:
        """Return the error to raise where `function` raised `error`."""
        return SerializationError(
            f"The {self._which}.serializer failed for a record to topic {topic}: {error}"
        )

    def as_bytes(self, made: Any, topic: str) -> bytes | None:
        """Return what `function` made as bytes or None; raises SerializationError if it is nothing of the kind."""
        if made is None:
            return None
        if isinstance(made, bytes | bytearray | memoryview):
            return bytes(made)
        raise SerializationError(
            f"The {self._which}.serializer made an object of type {type(made).__name__} instead of bytes for a "
            f"record to topic {topic}."
        )

    def _as_given(self, data: Any, topic: str) -> bytes:
        if isinstance(data, bytes | bytearray | memoryview):
            return bytes(data)
        raise SerializationError(
            f"The {self._which} of a record to topic {topic} is of type {type(data).__name__}; without a "
            f"{self._which}.serializer it must be bytes."
        )


def as_serializer(given: object, which: Literal["key", "value"] = "value") -> AdaptedSerializer:
    """Return the serializer `which` that the user gave, under one calling convention.

    It may be None (bytes only), a Serializer, a callable `T -> bytes`, or the short name of a simple type, which is
    what configuration makes of Java's class names. Raises ConfigError if `given` is something else.
    """
    if given is None:
        return AdaptedSerializer(None, False, which)
    if isinstance(given, str):
        given = _named(given, f"{which}.serializer")[0]
    method = getattr(given, "serialize", None)
    if callable(method) and not isinstance(given, type):
        return AdaptedSerializer(method, True, which)
    if callable(given) and method is None:
        return AdaptedSerializer(given, False, which)
    raise _not_usable(given, f"{which}.serializer", "serialize(topic, data, headers)")


def as_deserializer(given: object, which: Literal["key", "value"] = "value") -> DeserializeFunction | None:
    """A function `(topic, headers, data) -> T` for what the user gave as `which` deserializer; None means bytes.

    The same things are possible as with `as_serializer`. The function must not be called for null data; it raises
    whatever the deserializer raises.
    """
    if given is None or given == "bytes":
        return None
    if isinstance(given, str):
        given = _named(given, f"{which}.deserializer")[1]
    method = getattr(given, "deserialize", None)
    if callable(method) and not isinstance(given, type):
        deserialize: Callable[[str, bytes, Headers], Any] = method
        return lambda topic, headers, data: deserialize(topic, data, headers)
    if callable(given) and method is None:
        function: Callable[[bytes], Any] = given
        return lambda _topic, _headers, data: function(data)
    raise _not_usable(given, f"{which}.deserializer", "deserialize(topic, data, headers)")


def _named(name: str, setting: str) -> tuple[Any, Any]:
    try:
        return _SIMPLE_TYPES[name]
    except KeyError:
        raise ConfigError(
            f"{setting}: {name!r} is not one of {', '.join(_SIMPLE_TYPES)}; pass the object itself.",
            name=setting,
        ) from None


def _not_usable(given: object, setting: str, method: str) -> ConfigError:
    if isinstance(given, type):
        return ConfigError(f"{setting} is the class {given.__name__}; pass an instance of it.", name=setting)
    return ConfigError(
        f"{setting} must be a callable or have a method {method}, which an object of type "
        f"{type(given).__name__} does not.",
        name=setting,
    )
