"""send_many: what lists it takes, where records with keys go, and that nothing is sent if one record is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from harness.producer.model import ProducerModel
from kclient.errors import SerializationError
from kclient.producer.bulk import BulkFuture
from kclient.producer.internals.placement import Placement
from kclient.producer.internals.send_many import send_many
from kclient.producer.partitioner import partition_for_key
from kclient.serialization import StringSerializer
from kclient.utils.steps import run


def model(partitions: int = 3, **settings: object) -> ProducerModel:
    m = ProducerModel(**{"linger_ms": 0, **settings})
    m.know({"t": partitions})
    return m.initialized()


def send(m: ProducerModel, values: Any, keys: Any = None, partition: int | None = None) -> BulkFuture:
    return run(send_many(m.core, Placement(m.core), "t", values, keys, partition), m.time)


def written(m: ProducerModel, partition: int) -> list[bytes | None]:
    m.run()
    m.settle()
    return m.broker.log("t", partition).values


def test_records_with_keys_go_by_their_keys_each_partition_in_order() -> None:
    m = model()
    keys = [b"%d" % (i % 7) for i in range(50)]
    values = [b"%d" % i for i in range(50)]
    send(m, values, keys)
    for partition in range(3):
        expected = [
            value for key, value in zip(keys, values, strict=True) if partition_for_key(key, 3) == partition
        ]
        assert written(m, partition) == expected


def test_more_records_than_are_sorted_at_once_keep_their_order() -> None:
    m = model(partitions=1, batch_size=1 << 20)
    values = [b"%d" % i for i in range(8192 * 2 + 5)]
    send(m, values, [b"k"] * len(values))
    assert written(m, 0) == values


def test_records_without_a_key_among_others_stay_together() -> None:
    m = model(partitions=50)
    future = send(m, [b"a", b"b", b"c"], [None, b"k", None])
    sticky = m.accumulator.topic("t").sticky_queue
    assert sticky is not None
    m.run()
    m.settle()
    found = {index: part.partition for part in future.result(0) for index in part.indexes}
    assert found[0] == found[2] == sticky.tp.partition
    assert found[1] == partition_for_key(b"k", 50)


def test_a_partition_that_is_given_is_that_of_all_records() -> None:
    m = model()
    send(m, [b"%d" % i for i in range(5)], [b"%d" % i for i in range(5)], partition=2)
    assert written(m, 2) == [b"0", b"1", b"2", b"3", b"4"]


@pytest.mark.parametrize("make", [list, tuple, iter, dict.fromkeys])
def test_any_iterable_of_values_is_taken_once(make: Any) -> None:
    m = model(partitions=1)
    assert send(m, make([b"a", b"b"])).count == 2
    assert written(m, 0) == [b"a", b"b"]


@pytest.mark.parametrize("given", ["text", b"bytes", bytearray(b"x"), memoryview(b"x"), 5, None])
def test_one_value_is_no_list_of_values(given: Any) -> None:
    m = model()
    with pytest.raises(TypeError, match="values must be a sequence"):
        send(m, given)
    if given is not None:
        with pytest.raises(TypeError, match="keys must be a sequence"):
            send(m, [b"v"], given)


def test_there_must_be_a_key_for_each_value() -> None:
    m = model()
    with pytest.raises(ValueError, match="1 keys for 2 values"):
        send(m, [b"a", b"b"], [b"k"])


def test_no_records_are_done_at_once() -> None:
    m = model()
    future = send(m, [], [])
    assert future.done()
    assert future.result(0) == []
    assert not m.accumulator.queued.incomplete


def test_what_a_serializer_refuses_is_raised_before_anything_is_sent() -> None:
    m = model(value_serializer=StringSerializer())
    with pytest.raises(SerializationError):
        send(m, ["a", 5])
    assert not m.accumulator.queued.incomplete


def test_bytes_without_a_serializer_are_taken_as_they_are_and_others_are_refused() -> None:
    m = model(partitions=1)
    send(m, [b"a", None, bytearray(b"b"), memoryview(b"c")])
    assert written(m, 0) == [b"a", None, b"b", b"c"]
    with pytest.raises(SerializationError):
        send(m, [b"a", "text"])


def test_interceptors_see_every_record_and_decide_what_is_sent() -> None:
    class Doubling:
        def on_send(self, record: Any) -> Any:
            return type(record)(record.topic, record.value * 2, key=record.key, partition=record.partition)

        def on_acknowledgement(self, metadata: Any, error: Any) -> None:
            pass

    m = model(interceptor_classes=[Doubling()])
    future = send(m, [b"a", b"b"], [b"k", b"k"], partition=1)
    assert written(m, 1) == [b"aa", b"bb"]
    assert [index for part in future.result(0) for index in part.indexes] == [0, 1]
