"""The result of poll_columns(): the records of a partition as columns, without an object for each of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from kclient._accel import BinaryColumn as RawColumn
from kclient._accel import Columns
from kclient.common.topic_partition import TopicPartition


@attrs.frozen(eq=False, repr=False)
class BinaryColumn:
    """Byte strings that lie one after the other, as in Arrow's `binary`. Immutable; a sequence of bytes or None.

    String i is `data[offsets[i]:offsets[i + 1]]`. `offsets` are int32 and one more than there are strings. `validity`
    has a bit for each string, the least significant first, 0 for null; it is None if `null_count` is 0.
    """

    null_count: int
    validity: memoryview | None
    offsets: memoryview
    data: memoryview

    @classmethod
    def of(cls, column: RawColumn) -> BinaryColumn:
        """The column as the record reader made it, copied."""
        assert column.offsets is not None
        validity = None if column.validity is None else memoryview(column.validity)
        return cls(column.null_count, validity, _cast(column.offsets, "i"), memoryview(column.data[0]))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> bytes | None:
        count = len(self)
        if not -count <= index < count:
            raise IndexError(f"there are {count} strings, and none has the index {index}")
        index %= count
        if self.validity is not None and not self.validity[index >> 3] >> (index & 7) & 1:
            return None
        return bytes(self.data[self.offsets[index] : self.offsets[index + 1]])

    def __iter__(self) -> Iterator[bytes | None]:
        return map(self.__getitem__, range(len(self)))

    def __repr__(self) -> str:
        return f"BinaryColumn({len(self)} strings, {self.null_count} of them null, {len(self.data)} bytes)"


@attrs.frozen(eq=False, repr=False)
class HeaderColumns:
    """The headers of all records: those of record i have the indices `offsets[i]` to `offsets[i + 1]`. Immutable.

    `offsets` are int32 and one more than there are records. Names are UTF-8 and never null.
    """

    offsets: memoryview
    names: BinaryColumn
    values: BinaryColumn

    def __repr__(self) -> str:
        return f"HeaderColumns({len(self.names)} headers of {len(self.offsets) - 1} records)"


@attrs.frozen(eq=False, repr=False)
class RecordColumns:
    """`count` records of one partition, in offset order; `next_offset` is where it is read on after them. Immutable.

    Every column has `count` entries: `offsets` and `timestamps_ms` (since the epoch, -1 if there is none) are int64;
    `timestamp_types` int8, 0 for the time the producer gave, 1 for the time the broker appended it, -1 for none.
    Keys and values are the raw bytes; deserializers are not applied. `headers` is None if no record has any.

    All of them are memoryviews of memory that belongs to this object alone, in the machine's order of bytes: numpy
    takes them without a copy (`numpy.asarray(columns.offsets)`), as Arrow does (`to_arrow`).
    """

    topic_partition: TopicPartition
    next_offset: int
    count: int
    offsets: memoryview
    timestamps_ms: memoryview
    timestamp_types: memoryview
    keys: BinaryColumn
    values: BinaryColumn
    headers: HeaderColumns | None
    _columns: Columns

    @classmethod
    def of(cls, tp: TopicPartition, columns: Columns, next_offset: int) -> RecordColumns:
        """The columns as the record reader made them, copied."""
        headers = columns.headers
        return cls(
            tp,
            next_offset,
            columns.count,
            _cast(columns.offsets, "q"),
            _cast(columns.timestamps, "q"),
            _cast(columns.timestamp_types, "b"),
            BinaryColumn.of(columns.keys),
            BinaryColumn.of(columns.values),
            None
            if headers is None
            else HeaderColumns(
                _cast(headers.offsets, "i"), BinaryColumn.of(headers.names), BinaryColumn.of(headers.values)
            ),
            columns,
        )

    def __len__(self) -> int:
        return self.count

    def to_arrow(self) -> Any:
        """A `pyarrow.RecordBatch` over the same memory, of the schema that `KafkaConsumer.poll_arrow` describes.

        Raises ImportError without pyarrow.
        """
        from kclient.consumer.internals.arrow import ArrowBatches

        return ArrowBatches("copy").batch(self.topic_partition, self._columns)

    def __repr__(self) -> str:
        return f"RecordColumns({self.count} records of {self.topic_partition})"


def _cast(buffer: Any, code: str) -> memoryview:
    view = memoryview(buffer)
    # Only to and from bytes.
    return view if view.format == code else view.cast("B").cast(code)  # type: ignore[call-overload]
