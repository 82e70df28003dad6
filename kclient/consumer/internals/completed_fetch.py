"""One partition's answer of a fetch: bytes on the I/O thread, records on the application's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar

import attrs

from kclient._accel import Columns
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.types import ConsumerRecord
from kclient.errors import KafkaError, RecordDeserializationError
from kclient.record import RecordReader, end_of_batches

Deserialize = Callable[[str, "tuple[tuple[str, bytes | None], ...]", "bytes | None"], Any]
AbortedTransactions = Sequence[tuple[int, int]]
P = ParamSpec("P")
T = TypeVar("T")


@attrs.frozen
class DecodeSettings:
    """Settings for making records of fetched bytes. Immutable."""

    check_crcs: bool = True
    read_committed: bool = False
    key_deserializer: Any = None
    value_deserializer: Any = None
    decompress_max_bytes: int = 64 * 1024 * 1024


class Chunk:
    """Decoded records that were not handed out yet. Used by the application's thread.

    `position` is where the next hand-out starts, `end` where the partition goes on after all of it, which may be
    beyond the last record's successor: batches can end with records that were compacted away, aborted or markers.
    """

    __slots__ = ("_end_epoch", "_index", "_records", "end", "fetch", "left", "position")

    def __init__(
        self,
        fetch: CompletedFetch,
        records: list[ConsumerRecord[Any, Any]],
        position: int,
        end: int,
        end_epoch: int | None,
    ) -> None:
        self.fetch = fetch
        self.position = position
        self.end = end
        self._records = records
        self._end_epoch = end_epoch
        self._index = 0
        self.left = len(records)
        """The number of records that were not handed out."""

    def peek(self, count: int) -> tuple[list[ConsumerRecord[Any, Any]], int, int | None]:
        """Up to `count` records, and offset and leader epoch of the position after them; nothing moves."""
        stop = self._index + count
        if stop >= len(self._records):
            records = self._records[self._index :] if self._index else self._records
            return records, self.end, self._end_epoch
        last = self._records[stop - 1]
        return self._records[self._index : stop], last.offset + 1, last.leader_epoch

    def take_one(self) -> tuple[ConsumerRecord[Any, Any], int, int | None]:
        """Like `peek(1)`, of which there is one at least; nothing moves."""
        index = self._index
        record = self._records[index]
        if index + 1 == len(self._records):
            return record, self.end, self._end_epoch
        return record, record.offset + 1, record.leader_epoch

    def skip(self, count: int, position: int) -> None:
        """`count` records were handed out; the position is now `position`."""
        self._index += count
        self.left -= count
        self.position = position


class ColumnChunk:
    """Records as columns that were not handed out yet; they are handed out all at once. Otherwise like `Chunk`.

    `columns` is None if the position only passes what holds no records for the application.
    """

    __slots__ = ("_end_epoch", "columns", "end", "fetch", "left", "position", "view")

    def __init__(
        self,
        fetch: CompletedFetch,
        columns: Columns | None,
        view: bool,
        position: int,
        end: int,
        end_epoch: int | None,
    ) -> None:
        self.fetch = fetch
        self.columns = columns
        self.view = view
        self.position = position
        self.end = end
        self._end_epoch = end_epoch
        self.left = 0 if columns is None else columns.count
        """The number of records that were not handed out."""

    def peek(self, count: int) -> tuple[Columns | None, int, int | None]:  # noqa: ARG002 - as for records
        """The columns, and offset and leader epoch of the position after them; nothing moves."""
        return self.columns, self.end, self._end_epoch

    def skip(self, count: int, position: int) -> None:
        """`count` records were handed out; the position is now `position`."""
        self.left -= count
        self.position = position

    def suits(self, max_records: int | None, view: bool) -> bool:
        """Return True if a call that asks for this gets it from here."""
        return self.view == view and (max_records is None or self.left <= max_records)


AnyChunk = Chunk | ColumnChunk


class CompletedFetch:
    """The result of one fetch for one partition.

    Made by the I/O thread, which reads no more than batch headers, and afterwards used by the application's thread
    alone. It holds a slice of the whole answer's buffer, which lives as long as any partition's slice of it, until
    `detach`.
    """

    __slots__ = (
        "_chunk",
        "_data",
        "_detached",
        "_reader",
        "_settings",
        "aborted",
        "discarded",
        "end_offset",
        "error",
        "fetch_offset",
        "tp",
    )

    def __init__(
        self,
        tp: TopicPartition,
        fetch_offset: int,
        data: memoryview,
        aborted: AbortedTransactions | None,
        settings: DecodeSettings,
    ) -> None:
        self.tp = tp
        self.fetch_offset = fetch_offset
        self.aborted = aborted
        self.end_offset = end_of_batches(data)
        self.error: KafkaError | None = None
        self.discarded = False
        """True if nothing of it may be handed out any more, even by who holds it still."""
        self._data = data
        self._detached = False
        self._settings = settings
        self._reader: RecordReader | None = None
        self._chunk: AnyChunk | None = None

    @classmethod
    def failed(cls, tp: TopicPartition, fetch_offset: int, error: KafkaError) -> CompletedFetch:
        """A fetch that the application has to hear of."""
        fetch = cls(tp, fetch_offset, memoryview(b""), None, DecodeSettings())
        fetch.error = error
        return fetch

    @property
    def position(self) -> int:
        """The offset at which the partition has to stand for the rest of this fetch to be what comes next."""
        if self._chunk is not None:
            return self._chunk.position
        return self.fetch_offset if self._reader is None else self._reader.next_offset

    @property
    def size(self) -> int:
        """Bytes of the fetched batches."""
        return len(self._data)

    def chunk(self, max_records: int) -> Chunk | None:
        """The records that come next, at most `max_records` unless decoded before; None at the end.

        Nothing counts as handed out until `Chunk.skip`; until then every call gives the same. Raises what is wrong
        with the next record, again at every call: a `KafkaError` whose message names partition and offset.
        """
        if isinstance(self._chunk, Chunk):
            return self._chunk
        if self._chunk is not None:
            self._reopen()
        found = self._read(RecordReader.read, max_records)
        if found is None:
            return None
        self._chunk = chunk = Chunk(self, *found)
        return chunk

    def columns(self, max_records: int | None, view: bool) -> ColumnChunk | None:
        """The records that come next, at most `max_records`, as columns of raw bytes; otherwise like `chunk`."""
        chunk = self._chunk
        if isinstance(chunk, ColumnChunk) and chunk.suits(max_records, view):
            return chunk
        # Raw bytes need no deserializer, so what one failed for can be read here.
        if chunk is not None or isinstance(self.error, RecordDeserializationError):
            self._reopen()
        found = self._read(RecordReader.read_columns, max_records, view)
        if found is None:
            return None
        columns, start, end, epoch = found
        self._chunk = chunk = ColumnChunk(self, columns, view, start, end, epoch)
        return chunk

    def _read(
        self, read: Callable[Concatenate[RecordReader, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> tuple[T, int, int, int | None] | None:
        """The data read next, offsets of the position before and after, and the leader epoch; None at the end."""
        if self.error is not None:
            raise self.error
        if self._reader is None:
            self._reader = self._open(self.fetch_offset)
        start = self._reader.next_offset
        try:
            found = read(self._reader, *args, **kwargs)
        except KafkaError as error:
            self.error = error
            raise
        end = self._reader.next_offset
        if not found and end == start:
            if start == self.fetch_offset:
                self.error = KafkaError(
                    f"{self.tp}: the broker answered the fetch at offset {start} with {self.size} bytes that hold "
                    "no whole batch from there on; nothing can be read on"
                )
                raise self.error
            return None
        return found, start, end, self._reader.leader_epoch

    def _reopen(self) -> None:
        """Read once more, in another form, what was decoded and not handed out."""
        reader = self._open(self.position)
        self._chunk = None
        self.error = None
        self._reader = reader

    def detach(self) -> None:
        """Let go of the answer's buffer, by a copy of what is this partition's; what was decoded is decoded again."""
        if self._detached:
            return
        self._data = memoryview(bytes(self._data))
        if self._reader is not None:
            self._reopen()
        self._detached = True

    def finish_chunk(self) -> None:
        """The chunk was handed out to its end."""
        self._chunk = None

    def _open(self, offset: int) -> RecordReader:
        settings = self._settings
        return RecordReader(
            self._data,
            0,
            len(self._data),
            self.tp.topic,
            self.tp.partition,
            offset,
            settings.check_crcs,
            ConsumerRecord,
            settings.key_deserializer,
            settings.value_deserializer,
            settings.decompress_max_bytes,
            self.aborted,
        )
