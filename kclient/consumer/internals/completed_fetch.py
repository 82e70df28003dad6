"""One partition's answer of a fetch: bytes on the I/O thread, records on the application's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, Generic, TypeVar

import attrs

from kclient._accel import Columns
from kclient.common.topic_partition import TopicPartition
from kclient.compress import DecompressionError
from kclient.consumer.internals.undecodable import NotReplacedError
from kclient.consumer.types import ConsumerRecord
from kclient.errors import KafkaError, RecordDeserializationError, UnsupportedCompressionTypeError
from kclient.record import RecordReader, end_of_batches

Deserialize = Callable[[str, "tuple[tuple[str, bytes | None], ...]", "bytes | None"], Any]
AbortedTransactions = Sequence[tuple[int, int]]
T = TypeVar("T")

_NOTHING: Final = memoryview(b"")


@attrs.frozen
class DecodeSettings:
    """Settings for making records of fetched bytes. Immutable."""

    check_crcs: bool = True
    read_committed: bool = False
    key_deserializer: Any = None
    value_deserializer: Any = None
    on_undecodable: Any = None
    """Called where a deserializer fails, as `RecordReader` says; None raises."""
    decompress_max_bytes: int = 64 * 1024 * 1024


def _count(columns: Columns | None) -> int:
    return 0 if columns is None else columns.count


@attrs.frozen(eq=False)
class Form(Generic[T]):
    """The form in which records are decoded and handed out. Immutable."""

    read: Callable[[RecordReader, Any], T]
    """Reads what comes next, up to a number of records."""
    count: Callable[[T], int]
    divisible: bool
    """True if a part of what was decoded can be handed out."""


RECORDS: Final[Form[list[ConsumerRecord[Any, Any]]]] = Form(RecordReader.read, len, divisible=True)
COLUMNS: Final[Form[Columns | None]] = Form(
    lambda reader, most: reader.read_columns(most, False), _count, divisible=False
)
COLUMN_VIEWS: Final[Form[Columns | None]] = Form(
    lambda reader, most: reader.read_columns(most, True), _count, divisible=False
)


@attrs.define(eq=False)
class Portion(Generic[T]):
    """Records of one partition that were decoded, and where its position goes with them. For the application's thread.

    `position` is where the partition has to stand for what is left to come next, `end` where it goes on after all of
    it, which may be beyond the last record's successor: batches can end with records that were compacted away,
    aborted or markers.
    """

    fetch: CompletedFetch
    form: Form[T]
    data: T
    position: int
    end: int
    end_epoch: int | None
    left: int
    """The number of records that were not handed out."""
    taken: int = 0
    """The number of those that were."""

    def position_after(self, count: int) -> tuple[int, int | None]:
        """Offset and leader epoch of the position after `count` more records."""
        if count >= self.left:
            return self.end, self.end_epoch
        data: Any = self.data  # it is divisible
        last = data[self.taken + count - 1]
        return last.offset + 1, last.leader_epoch

    def first(self, count: int) -> T:
        """The next `count` records."""
        if count == self.left and not self.taken:
            return self.data
        data: Any = self.data  # it is divisible
        part: T = data[self.taken : self.taken + count]
        return part

    def suits(self, form: Form[Any], max_records: int | None) -> bool:
        """Return True if a call that asks for this gets it from here."""
        return self.form is form and (form.divisible or max_records is None or self.left <= max_records)


def placed(error: KafkaError, tp: TopicPartition, offset: int) -> KafkaError:
    """The error of a reader with its place, which codecs do not know; all others name it themselves."""
    if isinstance(error, DecompressionError | UnsupportedCompressionTypeError):
        named = error.reworded(f"{tp}, offset {offset}: {error}")
        named.__cause__ = error
        return named
    return error


class CompletedFetch:
    """The result of one fetch for one partition.

    Made by the I/O thread, which reads no more than batch headers, and afterwards used by the application's thread
    alone. It holds a slice of the whole answer's buffer, which lives as long as any partition's slice of it, until
    `detach`.
    """

    __slots__ = (
        "_data",
        "_detached",
        "_portion",
        "_reader",
        "_settings",
        "aborted",
        "discarded",
        "end_offset",
        "error",
        "fetch_offset",
        "over",
        "size",
        "tp",
        "turn",
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
        self.over = False
        """True if nothing of it is read any more; set by the application's thread, once."""
        self.turn = 0
        """Its place among the fetches of other partitions that are to be read."""
        self.size = len(data)
        """Bytes of the fetched batches."""
        self._data = data
        self._detached = False
        self._settings = settings
        self._reader: RecordReader | None = None
        self._portion: Portion[Any] | None = None

    @classmethod
    def failed(cls, tp: TopicPartition, fetch_offset: int, error: KafkaError) -> CompletedFetch:
        """A fetch that the application has to hear of."""
        fetch = cls(tp, fetch_offset, memoryview(b""), None, DecodeSettings())
        fetch.error = error
        return fetch

    @property
    def position(self) -> int:
        """The offset at which the partition has to stand for the rest of this fetch to be what comes next."""
        if self._portion is not None:
            return self._portion.position
        return self.fetch_offset if self._reader is None else self._reader.next_offset

    def portion(self, form: Form[T], max_records: int | None) -> Portion[T] | None:
        """The records that come next, at most `max_records` unless decoded before; None at the end.

        Nothing counts as handed out until the portion is told so; until then every call gives the same. Raises what
        is wrong with the next record, again at every call: a `KafkaError` whose message names partition and offset.
        """
        portion = self._portion
        if portion is not None and portion.suits(form, max_records):
            return portion
        # Raw bytes need no deserializer, so what one failed for can be read as columns.
        if (
            portion is not None
            or isinstance(self.error, NotReplacedError)  # the application is asked again
            or (form is not RECORDS and isinstance(self.error, RecordDeserializationError))
        ):
            self._reopen()
        if self.error is not None:
            raise self.error
        if self._reader is None:
            self._reader = self._open(self.fetch_offset)
        reader = self._reader
        start = reader.next_offset
        try:
            data = form.read(reader, max_records)
        except KafkaError as error:
            self.error = placed(error, self.tp, reader.next_offset)
            if self.error is error:
                raise
            raise self.error from error
        end = reader.next_offset
        count = form.count(data)
        if not count and end == start:
            if start == self.fetch_offset:
                self.error = KafkaError(
                    f"{self.tp}: the broker answered the fetch at offset {start} with {self.size} bytes that hold "
                    "no whole batch from there on; nothing can be read on"
                )
                raise self.error
            return None
        self._portion = portion = Portion(self, form, data, start, end, reader.leader_epoch, count)
        return portion

    def _reopen(self) -> None:
        """Read once more, in another form, what was decoded and not handed out."""
        reader = self._open(self.position)
        self._portion = None
        self.error = None
        self._reader = reader

    def handed_out(self, portion: Portion[Any], count: int, position: int) -> bool:
        """`count` more records of `portion` were handed out; returns whether that was the last of the fetch."""
        portion.taken += count
        portion.left -= count
        # Last: a portion that a Ctrl-C left half changed is not where the partition is, and is fetched again.
        portion.position = position
        if portion.left:
            return False
        self._portion = None
        return self.end_offset is not None and portion.end >= self.end_offset and self.error is None

    def detach(self) -> None:
        """Let go of the answer's buffer, by a copy of what is this partition's; what was decoded is decoded again."""
        if self._detached:
            return
        self._data = memoryview(bytes(self._data))
        if self._reader is not None:
            self._reopen()
        self._detached = True

    def end(self) -> None:
        """Nothing of it is read any more."""
        self.over = True
        self._data = _NOTHING
        self._portion = self._reader = None

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
            settings.on_undecodable,
        )
