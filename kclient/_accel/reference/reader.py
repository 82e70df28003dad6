"""From fetched bytes to the application's records."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice, repeat
from typing import Any

from kclient._accel.reference.batch_iterator import LARGEST, BatchIterator
from kclient._accel.reference.column_builder import ColumnBuilder
from kclient._accel.reference.fast_construction import shell_of
from kclient._accel.shared.columns import LARGEST_COLUMN, Columns
from kclient._accel.shared.hooks import hooks
from kclient._accel.shared.records import Portion, RawRecord
from kclient._accel.shared.runs import Run
from kclient._accel.shared.types import Buffer, Headers
from kclient._accel.shared.varint import wrapped

Deserializer = Callable[[str, Headers, bytes], Any]
OnUndecodable = Callable[[Any], Any]


class RecordReader(BatchIterator):
    """The records of the batches in `buf[start:start + n]`, in order, from `from_offset` on. Belongs to one thread.

    Leaves out control batches, a batch cut off at the end and, if `aborted` says which transactions were
    (as producer id and first offset, in any order; None reads uncommitted data too), records of aborted
    transactions. Header names are text; deserializers are called as `(topic, headers, data)`, never for null.
    Where one fails, `on_undecodable` gets the error that would be raised otherwise: None leaves the record out, a
    record is taken in its place, and anything else in that of the key or value that the error is about.

    What is wrong with a record does not cost the ones before it: `read` returns those, and the next call raises.
    So does every later one: `next_offset` stays at the record that cannot be read. The errors are those
    of `hooks`. A `read` that is interrupted (Ctrl-C) has not taken place: the next one returns its records.
    `buf` must not change meanwhile; records keep nothing of it, and columns only if they are views.
    `read` and `read_columns` may take turns.
    """

    def __init__(
        self,
        buf: Buffer,
        start: int,
        n: int,
        topic: str,
        partition: int,
        from_offset: int,
        check_crc: bool,
        record_type: type,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        decompress_max: int = 64 * 1024 * 1024,
        aborted: Sequence[tuple[int, int]] | None = None,
        on_undecodable: OnUndecodable | None = None,
    ) -> None:
        super().__init__(buf, start, n, topic, partition, from_offset, check_crc, decompress_max, aborted)
        self._key_deserializer = key_deserializer
        self._value_deserializer = value_deserializer
        self._on_undecodable = on_undecodable
        self._record_type = record_type
        self._shell: Any = shell_of(record_type)
        self._deserializes = key_deserializer is not None or value_deserializer is not None
        self._error: BaseException | None = None
        self._ended = False
        self._reading = False
        # What is left of the portion of the batch that was begun.
        self._portion: Portion | None = None

    @property
    def exhausted(self) -> bool:
        """True if nothing is left to return or to raise, as far as it is known without reading on."""
        pending = self._portions is not None or self._error is not None
        return not pending and (self._ended or self._pos == len(self._view))

    def read(self, max_records: int) -> list[Any]:
        """Up to `max_records` records; an empty list at the end."""
        out: list[Any] = []
        self._walk(out, self._read_batch, max_records)
        return out

    def read_columns(
        self, max_records: int | None, view: bool, column_bytes: int = LARGEST_COLUMN
    ) -> Columns | None:
        """Up to `max_records` records (None: all there are) as columns of raw bytes; None at the end.

        With `view`, keys and values may stay in `buf`, which the columns then keep alive. There are fewer records if
        data of a copied column would have more than `column_bytes`, which only a first record may exceed, or once
        more than `decompress_max` bytes were decompressed. Then, too, the next call goes on.
        """
        out = ColumnBuilder(view, column_bytes)
        self._walk(out, self._read_batch_columns, sys.maxsize if max_records is None else max_records)
        return out.build()

    def _walk(self, out: Any, read_batch: Callable[[Any, int], bool], max_records: int) -> None:
        """Go from batch to batch and have `read_batch` add to `out` until that is full, or returns False."""
        if self._reading:
            # Called by a deserializer, or by another thread meanwhile.
            raise RuntimeError("the reader is being read already")
        if self._error is not None:
            raise self._error
        before = (
            self.next_offset,
            self.leader_epoch,
            self._ended,
            self._opened_before,
            self._pos,
            None if self._portions is None else self._batch_pos,
        )
        try:
            self._reading = True
            while len(out) < max_records:
                if self._portions is None and not self._next_batch():
                    self._ended = True
                    break
                if not read_batch(out, max_records):
                    break
        except hooks.data_errors as error:
            self._error = error
            if not len(out):
                raise
        except BaseException:
            # A batch may be half way through a record: it is opened again, and read on from the next offset.
            self.next_offset, self.leader_epoch, self._ended = before[:3]
            self._opened_before, self._pos, half_read = before[3:]
            self._portions = self._portion = None
            if half_read is not None:
                self._pos = half_read
                self._opened_before = True
            raise
        finally:
            self._reading = False

    def _read_batch(self, out: list[Any], max_records: int) -> bool:
        while self._portion is not None or self._next_portion():
            portion = self._portion
            if isinstance(portion, Run):
                if self._shell is None or self._deserializes:
                    self._portion = portion.records()
                    continue
                self._read_run(portion, out, max_records)
            else:
                assert portion is not None
                self._read_records(portion, out, max_records)
            if len(out) == max_records:
                return True
            self._portion = None
        return True

    def _next_portion(self) -> bool:
        """Go to the next records of the batch; False at its end."""
        assert self._portions is not None
        try:
            portion = next(self._portions, None)
        except ValueError as error:
            raise self._invalid(f"{error}", self.next_offset) from error
        if portion is None:
            self._portions = None
            self.next_offset = max(self.next_offset, self._batch_next)
            return False
        if isinstance(portion, Run) and self._base_offset + portion.offset + portion.count > LARGEST:
            portion = portion.records()  # one of them is to be found out of range
        self._portion = portion
        return True

    def _begin_run(self, run: Run, room: int) -> tuple[range, Iterator[int]]:
        """Offsets and timestamps of the records to read now."""
        offset = self._base_offset + run.offset
        if offset < self.next_offset:
            run.skip(min(self.next_offset - offset, run.count))
            offset = self._base_offset + run.offset
        append_ts = self._log_append_ts
        timestamps = run.timestamps(self._base_ts) if append_ts is None else repeat(append_ts)
        return range(offset, offset + min(run.count, room)), timestamps

    def _end_run(self, run: Run, offsets: range) -> None:
        """The records of `offsets` were read."""
        run.taken(len(offsets))
        if offsets:
            self.next_offset = offsets.stop

    def _read_run(self, run: Run, out: list[Any], max_records: int) -> None:
        offsets, timestamps = self._begin_run(run, max_records - len(out))
        topic = self.topic
        partition = self.partition
        timestamp_type = self._timestamp_type
        epoch = self.leader_epoch
        record_type = self._record_type
        key_size = run.key_size
        value_size = run.value_size
        records: list[Any] = list(map(object.__new__, repeat(self._shell, len(offsets))))
        # Hot: nothing here is a call.
        for record, offset, timestamp_ms, key, value in zip(
            records, offsets, timestamps, run.keys, run.values, strict=False
        ):
            record.topic = topic
            record.partition = partition
            record.offset = offset
            record.timestamp_ms = timestamp_ms
            record.timestamp_type = timestamp_type
            record.key = key
            record.value = value
            record.headers = ()
            record.leader_epoch = epoch
            record.serialized_key_size = key_size
            record.serialized_value_size = value_size
            record.__class__ = record_type
        self._end_run(run, offsets)
        out += records

    def _read_records(self, records: Iterator[RawRecord], out: list[Any], max_records: int) -> None:
        # Hot, hence the locals and the loop without calls.
        topic = self.topic
        partition = self.partition
        wanted = self.next_offset
        base_offset = self._base_offset
        base_ts = self._base_ts
        append_ts = self._log_append_ts
        timestamp_type = self._timestamp_type
        lowest, largest = -LARGEST, LARGEST
        near_end = base_offset > LARGEST - 2**32
        epoch = self.leader_epoch
        record_type = self._record_type
        shell = self._shell
        deserialize = self._deserializes
        room = max_records - len(out)
        try:
            for _, delta, offset, key, value, headers in records:
                offset += base_offset
                if offset < wanted:
                    continue
                if near_end and offset >= LARGEST:
                    raise ValueError(f"offset {offset} is out of range")
                timestamp_ms = base_ts + delta if append_ts is None else append_ts
                if not lowest <= timestamp_ms <= largest:
                    timestamp_ms = wrapped(timestamp_ms)
                key_size = -1 if key is None else len(key)
                value_size = -1 if value is None else len(value)
                record = None
                if deserialize:
                    made = self._deserialized(offset, timestamp_ms, key, value, headers)
                    if made is None:
                        wanted = offset + 1
                        continue
                    if type(made) is tuple:
                        key, value = made
                    else:
                        record = made
                if record is not None:
                    pass
                elif shell is None:
                    record = record_type(
                        topic,
                        partition,
                        offset,
                        timestamp_ms,
                        timestamp_type,
                        key,
                        value,
                        headers,
                        epoch,
                        key_size,
                        value_size,
                    )
                else:
                    record = shell()
                    record.topic = topic
                    record.partition = partition
                    record.offset = offset
                    record.timestamp_ms = timestamp_ms
                    record.timestamp_type = timestamp_type
                    record.key = key
                    record.value = value
                    record.headers = headers
                    record.leader_epoch = epoch
                    record.serialized_key_size = key_size
                    record.serialized_value_size = value_size
                    record.__class__ = record_type
                # In this order: an interrupt can only come after a call, and then both are done.
                wanted = offset + 1
                out.append(record)
                room -= 1
                if not room:
                    break
        except ValueError as error:
            raise self._invalid(f"{error}", wanted) from error
        finally:
            self.next_offset = wanted

    def _read_batch_columns(self, out: ColumnBuilder, max_records: int) -> bool:
        fits = out.fits(self._body_bytes)
        try:
            while self._portion is not None or self._next_portion():
                portion = self._portion
                if isinstance(portion, Run):
                    if not fits:
                        self._portion = portion.records()
                        continue
                    self._read_run_columns(portion, out, max_records)
                else:
                    assert portion is not None
                    if not self._read_record_columns(portion, out, max_records, fits):
                        return False
                if len(out) == max_records:
                    return True
                self._portion = None
        finally:
            out.timestamp_types += [self._timestamp_type] * (len(out) - len(out.timestamp_types))
        out.end_batch(self._inflated)
        return not len(out) or out.inflated <= self._decompress_max

    def _read_run_columns(self, run: Run, out: ColumnBuilder, max_records: int) -> None:
        offsets, timestamps = self._begin_run(run, max_records - len(out))
        count = len(offsets)
        new = list(islice(timestamps, count)), list(islice(run.keys, count)), list(islice(run.values, count))
        self._end_run(run, offsets)
        # Without a call, so that no interrupt leaves columns of different lengths.
        out.offsets += offsets
        out.timestamps += new[0]
        out.keys += new[1]
        out.values += new[2]
        out.headers += [()] * count

    def _read_record_columns(
        self, records: Iterator[RawRecord], out: ColumnBuilder, max_records: int, fits: bool
    ) -> bool:
        offsets, timestamps, keys, values, all_headers = (
            out.offsets,
            out.timestamps,
            out.keys,
            out.values,
            out.headers,
        )
        wanted = self.next_offset
        base_offset = self._base_offset
        base_ts = self._base_ts
        append_ts = self._log_append_ts
        lowest, largest = -LARGEST, LARGEST
        near_end = base_offset > LARGEST - 2**32
        room = max_records - len(out)
        try:
            for record in records:
                _, delta, offset, key, value, headers = record
                offset += base_offset
                if offset < wanted:
                    continue
                if near_end and offset >= LARGEST:
                    raise ValueError(f"offset {offset} is out of range")
                if not fits and not out.has_room(key, value, headers):
                    self._portion = chain((record,), records)
                    return False
                timestamp_ms = base_ts + delta if append_ts is None else append_ts
                if not lowest <= timestamp_ms <= largest:
                    timestamp_ms = wrapped(timestamp_ms)
                timestamps.append(timestamp_ms)
                offsets.append(offset)
                keys.append(key)
                values.append(value)
                all_headers.append(headers)
                wanted = offset + 1
                room -= 1
                if not room:
                    break
        except ValueError as error:
            raise self._invalid(f"{error}", wanted) from error
        finally:
            self.next_offset = wanted
        return True

    def _deserialized(
        self, offset: int, timestamp_ms: int, key: bytes | None, value: bytes | None, headers: Headers
    ) -> Any:
        """Key and value as a tuple; None to leave the record out, or the record to take in its place."""
        raw = key, value
        made: list[Any] = []
        deserializers = self._key_deserializer, self._value_deserializer
        for which, data, deserializer in zip(("key", "value"), raw, deserializers, strict=True):
            result: Any = data
            if data is not None and deserializer is not None:
                try:
                    result = deserializer(self.topic, headers, data)
                except Exception as cause:
                    result = self._instead(cause, offset, which, timestamp_ms, raw, headers)
                    if result is None or isinstance(result, self._record_type):
                        return result
            made.append(result)
        return made[0], made[1]

    def _instead(
        self,
        cause: Exception,
        offset: int,
        which: str,
        timestamp_ms: int,
        raw: tuple[bytes | None, bytes | None],
        headers: Headers,
    ) -> Any:
        """Return what `on_undecodable` puts in the place of `which`; raises the error without it."""
        error = hooks.undecodable_error(
            self.topic, self.partition, offset, which, timestamp_ms, self._timestamp_type, *raw, headers
        )
        if self._on_undecodable is None:
            raise error from cause
        error.__cause__ = cause
        return self._on_undecodable(error)
