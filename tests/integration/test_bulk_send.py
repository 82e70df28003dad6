"""`send_many` and `send_arrow` on the embedded broker: every record once, where `send` would have put it."""

from __future__ import annotations

import datetime as dt
import random
import sys
from collections import defaultdict
from typing import Any

import pytest

from harness.topics import end_offsets, new_topic, partitions_of
from kclient import ConsumerRecord, KafkaConsumer, KafkaProducer, TopicPartition
from kclient.errors import (
    ClientClosedError,
    InvalidTopicError,
    KafkaTimeoutError,
    RecordTooLargeError,
    SerializationError,
)
from kclient.producer import RecordRange

pa = pytest.importorskip("pyarrow", reason="pip install '.[arrow]'")


def read(servers: str, *topics: str) -> dict[tuple[str, int, int], ConsumerRecord[bytes, bytes]]:
    """All records there are, by topic, partition and offset."""
    found = {}
    with KafkaConsumer(bootstrap_servers=servers) as consumer:
        ends: dict[TopicPartition, int] = {}
        for topic in topics:
            ends |= end_offsets(servers, topic)
        consumer.assign(list(ends))
        consumer.seek_to_beginning(list(ends))
        while any(consumer.position(tp) < end for tp, end in ends.items()):
            for record in consumer.poll(1000):
                found[record.topic, record.partition, record.offset] = record
    return found


def by_index(
    ranges: list[RecordRange], found: dict[tuple[str, int, int], ConsumerRecord[bytes, bytes]]
) -> dict[int, ConsumerRecord[bytes, bytes]]:
    """The records by their place in the call, as the ranges tell it; every one of them once."""
    placed: dict[int, ConsumerRecord[bytes, bytes]] = {}
    for part in ranges:
        assert part.error is None
        assert part.count == len(part.indexes)
        for i, index in enumerate(part.indexes):
            assert index not in placed
            placed[index] = found[part.topic, part.partition, part.base_offset + i]
    assert len(placed) == len(found)
    return placed


def test_many_values_are_written_once_and_the_future_says_where(servers: str) -> None:
    topic = new_topic(servers)
    values = [b"%d" % i if i % 5 else None for i in range(20_000)]
    with KafkaProducer(bootstrap_servers=servers) as producer:
        future = producer.send_many(topic, values)
        placed = by_index(future.result(30), read(servers, topic))
    assert future.count == 20_000
    assert future.done()
    assert [placed[i].value for i in range(20_000)] == values


def test_many_records_with_keys_go_where_send_puts_them_and_keep_their_order(servers: str) -> None:
    topic = new_topic(servers)
    keys = [b"%d" % (i % 37) if i % 11 else None for i in range(9_000)]
    values = [b"%d" % i for i in range(9_000)]
    with KafkaProducer(bootstrap_servers=servers) as producer:
        placed = by_index(producer.send_many(topic, values, keys=keys).result(30), read(servers, topic))
        partitions = {
            key: producer.send(topic, b"", key=key).result(30).partition
            for key in set(keys)
            if key is not None
        }
    last = defaultdict[Any, int](lambda: -1)
    for i in range(9_000):
        assert (placed[i].key, placed[i].value) == (keys[i], values[i])
        if keys[i] is not None:
            assert placed[i].partition == partitions[keys[i]]
            assert placed[i].offset > last[keys[i]]
            last[keys[i]] = placed[i].offset


def test_many_records_can_all_go_to_one_partition(servers: str) -> None:
    topic = new_topic(servers)
    with KafkaProducer(bootstrap_servers=servers) as producer:
        ranges = producer.send_many(topic, (b"a", b"b"), keys=iter([b"1", b"2"]), partition=2).result(30)
    assert {part.topic_partition for part in ranges} == {TopicPartition(topic, 2)}


def test_many_values_are_serialized_and_seen_by_interceptors(servers: str) -> None:
    topic = new_topic(servers)
    seen: list[object] = []

    class Watch:
        def on_send(self, record: Any) -> Any:
            seen.append(record.value)
            return record

        def on_acknowledgement(self, metadata: Any, error: Any) -> None:
            pass

    with KafkaProducer(
        bootstrap_servers=servers, value_serializer=str.encode, interceptor_classes=[Watch]
    ) as producer:
        producer.send_many(topic, ["a", "b"]).result(30)
    with KafkaProducer(bootstrap_servers=servers, value_serializer=str.encode) as producer:
        producer.send_many(topic, ["c"]).result(30)
    assert seen == ["a", "b"]
    assert {record.value for record in read(servers, topic).values()} == {b"a", b"b", b"c"}


def test_what_is_wrong_with_one_of_many_is_raised_before_anything_is_sent(servers: str) -> None:
    topic = new_topic(servers)
    with KafkaProducer(bootstrap_servers=servers, max_request_size=5000) as producer:
        good = [b"good"] * 10
        bad: list[tuple[type[Exception], dict[str, Any]]] = [
            (SerializationError, {"values": [*good, "text"]}),
            (TypeError, {"values": b"one"}),
            (TypeError, {"values": 5}),
            (ValueError, {"values": good, "keys": [b"k"]}),
            (SerializationError, {"values": good, "keys": [1] * 10}),
            (RecordTooLargeError, {"values": [*good, b"x" * 5000]}),
            (ValueError, {"values": good, "partition": -1}),
        ]
        for error, arguments in bad:
            with pytest.raises(error):
                producer.send_many(topic, **arguments)
        with pytest.raises(InvalidTopicError):
            producer.send_many("no topic", good)
        assert producer.send_many(topic, []).result(0) == []
    with pytest.raises(ClientClosedError):
        producer.send_many(topic, good)
    assert not any(end_offsets(servers, topic).values())


def random_rows(count: int, topics: list[str]) -> list[dict[str, Any]]:
    chance = random.Random(3)
    start = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    return [
        {
            "topic": chance.choice(topics),
            "key": chance.choice([None, b"", b"k%d" % (i % 13)]),
            "value": None if i % 17 == 0 else b"%d" % i,
            "partition": chance.choice([None, None, 0, 2]),
            "timestamp": start + dt.timedelta(seconds=i),
            "headers": [{"key": "h", "value": b"%d" % i}, {"key": "n", "value": None}]
            if i % 7 == 0
            else None,
        }
        for i in range(count)
    ]


SCHEMA = [
    ("topic", pa.string()),
    ("key", pa.binary()),
    ("value", pa.large_binary()),
    ("partition", pa.int64()),
    ("timestamp", pa.timestamp("us", tz="UTC")),
]
HEADERS = ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())])))


@pytest.mark.parametrize("headers", [False, True])
def test_columns_become_the_records_that_their_rows_describe(servers: str, headers: bool) -> None:
    topics = [new_topic(servers), new_topic(servers)]
    rows = random_rows(3000, topics)
    schema = pa.schema([*SCHEMA, HEADERS] if headers else SCHEMA)
    whole = pa.Table.from_pylist(rows, schema=schema)
    # Slices, whose buffers begin somewhere in the middle, in chunks.
    table = pa.concat_tables([whole.slice(0, 1001), whole.slice(1001, 3), whole.slice(1004)])
    with KafkaProducer(bootstrap_servers=servers) as producer:
        placed = by_index(producer.send_arrow(table).result(30), read(servers, *topics))
        by_key = {
            (topic, key): producer.send(topic, b"", key=key).result(30).partition
            for topic in topics
            for key in {row["key"] for row in rows} - {None}
        }
    for i, row in enumerate(rows):
        record = placed[i]
        assert (record.topic, record.key, record.value) == (row["topic"], row["key"], row["value"])
        assert record.timestamp_ms == int(row["timestamp"].timestamp() * 1000)
        if row["partition"] is not None:
            assert record.partition == row["partition"]
        elif row["key"] is not None:
            assert record.partition == by_key[row["topic"], row["key"]]
        expected = [(h["key"], h["value"]) for h in row["headers"] or ()] if headers else []
        assert list(record.headers) == expected


@pytest.mark.parametrize(
    "kind",
    [
        "string",
        "large_string",
        "binary",
        "large_binary",
        "fixed",
        "dictionary",
        "string_view",
        "binary_view",
        "null",
    ],
)
def test_contents_may_have_any_type_of_bytes_and_text(servers: str, kind: str) -> None:
    topic = new_topic(servers, partitions=1)
    types = {
        "string": pa.string(),
        "large_string": pa.large_string(),
        "binary": pa.binary(),
        "large_binary": pa.large_binary(),
        "fixed": pa.binary(3),
        "dictionary": pa.dictionary(pa.int32(), pa.string()),
        "string_view": pa.string_view(),
        "binary_view": pa.binary_view(),
        "null": pa.null(),
    }
    given = [None, None] if kind == "null" else ["abc", None, "xyz"]
    if "binary" in kind or kind == "fixed":
        given = [None if each is None else each.encode() for each in given]
    batch = pa.record_batch({"value": pa.array(given, types[kind])})
    with KafkaProducer(bootstrap_servers=servers) as producer:
        producer.send_arrow(batch, topic=topic).result(30)
    values = [record.value for _, record in sorted(read(servers, topic).items())]
    assert values == [each.encode() if isinstance(each, str) else each for each in given]


@pytest.mark.parametrize(
    ("columns", "error", "words"),
    [
        ({"valeu": ["a"]}, ValueError, "'valeu'"),
        ({"key": ["a"]}, ValueError, "'value'"),
        ({"value": [1]}, TypeError, "'value'"),
        ({"value": ["a"], "partition": ["x"]}, TypeError, "'partition'"),
        ({"value": ["a", "b"], "partition": [0, -2]}, ValueError, "row 1"),
        ({"value": ["a"], "partition": [1 << 40]}, ValueError, "'partition'.*1099511627776"),
        ({"value": ["a"], "partition": [7]}, KafkaTimeoutError, "Partition 7"),
        ({"value": ["a", "b"], "timestamp": [5, -5]}, ValueError, "row 1"),
        ({"value": ["a"], "headers": [5]}, TypeError, "'headers'"),
        ({"value": ["a" * 2_000_000]}, RecordTooLargeError, "max.request.size"),
    ],
)
def test_what_is_wrong_with_a_column_is_raised_before_anything_is_sent(
    servers: str, columns: dict[str, Any], error: type[Exception], words: str
) -> None:
    topic = new_topic(servers)
    settings = {"max.block.ms": 1000} if error is KafkaTimeoutError else {}
    with KafkaProducer(settings, bootstrap_servers=servers) as producer, pytest.raises(error, match=words):
        producer.send_arrow(pa.table(columns), topic=topic)
    assert not any(end_offsets(servers, topic).values())


def test_rows_need_a_topic_and_a_producer_of_bytes(servers: str) -> None:
    table = pa.table({"value": ["a"]})
    with KafkaProducer(bootstrap_servers=servers) as producer:
        with pytest.raises(ValueError, match="'topic'"):
            producer.send_arrow(table)
        with pytest.raises(ValueError, match="topic is null in row 1"):
            producer.send_arrow(pa.table({"value": ["a", "b"], "topic": ["t", None]}))
        with pytest.raises(InvalidTopicError):
            producer.send_arrow(table, topic="no topic")
    with (
        KafkaProducer(bootstrap_servers=servers, value_serializer=str.encode) as producer,
        pytest.raises(ValueError, match="serializers"),
    ):
        producer.send_arrow(table, topic="t")


def test_whoever_has_no_pyarrow_is_told_how_to_install_it(
    servers: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with (
        KafkaProducer(bootstrap_servers=servers) as producer,
        pytest.raises(ImportError, match=r"pip install 'kclient-kafka\[arrow\]'"),
    ):
        producer.send_arrow({"value": ["a"]}, topic="t")


def test_a_custom_partitioner_sees_every_one_of_many_records(servers: str) -> None:
    topic = new_topic(servers)

    class ByLength:
        def partition(
            self, topic: str, key: Any, key_bytes: Any, value: Any, value_bytes: Any, cluster: Any
        ) -> int:
            return len(value_bytes) % 3

    with KafkaProducer(bootstrap_servers=servers, partitioner_class=ByLength()) as producer:
        producer.send_many(topic, [b"a", b"bb", b"ccc"]).result(30)
        producer.send_arrow(pa.table({"value": ["dddd"]}), topic=topic).result(30)
    assert len(partitions_of(servers, topic)) == 3
    assert {record.value: record.partition for record in read(servers, topic).values()} == {
        b"a": 1,
        b"bb": 2,
        b"ccc": 0,
        b"dddd": 1,
    }
