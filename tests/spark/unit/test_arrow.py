"""Decoded columns become the record batches that Spark takes as they are."""

from __future__ import annotations

from array import array
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRecord, RecordColumns
from kclient.record import MemoryRecordsBuilder, RecordReader, TimestampType
from kclient.spark.arrow import TYPES, BatchMaker, arrow_schema
from kclient.spark.output import OutputColumn

TP = TopicPartition("täglich", 3)
ALL = [OutputColumn(name, name, True) for name in TYPES]
RECORDS = [
    (10, 1_700_000_000_123, 0, b"k0", b"v0", (("a", b"1"), ("b", None))),
    (11, -1, 0, None, None, ()),
    (14, 0, 1, b"", b"\x00\xff", (("ü", b""),)),
]


def columns(records: list[tuple] = RECORDS) -> RecordColumns:
    """The records, each in a batch of its own, as the consumer decodes them."""
    batches = b""
    for offset, timestamp_ms, kind, key, value, headers in records:
        appended = {"log_append_time_ms": timestamp_ms} if kind else {}
        builder = MemoryRecordsBuilder(base_offset=offset, timestamp_type=TimestampType(kind), **appended)
        builder.append(timestamp_ms, key, value, headers)
        batches += builder.close()
    reader = RecordReader(batches, 0, len(batches), TP.topic, TP.partition, 0, True, ConsumerRecord)
    made = reader.read_columns(None, False)
    assert made is not None
    return RecordColumns.of(TP, made, reader.next_offset)


def test_every_column_has_the_records_contents() -> None:
    batch = BatchMaker(ALL, TP.topic).make(columns(), 3)
    batch.validate(full=True)
    assert batch.schema.equals(arrow_schema(ALL))
    assert batch["key"].to_pylist() == [b"k0", None, b""]
    assert batch["value"].to_pylist() == [b"v0", None, b"\x00\xff"]
    assert batch["topic"].to_pylist() == ["täglich"] * 3
    assert batch["partition"].to_pylist() == [3] * 3
    assert batch["offset"].to_pylist() == [10, 11, 14]
    assert batch["timestampType"].to_pylist() == [0, 0, 1]
    assert batch["timestamp"].to_pylist() == [
        datetime(2023, 11, 14, 22, 13, 20, 123000, UTC),
        datetime(1969, 12, 31, 23, 59, 59, 999000, UTC),
        datetime(1970, 1, 1, tzinfo=UTC),
    ]
    assert batch["headers"].to_pylist() == [
        [{"key": "a", "value": b"1"}, {"key": "b", "value": None}],
        None,
        [{"key": "ü", "value": b""}],
    ]


def test_headers_are_null_where_no_record_has_any() -> None:
    records = [(offset, 0, 0, None, b"v", ()) for offset in range(5)]
    batch = BatchMaker(ALL, TP.topic).make(columns(records), 5)
    batch.validate(full=True)
    assert batch["headers"].null_count == 5


def test_only_the_columns_that_are_asked_for_come_in_that_order_and_by_that_name() -> None:
    wanted = [OutputColumn("offset", "OFFSET", False), OutputColumn("value", "value", True)]
    batch = BatchMaker(wanted, TP.topic).make(columns(), 3)
    assert batch.schema == pa.schema(
        [pa.field("OFFSET", pa.int64(), nullable=False), pa.field("value", pa.binary())]
    )


def test_records_beyond_the_range_are_left_out() -> None:
    batch = BatchMaker(ALL, TP.topic).make(columns(), 2)
    batch.validate(full=True)
    assert batch["offset"].to_pylist() == [10, 11]
    assert batch["headers"].to_pylist()[1] is None


def test_the_topic_is_made_once_for_many_batches() -> None:
    maker = BatchMaker(ALL, TP.topic)
    first, second = maker.make(columns(), 3), maker.make(columns(RECORDS[:2]), 2)
    assert second["topic"].to_pylist() == ["täglich"] * 2
    assert first["topic"].buffers()[2].address == second["topic"].buffers()[2].address


@pytest.mark.parametrize("millis", [2**63 - 1, -(2**63), 2**62])
def test_a_time_that_spark_cannot_hold_is_the_nearest_it_can(millis: int) -> None:
    batch = BatchMaker(ALL, TP.topic).make(columns([(0, millis, 0, None, b"", ())]), 1)
    micros = batch["timestamp"].view(pa.int64())[0].as_py()
    assert abs(micros) == (2**63 - 1) // 1000 * 1000
    assert (micros > 0) == (millis > 0)


def test_nothing_is_copied_that_has_arrows_layout() -> None:
    made = columns()
    batch = BatchMaker(ALL, TP.topic).make(made, 3)
    assert batch["value"].buffers()[2].address == pa.py_buffer(made.values.data).address
    assert batch["offset"].buffers()[1].address == pa.py_buffer(made.offsets).address
    assert array("q", made.offsets).tolist() == [10, 11, 14]
