"""One calling convention for serializers, callables and names."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest

from kclient.errors import ConfigError, SerializationError
from kclient.serialization import (
    Headers,
    JsonSerializer,
    StringDeserializer,
    StringSerializer,
    as_deserializer,
    as_serializer,
)


class TopicAndHeaders:
    """Shows what it was called with."""

    def serialize(self, topic: str, data: str, headers: Headers) -> bytes:
        return f"{topic}|{data}|{headers}".encode()

    def deserialize(self, topic: str, data: bytes, headers: Headers) -> tuple[str, bytes, Headers]:
        return topic, data, headers


@pytest.mark.parametrize("data", [b"abc", bytearray(b"abc"), memoryview(b"abc")])
def test_without_serializer_bytes_go_through(data: object) -> None:
    made = as_serializer(None)("t", data, ())
    assert type(made) is bytes
    assert made == b"abc"


@pytest.mark.parametrize("which", ["key", "value"])
def test_without_serializer_anything_else_is_refused_naming_the_setting_and_the_topic(
    which: Literal["key", "value"],
) -> None:
    with pytest.raises(SerializationError, match=f"{which} .* orders .* str.*{which}.serializer"):
        as_serializer(None, which)("orders", "text", ())


@pytest.mark.parametrize("given", [None, "string", json.dumps, JsonSerializer(), TopicAndHeaders()])
def test_a_tombstone_never_reaches_the_serializer(given: object) -> None:
    assert as_serializer(given)("t", None, ()) is None


def test_a_serializer_gets_topic_data_and_headers() -> None:
    made = as_serializer(TopicAndHeaders())("t", "x", (("h", b"1"),))
    assert made == b"t|x|(('h', b'1'),)"


def test_a_callable_gets_the_data_alone() -> None:
    assert as_serializer(str.encode)("t", "né", ()) == "né".encode()


def test_a_short_name_stands_for_a_simple_type() -> None:
    assert as_serializer("long")("t", 1, ()) == b"\x00" * 7 + b"\x01"
    deserialize = as_deserializer("long")
    assert deserialize is not None
    assert deserialize("t", (), b"\x00" * 7 + b"\x01") == 1


def test_a_failing_serializer_is_named_with_the_topic_and_is_the_cause() -> None:
    with pytest.raises(SerializationError, match=r"key\.serializer .* orders") as caught:
        as_serializer(json.dumps, "key")("orders", object(), ())
    assert isinstance(caught.value.__cause__, TypeError)


def test_a_serializer_that_makes_no_bytes_is_refused() -> None:
    with pytest.raises(SerializationError, match=r"value\.serializer made an object of type str"):
        as_serializer(json.dumps)("t", {}, ())


def test_a_serializer_may_make_a_bytearray_or_none() -> None:
    made = as_serializer(bytearray)("t", b"ab", ())
    assert type(made) is bytes
    assert as_serializer(lambda _: None)("t", b"ab", ()) is None


def test_without_deserializer_there_is_no_function_to_call() -> None:
    assert as_deserializer(None) is None
    assert as_deserializer("bytes") is None


def test_a_deserializer_gets_topic_data_and_headers() -> None:
    deserialize = as_deserializer(TopicAndHeaders())
    assert deserialize is not None
    assert deserialize("t", (("h", None),), b"x") == ("t", b"x", (("h", None),))


def test_a_callable_deserializer_gets_the_data_alone() -> None:
    deserialize = as_deserializer(int)
    assert deserialize is not None
    assert deserialize("t", (), b"12") == 12


@pytest.mark.parametrize("adapt", [as_serializer, as_deserializer])
@pytest.mark.parametrize("given", [5, object(), "os.system", ""])
def test_what_cannot_serialize_is_refused_at_once(adapt: Any, given: object) -> None:
    with pytest.raises(ConfigError) as caught:
        adapt(given, "key")
    assert (caught.value.name or "").startswith("key.")


def test_a_class_in_place_of_an_instance_is_refused_at_once() -> None:
    with pytest.raises(ConfigError, match="is the class StringSerializer; pass an instance"):
        as_serializer(StringSerializer)
    with pytest.raises(ConfigError, match="is the class StringDeserializer; pass an instance"):
        as_deserializer(StringDeserializer)
