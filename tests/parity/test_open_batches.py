"""OpenBatches of both bodies: what is appended at once and where, and what is left to others."""

from __future__ import annotations

from typing import Any

import pytest

from kclient._accel import reference
from kclient._accel.shared.batch_result import BatchResult
from kclient.errors import SerializationError
from kclient.serialization import as_serializer

native = pytest.importorskip("kclient._accel.native", reason="the native body is not built")

PARTITIONS = 4
PLAIN: tuple[Any, ...] = (None, b"v", (), None, None, None)


class Queue:
    def __init__(self, open_batch: Any) -> None:
        self.open = open_batch


class Text(str):
    """A str that is more than one."""

    __slots__ = ()


class Key(bytes):
    """Bytes that are more than that."""


def batches(
    body: Any, limit: int = 100_000, ignores_keys: bool = False, key: object = None, value: object = None
) -> Any:
    """Batches with room, of a topic whose serializers are `key` and `value`."""
    made = body.OpenBatches("t", ignores_keys, as_serializer(key, "key"), as_serializer(value, "value"))
    made.partition_count = PARTITIONS
    for number in range(PARTITIONS):
        builder = body.BatchBuilder("t", number, limit, BatchResult("t", number), 0)
        builder.append(0, None, b"first", None)
        made.queues[number] = Queue(builder)
    made.sticky_queue = made.queues[2]
    return made


def outcome(body: Any, arguments: tuple[Any, ...], **options: Any) -> Any:
    """The bytes of every batch and the future's facts, or None; or the error's class."""
    made = batches(body, **options)
    try:
        future = made.try_append(*arguments)
    except Exception as error:
        return type(error)
    found = [(queue.open.count, bytes(queue.open.freeze())) for _, queue in sorted(made.queues.items())]
    if future is None or isinstance(future, tuple):
        assert [count for count, _ in found] == [1] * PARTITIONS
        return future
    result, index = future.resolve()
    *facts, _ = future.metadata()[:4], None
    return found, result.partition, index, facts


HEADERS = [("h", b"1"), ("größe", None), ("", b"")]


@pytest.mark.parametrize(
    ("arguments", "partition"),
    [
        ((None, b"v", (), 5, None, None), 2),
        ((None, None, (), 5, None, None), 2),
        ((b"key", b"v", (), 5, None, None), (reference.murmur2(b"key") & 0x7FFFFFFF) % PARTITIONS),
        ((b"key", b"v", (), 5, 3, None), 3),
        ((None, b"v", None, 5, 0, None), 0),
        ((None, b"v", HEADERS, 5, None, None), 2),
        ((b"k", b"v", tuple(HEADERS), 0, 1, print), 1),
        ((None, b"v", [("n", b"x" * 100)] * 16, 5, None, None), 2),
        ((None, b"v", [("n", b"x" * 100)] * 17, 5, None, None), 2),
        ((None, b"v", [("n", b"x" * 100)] * 70, 2**63 - 1, None, None), 2),
    ],
)
def test_what_is_usual_goes_into_the_open_batch_of_its_partition(
    arguments: tuple[Any, ...], partition: int
) -> None:
    python, c = (outcome(body, arguments) for body in (reference, native))
    assert python == c
    assert python[1] == partition
    assert python[0][partition][0] == 2


def test_a_key_has_no_say_where_keys_are_ignored() -> None:
    arguments = (b"key", b"v", (), 5, None, None)
    python, c = (outcome(body, arguments, ignores_keys=True) for body in (reference, native))
    assert python == c
    assert python[1] == 2


@pytest.mark.parametrize(
    "arguments",
    [
        ("key", b"v", (), None, None, None),
        (Key(b"key"), b"v", (), None, None, None),
        (None, bytearray(b"v"), (), None, None, None),
        (None, "v", (), None, None, None),
        (None, b"v", {"a": b"b"}, None, None, None),
        (None, b"v", iter([("a", b"b")]), None, None, None),
        (None, b"v", [["a", b"b"]], None, None, None),
        (None, b"v", [("a",)], None, None, None),
        (None, b"v", [("a", b"b", b"c")], None, None, None),
        (None, b"v", [(b"a", b"b")], None, None, None),
        (None, b"v", [(Text("a"), b"b")], None, None, None),
        (None, b"v", [("a", "b")], None, None, None),
        (None, b"v", [("a", bytearray(b"b"))], None, None, None),
        (None, b"v", [("\udc80", b"b")], None, None, None),
        (None, b"v", [("a", b"b")] * 20 + [("a", "b")], None, None, None),
        (None, b"v", (), -1, None, None),
        (None, b"v", (), 2**63, None, None),
        (None, b"v", (), 1.5, None, None),
        (None, b"v", (), True, None, None),
        (None, b"v", (), None, -1, None),
        (None, b"v", (), None, PARTITIONS, None),
        (None, b"v", (), None, 2**70, None),
        (None, b"v", (), None, True, None),
        (None, b"v", (), None, "0", None),
        (None, b"v", (), None, None, "callback"),
    ],
)
@pytest.mark.parametrize("body", [reference, native], ids=["python", "c"])
def test_what_is_unusual_is_left_to_others(body: Any, arguments: tuple[Any, ...]) -> None:
    assert outcome(body, arguments) is None


@pytest.mark.parametrize("body", [reference, native], ids=["python", "c"])
def test_what_does_not_fit_is_given_back(body: Any) -> None:
    large = b"v" * 200_000
    assert outcome(body, (b"k", large, (), None, None, None)) == (b"k", large)


@pytest.mark.parametrize("body", [reference, native], ids=["python", "c"])
def test_without_an_open_batch_nothing_is_appended(body: Any) -> None:
    made = batches(body)
    made.sticky_queue.open.freeze()
    assert made.try_append(*PLAIN) == (None, b"v")
    made.sticky_queue.open = None
    assert made.try_append(*PLAIN) == (None, b"v")
    made.sticky_queue = None
    assert made.try_append(*PLAIN) == (None, b"v")
    made.queues.clear()
    assert made.try_append(b"key", *PLAIN[1:]) == (b"key", b"v")
    assert made.try_append(None, b"v", (), None, 1, None) == (None, b"v")


def whole(topic: str, data: Any, headers: Any) -> bytes:
    return f"{topic} {data} {headers}".encode()


class Whole:
    def serialize(self, topic: str, data: Any, headers: Any) -> bytes:
        return whole(topic, data, headers)


SERIALIZED = [
    ((str.encode, None), ("é", b"v", (), 5, None, None), (b"\xc3\xa9", b"v")),
    ((str.encode, repr), (None, None, (), 5, None, None), (None, None)),
    ((None, Whole()), (b"k", 7, (), 5, None, None), (b"k", b"t 7 ()")),
    ((Whole(), Whole()), (1, 1, [("h", b"1")], 5, 3, None), (whole("t", 1, (("h", b"1"),)),) * 2),
    ((bytearray, lambda _: None), (b"k", 7, None, 5, None, None), (b"k", None)),
    ((lambda _: None, "long"), ("k", 7, None, 5, None, None), (None, b"\x00" * 7 + b"\x07")),
]


@pytest.mark.parametrize(("serializers", "arguments", "contents"), SERIALIZED)
def test_serializers_make_what_goes_into_the_batch(
    serializers: tuple[Any, Any], arguments: tuple[Any, ...], contents: tuple[bytes | None, bytes | None]
) -> None:
    key, value = serializers
    for body in (reference, native):
        assert outcome(body, arguments, key=key, value=value) == outcome(body, (*contents, *arguments[2:]))
        full = batches(body, key=key, value=value)
        full.queues.clear()
        full.sticky_queue = None
        assert full.try_append(*arguments) == contents


@pytest.mark.parametrize("body", [reference, native], ids=["python", "c"])
def test_a_serializer_that_fails_is_named_and_is_the_cause(body: Any) -> None:
    made = batches(body, key=str.encode, value=str.encode)
    with pytest.raises(SerializationError, match=r"key\.serializer failed for a record to topic t") as caught:
        made.try_append(5, "v", (), None, None, None)
    assert isinstance(caught.value.__cause__, TypeError)
    with pytest.raises(SerializationError, match=r"value\.serializer made an object of type str"):
        batches(body, value=str).try_append(None, 5, (), None, None, None)
    assert [queue.open.count for queue in made.queues.values()] == [1] * PARTITIONS


@pytest.mark.parametrize(
    "rest", [({"a": b"b"}, None, None, None), ((), -1, None, None), ((), None, PARTITIONS, None)]
)
@pytest.mark.parametrize("body", [reference, native], ids=["python", "c"])
def test_no_serializer_is_asked_for_what_is_left_to_others(body: Any, rest: tuple[Any, ...]) -> None:
    asked: list[Any] = []
    made = batches(body, key=asked.append, value=asked.append)
    assert made.try_append("k", "v", *rest) is None
    made.partition_count = 0
    assert made.try_append("k", "v", (), None, None, None) is None
    assert batches(body, key=asked.append).try_append("k", "v", (), None, None, None) is None
    assert not asked


@pytest.mark.parametrize("body", [reference, native], ids=["python", "c"])
def test_a_serializer_may_close_the_batch_send_and_change_the_headers(body: Any) -> None:
    headers = [("h", b"1")]

    def serialize(text: str) -> bytes:
        if text != "inner":
            headers.clear()
            assert type(made.try_append(None, "inner", (), 5, 1, None)) is not tuple
            made.queues[2].open.freeze()
        return text.encode()

    made = batches(body, value=serialize)
    assert made.try_append(None, "outer", headers, 5, None, None) == (None, b"outer")
    headers.append(("h", b"1"))
    made.try_append(None, "other", headers, 5, 1, None)
    _, inner, *_, other = made.queues[1].open.records()
    assert inner[2:4] == (b"inner", ())
    assert other[2:4] == (b"other", (("h", b"1"),)), "as they were given"


@pytest.mark.parametrize("body", [reference, native], ids=["python", "c"])
def test_a_topic_that_is_not_known_takes_nothing(body: Any) -> None:
    made = batches(body)
    made.partition_count = 0
    assert made.try_append(*PLAIN) is None
    assert made.try_append(b"key", *PLAIN[1:]) is None
    assert made.try_append(None, b"v", (), None, 0, None) is None


@pytest.mark.parametrize("body", [reference, native], ids=["python", "c"])
def test_the_callback_is_called_with_the_outcome(body: Any) -> None:
    told: list[Any] = []
    made = batches(body)
    future = made.try_append(None, b"v", [("h", b"1")], 5, 1, lambda *outcome: told.append(outcome))
    result, index = future.resolve()
    result.complete(100)
    assert index == 1
    assert told == [(("t", 1, 101, 5, -1, 1), None)]


@pytest.mark.parametrize("body", [reference, native], ids=["python", "c"])
def test_a_subclass_may_have_slots_and_hold_more(body: Any) -> None:
    class Named(body.OpenBatches):  # type: ignore[misc, name-defined]
        __slots__ = ("name",)

        def __init__(self, name: str) -> None:
            super().__init__("t", False, as_serializer(None, "key"), as_serializer(None, "value"))
            self.name = name

    made = Named("n")
    assert (made.name, made.topic, made.partition_count, made.queues) == ("n", "t", 0, {})
