"""From batch to batch of what was fetched: which are for the application, and what their records are read from."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence

from kclient._accel.reference.hashing import crc32c
from kclient._accel.shared.aborted import AbortedTransactions
from kclient._accel.shared.hooks import hooks
from kclient._accel.shared.records import Portion, RawRecord, decode_portions, records_of
from kclient._accel.shared.types import Buffer

LARGEST = 2**63 - 1

_HEADER = struct.Struct(">qiibIhiqqqhii")
_CONTROL_KEY = struct.Struct(">hh")
_ABORT = 0
_SMALLEST_LENGTH = 14
_LARGEST_LENGTH = 2**31 - 1 - 12
_NO_TIMESTAMP_TYPE = -1


class BatchIterator:
    """The way through the batches in `buf[start:start + n]`, and where it has come to. A `RecordReader` reads them."""

    def __init__(
        self,
        buf: Buffer,
        start: int,
        n: int,
        topic: str,
        partition: int,
        from_offset: int,
        check_crc: bool,
        decompress_max: int,
        aborted: Sequence[tuple[int, int]] | None,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.next_offset = from_offset
        """The offset to go on from: after the last record returned and what was left out behind it."""
        self.leader_epoch: int | None = None
        """Leader epoch of the last batch that was read; None if it is not known."""
        self._view = memoryview(buf)[start : start + n]
        self._pos = 0
        self._check_crc = check_crc
        self._decompress_max = decompress_max
        self._aborted = AbortedTransactions(aborted) if aborted else None
        # The batch being read, of which `_portions` has what was not begun yet.
        self._portions: Iterator[Portion] | None = None
        self._base_offset = 0
        self._base_ts = 0
        self._log_append_ts: int | None = None
        self._timestamp_type = 0
        self._batch_pos = 0
        self._batch_next = 0
        self._batch_epoch: int | None = None
        self._body_bytes = 0
        self._inflated = 0
        self._opened_before = False

    @property
    def bytes_read(self) -> int:
        """Bytes of the batches read so far, as they came."""
        return self._pos

    def _next_batch(self) -> bool:
        """Go to the next batch with records for the application; False at the end."""
        view = self._view
        while True:
            pos = self._pos
            left = len(view) - pos
            if left < 17:
                return False
            length = int.from_bytes(view[pos + 8 : pos + 12], "big", signed=True)
            magic = view[pos + 16]
            if not _SMALLEST_LENGTH <= length <= _LARGEST_LENGTH:
                raise self._corrupt(f"a batch of {length} bytes cannot be")
            if magic > 2:
                raise self._corrupt(f"magic {magic} is not known")
            if left < 12 + length:
                return False
            self._batch_pos = pos
            batch = view[pos : pos + 12 + length]
            found = self._open(batch) if magic == 2 else self._open_legacy(batch)
            self._pos = pos + 12 + length
            if found:
                self.leader_epoch = self._batch_epoch
                return True
            # A batch that is passed counts as read, or the position behind it would have an epoch that ends before it.
            if self._batch_next > self.next_offset:
                self.next_offset = self._batch_next
                self.leader_epoch = self._batch_epoch

    def _open(self, batch: memoryview) -> bool:
        """Make ready to read a batch of magic 2; False if all of it is to be left out."""
        if len(batch) < _HEADER.size:
            raise self._corrupt(f"a batch of {len(batch)} bytes has no room for its header")
        header = _HEADER.unpack_from(batch)
        base_offset, _, epoch, _, crc, attributes, last_delta, base_ts, max_ts, producer_id, _, _, count = (
            header
        )
        if self._check_crc and crc32c(batch[21:]) != crc:
            raise self._corrupt("the checksum of a batch does not match")
        self._batch_next = base_offset + last_delta + 1
        self._batch_epoch = epoch if epoch >= 0 else None
        if self._batch_next > LARGEST:
            raise self._corrupt(f"a batch that ends at offset {self._batch_next} cannot be")
        opened_before, self._opened_before = self._opened_before, False
        control = bool(attributes & 0x20)
        if self._aborted is not None and producer_id >= 0 and self._left_out(batch, header, control):
            return False
        below = base_offset < self._batch_next <= self.next_offset
        if control or not count or (below and not opened_before):
            return False
        self._base_offset = base_offset
        self._base_ts = base_ts
        self._timestamp_type = (attributes >> 3) & 1
        self._log_append_ts = max_ts if self._timestamp_type else None
        self._portions = self._decode(batch, attributes, count)
        return True

    def _decode(self, batch: memoryview, attributes: int, count: int) -> Iterator[Portion]:
        payload = batch[_HEADER.size :]
        self._inflated = 0
        self._body_bytes = len(payload)
        if not attributes & 7:
            return decode_portions(bytes(payload), count)
        data, error = hooks.decompress(attributes & 7, payload, self._decompress_max)
        self._inflated = self._body_bytes = len(data)
        return decode_portions(data, count, error)

    def _left_out(self, batch: memoryview, header: tuple[int, ...], control: bool) -> bool:
        """Keep track of aborted transactions; True for a batch that belongs to one."""
        base_offset, attributes, last_delta, producer_id, count = (header[i] for i in (0, 5, 6, 9, 12))
        aborted = self._aborted
        assert aborted is not None
        last_offset = base_offset + last_delta
        if not aborted.has(producer_id, last_offset):
            return False
        if not control:
            return bool(attributes & 0x10)
        try:
            record = next(records_of(self._decode(batch, attributes, count)), None)
        except ValueError as error:
            raise self._invalid(f"{error}", self.next_offset) from error
        if record is None:
            return False
        key = record[3]
        if key is None or len(key) < _CONTROL_KEY.size:
            raise self._invalid("a control record has no type", self.next_offset)
        # The end of this transaction; a second marker for it finds nothing to end.
        if _CONTROL_KEY.unpack_from(key)[1] == _ABORT:
            aborted.end(producer_id, last_offset)
        return False

    def _open_legacy(self, batch: memoryview) -> bool:
        magic = batch[16]
        # Offsets and timestamps are absolute here, and the type is that of each record.
        records = list(hooks.read_legacy(batch, self._check_crc, self._decompress_max))
        self._batch_next = int.from_bytes(batch[:8], "big", signed=True) + 1
        self._batch_epoch = None
        self._opened_before = False
        highest = max(self._batch_next, *(record[0] + 1 for record in records), 0)
        if highest > LARGEST:
            raise self._corrupt(f"a batch that ends at offset {highest} cannot be")
        sizes = [len(key or b"") + len(value or b"") for _, _, _, key, value in records]
        self._inflated = self._body_bytes = sum(sizes)
        if not records:
            return False
        self._base_offset = 0
        self._base_ts = 0
        self._log_append_ts = None
        self._timestamp_type = records[0][2] if magic else _NO_TIMESTAMP_TYPE
        portion: Iterator[RawRecord] = iter(
            [(0, timestamp, offset, key, value, ()) for offset, timestamp, _, key, value in records]
        )
        self._portions = iter((portion,))
        return True

    def _corrupt(self, what: str) -> BaseException:
        return hooks.corrupt_error(f"{self.topic}-{self.partition}, offset {self.next_offset}: {what}")

    def _invalid(self, what: str, offset: int) -> BaseException:
        return hooks.invalid_error(f"{self.topic}-{self.partition}, offset {offset}: {what}")
