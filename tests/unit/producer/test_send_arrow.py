"""send_arrow: where rows go, and that nothing is sent if one of them is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from harness.producer.model import ProducerModel
from kclient.errors import InvalidTopicError, KafkaTimeoutError, RecordTooLargeError
from kclient.producer.bulk import BulkFuture
from kclient.producer.internals.placement import Placement
from kclient.producer.internals.send_arrow import send_arrow
from kclient.producer.partitioner import partition_for_key
from kclient.record import iter_batches
from kclient.utils.steps import run

pa = pytest.importorskip("pyarrow", reason="pip install '.[arrow]'")


def model(**settings: object) -> ProducerModel:
    m = ProducerModel(**{"linger_ms": 0, "max_block_ms": 0, **settings})
    m.know({"t": 3, "u": 1})
    return m.initialized()


def send(m: ProducerModel, topic: str | None = "t", /, **columns: Any) -> BulkFuture:
    return run(send_arrow(m.core, Placement(m.core), pa.table(columns), topic), m.time)


def places(future: BulkFuture) -> dict[int, int]:
    """The partition of each record by its place in the call."""
    return {index: part.partition for part in future.result(0) for index in part.indexes}


def written(m: ProducerModel, partition: int, topic: str = "t") -> list[bytes | None]:
    m.run()
    m.settle()
    return m.broker.log(topic, partition).values


def test_rows_go_to_their_partition_else_by_their_key_each_partition_in_order() -> None:
    m = model()
    keys = [b"%d" % (i % 5) for i in range(40)]
    given = [i % 3 if i % 4 == 0 else None for i in range(40)]
    values = [b"%d" % i for i in range(40)]
    send(m, key=keys, value=values, partition=pa.array(given, pa.int32()))
    chosen = [
        partition_for_key(key, 3) if partition is None else partition
        for key, partition in zip(keys, given, strict=True)
    ]
    for partition in range(3):
        assert written(m, partition) == [values[i] for i in range(40) if chosen[i] == partition]


def test_rows_with_neither_stay_together_and_know_their_places() -> None:
    m = model()
    future = send(m, value=[b"a", b"b", b"c", b"d"], partition=pa.array([None, 2, None, 2], pa.int32()))
    m.run()
    m.settle()
    found = places(future)
    assert sorted(found) == [0, 1, 2, 3]
    assert found[1] == found[3] == 2
    assert found[0] == found[2]


def test_a_key_that_is_null_is_no_key() -> None:
    m = model()
    future = send(m, value=[b"a", b"b", b"c"], key=[None, b"k", None])
    m.run()
    m.settle()
    found = places(future)
    assert found[0] == found[2]
    assert found[1] == partition_for_key(b"k", 3)


def test_keys_decide_nothing_where_the_producer_is_told_to_ignore_them() -> None:
    m = model(partitioner_ignore_keys=True)
    future = send(m, value=[b"a"] * 8, key=[b"%d" % i for i in range(8)])
    m.run()
    m.settle()
    (part,) = future.result(0)
    assert part.indexes == range(8)


def test_rows_of_several_topics_are_one_future() -> None:
    m = model()
    future = send(m, None, topic=["u", "t", "u"], value=[b"0", b"1", b"2"])
    assert written(m, 0, "u") == [b"0", b"2"]
    assert sorted(index for part in future.result(0) for index in part.indexes) == [0, 1, 2]


def test_headers_and_times_arrive_with_their_rows() -> None:
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    m = model()
    send(
        m,
        "u",
        value=[b"a", b"b"],
        headers=pa.array([[{"key": "h", "value": b"1"}], None], kind),
        timestamp=[1000, 2000],
    )
    m.run()
    (sent,) = m.waiting
    records = sent.message.topic_data[0].partition_data[0].records
    (batch,) = iter_batches(memoryview(records))
    assert [(r.timestamp_ms, r.value, tuple(r.headers)) for r in batch.records()] == [
        (1000, b"a", (("h", b"1"),)),
        (2000, b"b", ()),
    ]


@pytest.mark.parametrize(
    ("columns", "error"),
    [
        ({"value": [b"a", b"x" * 2000]}, RecordTooLargeError),
        ({"value": [b"a", b"b"], "key": [b"k", b"x" * 2000]}, RecordTooLargeError),
        ({"value": [b"a", b"b"], "topic": ["t", "unknown"]}, KafkaTimeoutError),
        ({"value": [b"a", b"b"], "partition": [0, 3]}, KafkaTimeoutError),
    ],
)
def test_what_is_wrong_with_one_row_is_raised_before_anything_is_sent(
    columns: dict[str, Any], error: type[Exception]
) -> None:
    m = model(max_request_size=2000)
    with pytest.raises(error):
        send(m, None if "topic" in columns else "t", **columns)
    assert not m.accumulator.queued.incomplete


def test_a_topic_with_a_name_that_cannot_be_is_refused_before_it_is_asked_for() -> None:
    with pytest.raises(InvalidTopicError):
        send(model(), "", value=[b"a"])


@pytest.mark.parametrize("setting", ["key_serializer", "value_serializer"])
def test_a_producer_with_serializers_sends_no_columns(setting: str) -> None:
    with pytest.raises(ValueError, match="without key and value serializers"):
        send(model(**{setting: "string"}), value=[b"a"])
