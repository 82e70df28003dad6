"""From decoded columns to the record batches that Spark takes as they are: nothing is copied that has the layout
already.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from kclient.spark.output import OutputColumn

if TYPE_CHECKING:
    from kclient.consumer import RecordColumns

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
    """Return the schema that Spark compares the first batch with: names, order, types and nullability."""
    return pa.schema([pa.field(each.name, TYPES[each.column], nullable=each.nullable) for each in output])


class BatchMaker:
    """Makes the record batches of one partition. Used by one thread."""

    def __init__(self, output: Sequence[OutputColumn], topic: str) -> None:
        self._schema = arrow_schema(output)
        self._make = [_MAKERS[each.column] for each in output]
        self._topic = topic
        self._topics: Any = None

    def make(self, columns: RecordColumns, count: int) -> Any:
        """The first `count` records."""
        plain = columns.to_arrow()
        batch = pa.RecordBatch.from_arrays([make(self, plain) for make in self._make], schema=self._schema)
        return batch if count == columns.count else batch.slice(0, count)

    def topic(self, plain: Any) -> Any:
        """The column `topic`: the longest so far is kept and cut."""
        known, count = self._topics, len(plain)
        if known is None or len(known) < count:
            known = self._topics = pa.repeat(pa.scalar(self._topic, TYPES["topic"]), count)
        return known.slice(0, count)


def _timestamps(plain: Any) -> Any:
    try:
        return plain["timestamp"].cast(_MICROS)
    except pa.ArrowInvalid:
        import pyarrow.compute as pc

        # Beyond what Spark can hold: the nearest time that it can, rather than a query that fails at one record.
        millis = plain["timestamp"].view(pa.int64())
        bounded = pc.max_element_wise(pc.min_element_wise(millis, _LARGEST_MS), -_LARGEST_MS)
        return bounded.view(_MILLIS).cast(_MICROS)


def _headers(plain: Any) -> Any:
    kind, count, headers = TYPES["headers"], len(plain), plain["headers"]
    if not len(headers.values):
        return pa.nulls(count, kind)
    offsets = headers.offsets
    # Not at the top: every query starts a process that only plans, and would load a thing it never uses.
    import pyarrow.compute as pc

    # A record without headers has null, not an empty list.
    has_some = pc.not_equal(offsets.slice(1), offsets.slice(0, count))
    return pa.Array.from_buffers(
        kind, count, [has_some.buffers()[1], offsets.buffers()[1]], children=[headers.values]
    )


_MAKERS: Mapping[str, Callable[[BatchMaker, Any], Any]] = {
    "key": lambda _, plain: plain["key"],
    "value": lambda _, plain: plain["value"],
    "topic": BatchMaker.topic,
    "partition": lambda _, plain: plain["partition"],
    "offset": lambda _, plain: plain["offset"],
    "timestamp": lambda _, plain: _timestamps(plain),
    "timestampType": lambda _, plain: plain["timestamp_type"].cast(pa.int32()),
    "headers": lambda _, plain: _headers(plain),
}
