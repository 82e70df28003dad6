"""Columns read from the embedded broker: the same records as poll() gives, through every codec and any interrupt."""

from __future__ import annotations

import itertools
import random
import time
from typing import Any

import pytest

from harness.interrupts import interrupted_at
from harness.topics import end_offsets, new_topic, produce, read_all
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import KafkaConsumer, RecordColumns
from kclient.producer import KafkaProducer

Row = tuple[Any, ...]


def reader(servers: str, topic: str, partitions: int, **settings: object) -> KafkaConsumer[bytes, bytes]:
    """A consumer of a whole topic from its beginning, without a group."""
    consumer = KafkaConsumer({"bootstrap.servers": servers, "auto.offset.reset": "earliest", **settings})
    consumer.assign([TopicPartition(topic, number) for number in range(partitions)])
    return consumer


def rows(columns: RecordColumns) -> list[Row]:
    """Partition, offset, time, its type, key, value and headers of each record."""
    headers: list[tuple[Any, ...]] = [()] * columns.count
    if columns.headers is not None:
        names = [name.decode() for name in columns.headers.names if name is not None]
        pairs = list(zip(names, columns.headers.values, strict=True))
        headers = [tuple(pairs[start:stop]) for start, stop in itertools.pairwise(columns.headers.offsets)]
    return list(
        zip(
            itertools.repeat(columns.topic_partition.partition, columns.count),
            columns.offsets,
            columns.timestamps_ms,
            columns.timestamp_types,
            columns.keys,
            columns.values,
            headers,
            strict=True,
        )
    )


def row(record: Any) -> Row:
    return (
        record.partition,
        record.offset,
        record.timestamp_ms,
        record.timestamp_type,
        record.key,
        record.value,
        record.headers,
    )


def arrow_rows(batch: Any) -> list[Row]:
    import pyarrow as pa

    batch.validate(full=True)
    plain = batch.set_column(3, "timestamp", batch["timestamp"].cast(pa.int64())).to_pydict()
    return [
        (*fields, tuple((header["key"], header["value"]) for header in headers))
        for *fields, headers in zip(*list(plain.values())[1:], strict=True)
    ]


def mixed_records(servers: str, topic: str, codec: str) -> None:
    """Records of every kind in three partitions, in batches of several sizes."""
    chance = random.Random(codec)
    with KafkaProducer(
        {"compression.type": codec}, bootstrap_servers=servers, batch_size=4000, linger_ms=5
    ) as producer:
        for number in range(1500):
            size = chance.choice([0, 1, 12, 13, 100, 3000])
            producer.send(
                topic,
                chance.choice([None, chance.randbytes(size)]),
                key=chance.choice([None, b"", b"k%d" % number, bytes(40)]),
                headers=chance.choice([(), (), [("trace", b"%d" % number), ("ü", None)]]),
                partition=number % 3,
                timestamp_ms=1_700_000_000_000 + chance.randrange(10_000),
            )


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_columns_hold_what_records_hold(servers: str, codec: str) -> None:
    topic = new_topic(servers, 3)
    mixed_records(servers, topic, codec)
    expected = sorted(row(record) for record in read_all(servers, topic))
    assert len(expected) == 1500
    for max_records in (None, 7):
        with reader(servers, topic, 3) as consumer:
            found: list[Row] = []
            while len(found) < 1500:
                polled = consumer.poll_columns(20_000, max_records)
                assert polled, "no more records came"
                found += [each for columns in polled.values() for each in rows(columns)]
                for tp, columns in polled.items():
                    assert consumer.position(tp) == columns.next_offset
        assert sorted(found) == expected
    pytest.importorskip("pyarrow", minversion="19")
    for binary in ("copy", "view"):
        batches = []
        with reader(servers, topic, 3) as consumer:
            while sum(batch.num_rows for batch in batches) < 1500:
                batches.append(consumer.poll_arrow(20_000, binary=binary))
                assert batches[-1].num_rows
        # Views are looked at when consumer and fetches are gone.
        assert sorted(each for batch in batches for each in arrow_rows(batch)) == expected


def test_records_and_columns_can_be_read_in_turns(servers: str) -> None:
    topic = new_topic(servers, 2)
    produce(servers, topic, 4000)
    expected = {tp: list(range(end)) for tp, end in end_offsets(servers, topic).items()}
    found: dict[TopicPartition, list[int]] = {tp: [] for tp in expected}
    chance = random.Random(1)
    with reader(servers, topic, 2, max_poll_records=70, max_partition_fetch_bytes=5000) as consumer:
        deadline = time.monotonic() + 60
        # So many, as each may go back to the beginning: how far it was read until then is a matter of time.
        seeks = 20
        while found != expected:
            assert time.monotonic() < deadline
            how = chance.randrange(4)
            if how == 2:
                seeks -= 1
                if seeks < 0:
                    continue
            if how == 0:
                for tp, columns in consumer.poll_columns(1000, chance.choice([None, 1, 50])).items():
                    found[tp] += list(columns.offsets)
            elif how == 1:
                for record in consumer.poll(1000):
                    found[record.topic_partition].append(record.offset)
            elif how == 2:
                tp = chance.choice(list(found))
                offset = chance.randrange(len(found[tp]) + 1)
                consumer.seek(tp, offset)
                del found[tp][offset:]
            elif sum(map(len, found.values())) < 4000:
                record = next(consumer)
                found[record.topic_partition].append(record.offset)


def test_an_interrupt_at_any_moment_of_poll_columns_skips_and_repeats_no_record(servers: str) -> None:
    topic = new_topic(servers, 1)
    produce(servers, topic, 12)
    offsets: list[int] = []
    interrupts = 0
    tp = TopicPartition(topic, 0)
    with reader(servers, topic, 1, fetch_max_wait_ms=5) as consumer:
        while len(offsets) < 12:
            for moment in itertools.count(1):
                assert consumer.position(tp) == len(offsets)
                try:
                    found = interrupted_at(moment, consumer.poll_columns, 2000, 5)
                except KeyboardInterrupt:
                    interrupts += 1
                    continue
                offsets += list(found[tp].offsets) if found else []
                break
    assert offsets == list(range(12))
    assert interrupts > 100
