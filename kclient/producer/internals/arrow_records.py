"""Records in Arrow's columns, brought into the one form that batches take."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from kclient._accel import Column

COLUMNS = ("topic", "partition", "key", "value", "headers", "timestamp")


def pyarrow() -> Any:
    """The module; raises ImportError saying how to install it."""
    try:
        import pyarrow as pa
    except ImportError as error:
        raise ImportError("send_arrow needs pyarrow: pip install 'kclient-kafka[arrow]'") from error
    return pa


@attrs.frozen(eq=False)
class ArrowRecords:
    """Records of one topic in columns without chunks. The columns but `value` are None if they were not given.

    `indexes` are their rows in what the application gave. `timestamp` is in ms and int64, `headers` is None if no
    record has any. `timestamps`, `keys` and `values` are buffers of the same, for `BatchBuilder.append_columns`.
    """

    topic: str
    indexes: Sequence[int]
    partition: Any
    key: Any
    value: Any
    headers: Any
    timestamp: Any
    timestamps: memoryview | None = attrs.field(init=False)
    keys: Column | None = attrs.field(init=False)
    values: Column = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        set_field = object.__setattr__
        set_field(self, "timestamps", None if self.timestamp is None else _numbers(self.timestamp))
        set_field(self, "keys", None if self.key is None else _binary(self.key))
        set_field(self, "values", _binary(self.value))

    def __len__(self) -> int:
        return len(self.indexes)

    def row(self, number: int) -> tuple[int | None, bytes | None, bytes | None]:
        """Timestamp, key and value of one record."""
        timestamp_ms = None if self.timestamp is None else self.timestamp[number].as_py()
        key = None if self.key is None else self.key[number].as_py()
        return timestamp_ms, key, self.value[number].as_py()

    def headers_of(self, number: int) -> tuple[tuple[str, bytes | None], ...]:
        """The headers of one record."""
        pairs = None if self.headers is None else self.headers[number].as_py()
        return tuple((pair["key"], pair["value"]) for pair in pairs or ())

    def taken(self, order: Any) -> ArrowRecords:
        """The records at the positions `order`, in that order."""
        import pyarrow.compute as pc

        def column(values: Any) -> Any:
            return None if values is None else values.take(order)

        first = self.indexes[0] if isinstance(self.indexes, range) else None
        indexes: Any = (
            _numbers(pc.add(order.cast("int64"), first))
            if first is not None
            else [self.indexes[i] for i in order.to_pylist()]
        )
        return ArrowRecords(
            self.topic,
            indexes,
            *(
                column(values)
                for values in (self.partition, self.key, self.value, self.headers, self.timestamp)
            ),
        )


def records_of(data: Any, topic: str | None, now_ms: int) -> Iterator[ArrowRecords]:
    """`data`, a table, a record batch or whatever offers itself as one, by topic; all for `topic` if that is given.

    Raises TypeError and ValueError naming the column, and the row if it is a single one.
    """
    pa = pyarrow()
    table = data if isinstance(data, (pa.Table, pa.RecordBatch)) else _table(pa, data)
    for name in table.schema.names:
        if name not in COLUMNS:
            raise ValueError(f"column {name!r} is none of those of a record: {', '.join(COLUMNS)}")
    if "value" not in table.schema.names:
        raise ValueError("there is no column 'value'")
    if topic is None and "topic" not in table.schema.names:
        raise ValueError("there is no column 'topic', and no topic is given")
    batches = [table] if isinstance(table, pa.RecordBatch) else table.to_batches()
    row = 0
    for batch in batches:
        if batch.num_rows:
            yield from _by_topic(pa, batch, row, topic, now_ms)
        row += batch.num_rows


def _table(pa: Any, data: Any) -> Any:
    try:
        return pa.table(data)
    except (TypeError, ValueError) as error:
        # Not the same class: some of ValueError's take other arguments.
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            f"data must be a table or a batch of Arrow's, or offer itself as one, not {type(data).__name__}: {error}"
        ) from error


def _by_topic(pa: Any, batch: Any, row: int, topic: str | None, now_ms: int) -> Iterator[ArrowRecords]:
    import pyarrow.compute as pc

    def column(name: str) -> Any:
        return batch.column(name) if name in batch.schema.names else None

    everything = ArrowRecords(
        topic or "",
        range(row, row + batch.num_rows),
        _partitions(pa, column("partition"), row),
        _contents(pa, column("key"), "key"),
        _contents(pa, column("value"), "value"),
        _headers(pa, column("headers")),
        _timestamps(pa, column("timestamp"), now_ms, row),
    )
    if topic is not None:
        yield everything
        return
    names = _cast(column("topic"), pa.string(), "topic")
    if names.null_count:
        raise ValueError(f"topic is null in row {row + pc.index(names.is_null(), True).as_py()}")
    distinct = names.unique().to_pylist()
    for name in distinct:
        if len(distinct) == 1:
            yield attrs.evolve(everything, topic=name)
        else:
            yield attrs.evolve(everything.taken(pc.indices_nonzero(pc.equal(names, name))), topic=name)


def _cast(values: Any, kind: Any, name: str) -> Any:
    try:
        return values.cast(kind)
    except Exception as error:
        pa = pyarrow()
        if isinstance(error, pa.ArrowInvalid) and pa.types.is_integer(values.type):
            # The type is right, a value is not; Arrow names it.
            raise ValueError(f"not all of column {name!r} can be {kind}: {error}") from error
        raise TypeError(f"column {name!r} has type {values.type}, which cannot be {kind}") from error


def _contents(pa: Any, values: Any, name: str) -> Any:
    """A binary or large_binary array."""
    if values is None:
        return None
    large = (pa.types.is_large_binary(values.type), pa.types.is_large_string(values.type))
    if any(large):
        return values if large[0] else _cast(values, pa.large_binary(), name)
    if pa.types.is_binary(values.type):
        return values
    if pa.types.is_dictionary(values.type):
        return _contents(pa, values.dictionary_decode(), name)
    textual = pa.types.is_string(values.type) or pa.types.is_fixed_size_binary(values.type)
    viewed = any(
        test is not None and test(values.type)
        for test in (getattr(pa.types, each, None) for each in ("is_binary_view", "is_string_view"))
    )
    if not textual and not viewed and not pa.types.is_null(values.type):
        raise TypeError(f"column {name!r} has type {values.type}; it must hold bytes or text")
    return _cast(values, pa.binary(), name)


def _partitions(pa: Any, values: Any, row: int) -> Any:
    if values is None or values.null_count == len(values):
        return None
    import pyarrow.compute as pc

    found = _cast(values, pa.int32(), "partition")
    if pc.min(found).as_py() < 0:
        at = pc.index(pc.less(found, 0), True).as_py()
        raise ValueError(f"partition is negative in row {row + at}: {found[at].as_py()}")
    return found


def _headers(pa: Any, values: Any) -> Any:
    if values is None:
        return None
    kind = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
    found = _cast(values, kind, "headers")
    if not len(found.flatten()):
        return None
    import pyarrow.compute as pc

    if found.flatten().null_count or pc.struct_field(found.flatten(), 0).null_count:
        raise ValueError("column 'headers' has a header without a key")
    return found


def _timestamps(pa: Any, values: Any, now_ms: int, row: int) -> Any:
    """Milliseconds since the epoch as int64, `now_ms` where there is null."""
    if values is None or values.null_count == len(values):
        return None
    import pyarrow.compute as pc

    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.timestamp("ms", values.type.tz), safe=False)
    found = _cast(values, pa.int64(), "timestamp").fill_null(now_ms)
    if pc.min(found).as_py() < 0:
        at = pc.index(pc.less(found, 0), True).as_py()
        raise ValueError(f"timestamp is before 1970 in row {row + at}: {found[at].as_py()} ms")
    return found


def _numbers(values: Any) -> memoryview:
    view: memoryview = memoryview(values.buffers()[1]).cast("B").cast("q")
    return view[values.offset : values.offset + len(values)]


def _binary(values: Any) -> Column:
    import pyarrow as pa

    validity, offsets, data = values.buffers()
    view = memoryview(offsets).cast("B").cast("q" if pa.types.is_large_binary(values.type) else "i")
    ends = view[values.offset : values.offset + len(values) + 1]
    contents = memoryview(b"") if data is None else memoryview(data)
    return ends, contents, None if not values.null_count else memoryview(validity), values.offset
