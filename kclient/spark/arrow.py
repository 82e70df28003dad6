"""From decoded columns to the record batches that Spark takes as they are: nothing is copied that has the layout
already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kclient.spark.output import OutputColumn

if TYPE_CHECKING:
    from kclient.consumer import BinaryColumn, RecordColumns

_HEADER = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
_MILLIS = pa.timestamp("ms", tz="UTC")
_MICROS = pa.timestamp("us", tz="UTC")
_LARGEST_MS = (2**63 - 1) // 1000

TYPES: Mapping[str, Any] = {
    "key": pa.binary(),
    "value": pa.binary(),
    "topic": pa.string(),
    "partition": pa.int32(),
    "offset": pa.int64(),
    "timestamp": _MICROS,
    "timestampType": pa.int32(),
    "headers": pa.list_(pa.field("element", _HEADER)),
}


def arrow_schema(output: Sequence[OutputColumn]) -> Any:
    """What Spark compares the first batch with: names, order, types and nullability."""
    return pa.schema([pa.field(each.name, TYPES[each.column], nullable=each.nullable) for each in output])


class BatchMaker:
    """Makes the record batches of one partition. Used by one thread."""

    def __init__(self, output: Sequence[OutputColumn], topic: str, partition: int) -> None:
        self._schema = arrow_schema(output)
        self._make = [_MAKERS[each.column] for each in output]
        self._topic = topic
        self._partition = partition
        self._repeated: dict[str, Any] = {}

    def make(self, columns: RecordColumns, count: int) -> Any:
        """The first `count` records."""
        arrays = [make(self, columns) for make in self._make]
        batch = pa.RecordBatch.from_arrays(arrays, schema=self._schema)
        return batch if count == columns.count else batch.slice(0, count)

    def repeated(self, name: str, value: object, count: int) -> Any:
        """`value` as often as there are records; the longest column so far is kept and cut."""
        known = self._repeated.get(name)
        if known is None or len(known) < count:
            known = self._repeated[name] = pa.repeat(pa.scalar(value, TYPES[name]), count)
        return known.slice(0, count)

    def topic(self, columns: RecordColumns) -> Any:
        """The column `topic`."""
        return self.repeated("topic", self._topic, columns.count)

    def partition(self, columns: RecordColumns) -> Any:
        """The column `partition`."""
        return self.repeated("partition", self._partition, columns.count)


def _binary(column: BinaryColumn, kind: Any) -> Any:
    validity = None if column.validity is None else pa.py_buffer(column.validity)
    buffers = [validity, pa.py_buffer(column.offsets), pa.py_buffer(column.data)]
    return pa.Array.from_buffers(kind, len(column), buffers, column.null_count)


def _numbers(buffer: Any, kind: Any, count: int) -> Any:
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(buffer)], 0)


def _timestamps(columns: RecordColumns) -> Any:
    millis = _numbers(columns.timestamps_ms, pa.int64(), columns.count)
    try:
        return millis.view(_MILLIS).cast(_MICROS)
    except pa.ArrowInvalid:
        import pyarrow.compute as pc

        # Beyond what Spark can hold: the nearest time that it can, rather than a query that fails at one record.
        bounded = pc.max_element_wise(pc.min_element_wise(millis, _LARGEST_MS), -_LARGEST_MS)
        return bounded.view(_MILLIS).cast(_MICROS)


def _headers(columns: RecordColumns) -> Any:
    kind, count, headers = TYPES["headers"], columns.count, columns.headers
    if headers is None:
        return pa.nulls(count, kind)
    entries = pa.StructArray.from_arrays(
        [_binary(headers.names, pa.string()), _binary(headers.values, pa.binary())], fields=list(_HEADER)
    )
    offsets = _numbers(headers.offsets, pa.int32(), count + 1)
    # Not at the top: every query starts a process that only plans, and would load a thing it never uses.
    import pyarrow.compute as pc

    # A record without headers has null, not an empty list.
    has_some = pc.not_equal(offsets.slice(1), offsets.slice(0, count))
    return pa.Array.from_buffers(
        kind, count, [has_some.buffers()[1], offsets.buffers()[1]], children=[entries]
    )


_MAKERS: Mapping[str, Callable[[BatchMaker, RecordColumns], Any]] = {
    "key": lambda _, columns: _binary(columns.keys, pa.binary()),
    "value": lambda _, columns: _binary(columns.values, pa.binary()),
    "topic": BatchMaker.topic,
    "partition": BatchMaker.partition,
    "offset": lambda _, columns: _numbers(columns.offsets, pa.int64(), columns.count),
    "timestamp": lambda _, columns: _timestamps(columns),
    "timestampType": lambda _, columns: _numbers(columns.timestamp_types, pa.int8(), columns.count).cast(
        pa.int32()
    ),
    "headers": lambda _, columns: _headers(columns),
}
