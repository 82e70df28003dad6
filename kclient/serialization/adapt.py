"""One calling convention for everything that users may give as a serializer or deserializer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from kclient.errors import ConfigError, SerializationError
from kclient.serialization import primitives
from kclient.serialization.base import Headers

SerializeFunction = Callable[[str, Any, Headers], bytes | None]
"""Called with topic, data and headers."""
DeserializeFunction = Callable[[str, Headers, bytes], Any]
"""Called with topic, headers and data: the order in which a record has them on the wire and the reader finds them."""

_SERIALIZERS: dict[str, Any] = {
    "boolean": primitives.BooleanSerializer(),
    "bytes": primitives.BytesSerializer(),
    "double": primitives.DoubleSerializer(),
    "float": primitives.FloatSerializer(),
    "integer": primitives.IntegerSerializer(),
    "long": primitives.LongSerializer(),
    "short": primitives.ShortSerializer(),
    "string": primitives.StringSerializer(),
    "uuid": primitives.UUIDSerializer(),
    "void": primitives.VoidSerializer(),
}
_DESERIALIZERS: dict[str, Any] = {
    "boolean": primitives.BooleanDeserializer(),
    "bytes": primitives.BytesDeserializer(),
    "double": primitives.DoubleDeserializer(),
    "float": primitives.FloatDeserializer(),
    "integer": primitives.IntegerDeserializer(),
    "long": primitives.LongDeserializer(),
    "short": primitives.ShortDeserializer(),
    "string": primitives.StringDeserializer(),
    "uuid": primitives.UUIDDeserializer(),
    "void": primitives.VoidDeserializer(),
}


def as_serializer(given: object, which: Literal["key", "value"] = "value") -> SerializeFunction:
    """A function `(topic, data, headers) -> bytes | None` for what the user gave as `which` serializer.

    That may be None (bytes only), a Serializer, a callable `T -> bytes`, or the short name of a simple type, which
    is what configuration makes of Java's class names. None as data is never passed on: it stays None.

    Raises ConfigError if `given` is something else. The function raises SerializationError, naming topic and
    setting, with the serializer's exception as its cause.
    """
    if given is None:
        return _bytes_only(which)
    if isinstance(given, str):
        given = _named(_SERIALIZERS, given, f"{which}.serializer")
    method = getattr(given, "serialize", None)
    if callable(method) and not isinstance(given, type):
        return _by_method(method, which)
    if callable(given) and method is None:
        return _by_function(given, which)
    raise _not_usable(given, f"{which}.serializer", "serialize(topic, data, headers)")


# Two functions that differ in one call: a wrapper between them would be called for every record.


def _by_method(serialize: Callable[[str, Any, Headers], Any], which: str) -> SerializeFunction:
    def checked(topic: str, data: Any, headers: Headers) -> bytes | None:
        if data is None:
            return None
        try:
            made = serialize(topic, data, headers)
        except Exception as error:
            raise _failed(which, topic, error) from error
        return made if type(made) is bytes else _as_bytes(made, which, topic)

    return checked


def _by_function(function: Callable[[Any], Any], which: str) -> SerializeFunction:
    def checked(topic: str, data: Any, _headers: Headers) -> bytes | None:
        if data is None:
            return None
        try:
            made = function(data)
        except Exception as error:
            raise _failed(which, topic, error) from error
        return made if type(made) is bytes else _as_bytes(made, which, topic)

    return checked


def _failed(which: str, topic: str, error: Exception) -> SerializationError:
    return SerializationError(f"The {which}.serializer failed for a record to topic {topic}: {error}")


def _as_bytes(made: Any, which: str, topic: str) -> bytes | None:
    if made is None:
        return None
    if isinstance(made, bytes | bytearray | memoryview):
        return bytes(made)
    raise SerializationError(
        f"The {which}.serializer made an object of type {type(made).__name__} instead of bytes for a record to "
        f"topic {topic}."
    )


def _bytes_only(which: str) -> SerializeFunction:
    def serialize(topic: str, data: Any, _headers: Headers) -> bytes | None:
        if data is None or type(data) is bytes:
            return data
        if isinstance(data, bytes | bytearray | memoryview):
            return bytes(data)
        raise SerializationError(
            f"The {which} of a record to topic {topic} is of type {type(data).__name__}; without a "
            f"{which}.serializer it must be bytes."
        )

    return serialize


def as_deserializer(given: object, which: Literal["key", "value"] = "value") -> DeserializeFunction | None:
    """A function `(topic, headers, data) -> T` for what the user gave as `which` deserializer; None means bytes.

    The same things are possible as with `as_serializer`. The function must not be called for null data; it raises
    whatever the deserializer raises.
    """
    if given is None or given == "bytes":
        return None
    if isinstance(given, str):
        given = _named(_DESERIALIZERS, given, f"{which}.deserializer")
    method = getattr(given, "deserialize", None)
    if callable(method) and not isinstance(given, type):
        deserialize: Callable[[str, bytes, Headers], Any] = method
        return lambda topic, headers, data: deserialize(topic, data, headers)
    if callable(given) and method is None:
        function: Callable[[bytes], Any] = given
        return lambda _topic, _headers, data: function(data)
    raise _not_usable(given, f"{which}.deserializer", "deserialize(topic, data, headers)")


def _named(table: dict[str, Any], name: str, setting: str) -> object:
    try:
        return table[name]
    except KeyError:
        raise ConfigError(
            f"{setting}: {name!r} is not one of {', '.join(table)}; pass the object itself.", name=setting
        ) from None


def _not_usable(given: object, setting: str, method: str) -> ConfigError:
    if isinstance(given, type):
        return ConfigError(f"{setting} is the class {given.__name__}; pass an instance of it.", name=setting)
    return ConfigError(
        f"{setting} must be a callable or have a method {method}, which an object of type "
        f"{type(given).__name__} does not.",
        name=setting,
    )
