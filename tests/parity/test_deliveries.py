"""Callbacks of a batch's records, in the loops of both bodies."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from kclient._accel import reference
from kclient.producer.types import RecordMetadata, record_metadata
from kclient.producer.types import _record_metadata as by_constructor

native = pytest.importorskip("kclient._accel.native", reason="the native body is not built")

BODIES = [reference, native]
NAMES = ["python", "c"]


def factory_of(body: Any) -> Any:
    return body.metadata_factory(RecordMetadata, by_constructor)


def batch(body: Any, count: int, told: list[Any], factory: Any = None) -> Any:
    """A batch of so many records, whose callbacks say what they were told."""
    result = body.BatchResult("t", 3, factory or factory_of(body))
    builder = body.BatchBuilder("t", 3, 100_000, result, 0)
    for number in range(count):
        key = None if number % 2 else b"key"
        builder.append(1000 + number, key, b"v" * number, None, lambda *outcome: told.append(outcome))
    return result


@pytest.mark.parametrize("arguments", [(100,), (100, 77), (-1,), (2**62, -1), (0, 0)])
def test_every_callback_is_told_the_same_by_both_and_in_order(arguments: tuple[int, ...]) -> None:
    heard: list[list[Any]] = []
    for body in BODIES:
        told: list[Any] = []
        assert batch(body, 5, told).complete(*arguments)
        heard.append(told)
    assert heard[0] == heard[1]
    first = heard[1][0][0]
    assert type(first) is RecordMetadata
    assert [metadata.serialized_value_size for metadata, _ in heard[1]] == [0, 1, 2, 3, 4]
    assert [metadata.serialized_key_size for metadata, _ in heard[1]] == [3, -1, 3, -1, 3]
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        first.offset = 5


def test_metadata_of_the_native_body_is_that_of_the_constructor() -> None:
    factory = factory_of(native)
    assert factory is not by_constructor
    result = native.BatchResult("t", 3)
    result.complete(10, 99)
    made = factory(result, 2, 5, -1, 7)
    assert made == by_constructor(result, 2, 5, -1, 7) == RecordMetadata("t", 3, 12, 99, -1, 7)
    assert repr(made) == repr(by_constructor(result, 2, 5, -1, 7))
    assert hash(made) == hash(RecordMetadata("t", 3, 12, 99, -1, 7))
    assert record_metadata(result, 2, 5, -1, 7) == made


@attrs.frozen
class Checked:
    """A class whose constructor does more than to fill fields."""

    topic: str = attrs.field(validator=attrs.validators.instance_of(str))
    partition: int
    offset: int
    timestamp_ms: int
    serialized_key_size: int
    serialized_value_size: int


@attrs.frozen
class Other:
    """A class with other fields."""

    topic: str


@pytest.mark.parametrize("body", BODIES, ids=NAMES)
@pytest.mark.parametrize("kind", [Checked, Other, dict, type("Empty", (), {})])
def test_a_class_that_cannot_be_filled_plainly_is_made_by_the_function(body: Any, kind: type) -> None:
    assert body.metadata_factory(kind, by_constructor) is by_constructor


@pytest.mark.parametrize("body", BODIES, ids=NAMES)
def test_a_failed_batch_tells_each_record_its_own_error(body: Any) -> None:
    told: list[Any] = []
    errors = [KeyError(number) for number in range(3)]
    batch(body, 3, told).complete(-1, -1, ValueError("all"), errors.__getitem__)
    assert [error for _, error in told] == errors
    assert [metadata.offset for metadata, _ in told] == [-1, -1, -1]


@pytest.mark.parametrize("body", BODIES, ids=NAMES)
def test_one_that_raises_keeps_the_others_from_nothing(body: Any, caplog: pytest.LogCaptureFixture) -> None:
    told: list[Any] = []
    result = body.BatchResult("t", 3, factory_of(body))
    builder = body.BatchBuilder("t", 3, 100_000, result, 0)
    for number in range(4):
        builder.append(
            0, None, b"v", None, lambda *_, number=number: told.append(number) or 1 // (number % 2)
        )
    result.complete(0)
    assert told == [0, 1, 2, 3]
    assert result.done
    assert [line.getMessage() for line in caplog.records] == ["A callback for t-3 raised"] * 2
    assert all(line.exc_info and line.exc_info[0] is ZeroDivisionError for line in caplog.records)


@pytest.mark.parametrize("body", BODIES, ids=NAMES)
def test_a_ctrl_c_in_one_leaves_those_after_it_to_the_next_call(body: Any) -> None:
    told: list[int] = []
    result = body.BatchResult("t", 3, factory_of(body))
    builder = body.BatchBuilder("t", 3, 100_000, result, 0)

    def callback(metadata: Any, _error: Any) -> None:
        told.append(metadata.offset)
        if metadata.offset == 1:
            raise KeyboardInterrupt

    for _ in range(4):
        builder.append(0, None, b"v", None, callback)
    with pytest.raises(KeyboardInterrupt):
        result.complete(0)
    assert told == [0, 1]
    assert not result.done
    assert result.complete(0)
    assert told == [0, 1, 2, 3]
    assert result.done


@pytest.mark.parametrize("body", BODIES, ids=NAMES)
def test_callbacks_of_a_batch_that_was_replaced_are_told_by_its_parts(body: Any) -> None:
    told: list[Any] = []
    whole = batch(body, 4, told)
    first, second = (body.BatchResult("t", 3, factory_of(body)) for _ in range(2))
    whole.replace_with([(0, first), (3, second)])
    second.complete(50)
    first.complete(10)
    assert [metadata.offset for metadata, _ in told] == [50, 10, 11, 12]


@pytest.mark.parametrize("body", BODIES, ids=NAMES)
def test_done_callbacks_get_the_future(body: Any) -> None:
    result = body.BatchResult("t", 3, factory_of(body))
    builder = body.BatchBuilder("t", 3, 100_000, result, 0)
    future = builder.append(0, None, b"v", None)
    heard: list[Any] = []
    future.add_done_callback(heard.append)
    result.complete(7)
    assert heard == [future]
    assert future.result(0).offset == 7
