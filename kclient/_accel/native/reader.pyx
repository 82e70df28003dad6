# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The native body: from fetched bytes to the application's records, and to columns.

What it does, in which order and with which errors, is that of `reference/reader.py`. It keeps the interpreter lock, but
gives other threads their turn now and then.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, Py_buffer, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc, PyMem_RawRealloc
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from kclient._accel.native.batch cimport fork_count
from kclient._accel.native.scan cimport (
    BAD_END,
    BAD_HEADER_COUNT,
    BAD_HEADER_SIZE,
    BAD_SIZE,
    BEYOND_END,
    CUT_OFF,
    LONG_VARINT,
    LONG_VARLONG,
    SOUND,
    Fault,
    Found,
    scan_record,
    take_varint,
)
from kclient._accel.native.wire cimport crc32c_of, crc32c_setup, get_32, get_64

from kclient._accel.reference.record_cursor import system_ms
from kclient._accel.shared.aborted import AbortedTransactions
from kclient._accel.shared.hooks import hooks
from kclient._accel.shared.columns import BinaryColumn, Columns, HeaderColumns
from kclient._accel.reference.fast_construction import RECORD_FIELDS, is_plain
from kclient._accel.shared.turns import give_turn

cdef enum:
    LENGTH_PREFIX = 12
    SMALLEST_BATCH = 14
    BATCH_FACTS = 27  # up to the last offset delta
    BATCHES_FOR_A_TURN = 65536  # of which only that is looked at
    NO_TIMESTAMP = -1

cdef extern from "slots.h":
    Py_ssize_t kclient_slot(object kind, object descriptor)
    object kclient_bare(object kind)
    void kclient_fill(object record, Py_ssize_t slot, object value)
    void kclient_watch(object record)
    void kclient_unwatch(object made)

cdef extern from "Python.h":
    const Py_buffer* kclient_view "PyMemoryView_GET_BUFFER"(object view)

cdef enum:
    FIELDS = 11

include "columns.pxi"
include "batch_iterator.pxi"
include "check.pxi"
include "record_cursor.pxi"

crc32c_setup()

cdef dict known_slots = {}


cdef tuple slots_of(record_type):
    """Return the slots in which instances have the fields of a record; None if they are to be made by their constructor."""
    cdef tuple slots
    if record_type not in known_slots:
        slots = None
        if isinstance(record_type, type) and is_plain(record_type):
            slots = tuple([kclient_slot(record_type, getattr(record_type, name, None)) for name in RECORD_FIELDS])
            if min(slots) < 0:
                slots = None
        known_slots[record_type] = slots
    return known_slots[record_type]


@cython.final
@cython.no_gc_clear
cdef class RecordReader(Walk):
    """The records of the batches in `buf[start:start + n]`, in order, from `from_offset` on. Belongs to one thread.

    As the class of this name in `reference/reader.py`.
    """

    cdef bint busy
    cdef object key_deserializer
    cdef object value_deserializer
    cdef object on_undecodable
    cdef object record_type
    cdef bint plain
    cdef Py_ssize_t slots[FIELDS]
    cdef object error

    def __cinit__(
        self,
        buf,
        start,
        n,
        topic,
        partition,
        int64_t from_offset,
        bint check_crc,
        record_type,
        key_deserializer=None,
        value_deserializer=None,
        decompress_max=64 * 1024 * 1024,
        aborted=None,
        on_undecodable=None,
    ):
        cdef int index
        cdef tuple slots
        self.view = memoryview(buf)[start : start + n]
        if not self.view.c_contiguous:
            raise BufferError("the batches do not lie in one piece")
        self.bytes = <const uint8_t*>kclient_view(self.view).buf
        self.size = kclient_view(self.view).len
        self.topic = topic
        self.partition = partition
        self.check_crc = check_crc
        self.decompress_max = decompress_max
        self.key_deserializer = key_deserializer
        self.value_deserializer = value_deserializer
        self.on_undecodable = on_undecodable
        self.record_type = record_type
        slots = slots_of(record_type)
        self.plain = slots is not None
        if self.plain:
            for index in range(FIELDS):
                self.slots[index] = slots[index]
        self.aborted = AbortedTransactions(aborted) if aborted else None
        self.work = WORK_FOR_A_TURN
        self.here.next_offset = from_offset
        self.here.epoch = -1

    @property
    def next_offset(self):
        """The offset to go on from: after the last record returned and what was left out behind it."""
        return self.here.next_offset

    @property
    def bytes_read(self):
        """Bytes of the batches read so far, as they came."""
        return self.here.pos

    @property
    def leader_epoch(self):
        """Leader epoch of the last batch that was read; None if it is not known."""
        return None if self.here.epoch < 0 else self.here.epoch

    @property
    def exhausted(self):
        """True if nothing is left to return or to raise, as far as it is known without reading on."""
        return not self.here.open and self.error is None and (
            self.here.ended or self.here.pos == self.size
        )

    def read(self, int64_t max_records):
        """Up to `max_records` records; an empty list at the end."""
        cdef list out = []
        self.walk(out, None, max_records)
        return out

    def read_columns(self, max_records, bint view, int64_t column_bytes=LARGEST_COLUMN):
        """Up to `max_records` records (None: all there are) as columns of raw bytes; None at the end."""
        cdef ColumnWriter out = ColumnWriter(view, column_bytes)
        self.walk(None, out, INT64_MAX if max_records is None else max_records)
        return out.build()

    cdef int walk(self, list records, ColumnWriter columns, int64_t max_records) except -1:
        """Go from batch to batch and fill one of the two."""
        cdef Cursor before = self.here
        cdef tuple objects
        if self.busy:
            # Called by a deserializer, or by another thread meanwhile.
            raise RuntimeError("the reader is being read already")
        if self.error is not None:
            raise self.error
        objects = (self.source, self.broken_off, self.messages)
        self.busy = True
        try:
            while (len(records) if columns is None else columns.count) < max_records:
                if not self.here.open and not self.next_batch():
                    self.here.ended = True
                    break
                if columns is None:
                    self.read_batch(records, max_records)
                elif not self.read_batch_columns(columns, max_records):
                    break
        except hooks.data_errors as error:
            self.error = error
            if not (len(records) if columns is None else columns.count):
                raise
        except BaseException:
            self.here = before
            self.source, self.broken_off, self.messages = objects
            raise
        finally:
            self.busy = False
        return 0

    # From record to record.

    cdef int read_batch(self, list out, int64_t max_records) except -1:
        cdef Found found
        cdef int64_t at = self.here.at
        cdef int64_t index = self.here.index
        cdef int64_t count = self.here.count
        cdef int64_t wanted = self.here.next_offset
        cdef int64_t room = max_records - len(out)
        cdef int64_t offset = 0
        cdef int64_t timestamp
        cdef const uint8_t* data = self.here.data
        cdef bint deserialize = self.key_deserializer is not None or self.value_deserializer is not None
        cdef bint inert = True
        cdef object record, key, value, made
        cdef object epoch = self.leader_epoch
        cdef object timestamp_type = self.here.timestamp_type
        # What is often the same in records that follow each other is one object.
        cdef int64_t known_timestamp = 0, known_key_size = -1, known_value_size = -1
        cdef object timestamp_ms = 0, key_size = -1, value_size = -1
        cdef tuple headers = ()
        cdef int64_t known_headers = 0, known_headers_size = 0
        try:
            if count < 0:
                raise ValueError(f"the batch claims {count} records")
            while index < count:
                self.take(at, index, &found)
                self.worked(found.end - at)
                at = found.end
                index += 1
                if not self.is_wanted(&found, wanted, &offset):
                    continue
                timestamp = self.time_of(&found)
                if timestamp != known_timestamp:
                    known_timestamp = timestamp
                    timestamp_ms = timestamp
                if found.key_size != known_key_size:
                    known_key_size = found.key_size
                    key_size = known_key_size
                if found.value_size != known_value_size:
                    known_value_size = found.value_size
                    value_size = known_value_size
                key = None
                if found.key_size >= 0:
                    key = PyBytes_FromStringAndSize(<const char*>data + found.key, found.key_size)
                value = None
                if found.value_size >= 0:
                    value = PyBytes_FromStringAndSize(<const char*>data + found.value, found.value_size)
                if not found.header_count:
                    headers = ()
                    known_headers_size = 0
                elif (
                    found.end - found.headers != known_headers_size
                    or len(headers) != found.header_count
                    or memcmp(data + found.headers, data + known_headers, known_headers_size)
                ):
                    headers = headers_of(data, &found)
                    known_headers = found.headers
                    known_headers_size = found.end - found.headers
                record = None
                if deserialize:
                    made = self.deserialized(offset, timestamp_ms, key, value, headers)
                    if made is None:
                        wanted = offset + 1
                        continue
                    if type(made) is tuple:
                        key, value = <tuple>made
                        inert = is_inert(key) and is_inert(value)
                    else:
                        record = made
                if record is not None:
                    pass
                elif self.plain:
                    record = kclient_bare(self.record_type)
                    kclient_fill(record, self.slots[0], self.topic)
                    kclient_fill(record, self.slots[1], self.partition)
                    kclient_fill(record, self.slots[2], offset)
                    kclient_fill(record, self.slots[3], timestamp_ms)
                    kclient_fill(record, self.slots[4], timestamp_type)
                    kclient_fill(record, self.slots[5], key)
                    kclient_fill(record, self.slots[6], value)
                    kclient_fill(record, self.slots[7], headers)
                    kclient_fill(record, self.slots[8], epoch)
                    kclient_fill(record, self.slots[9], key_size)
                    kclient_fill(record, self.slots[10], value_size)
                    # What cannot be part of a cycle need not be looked at by the collector.
                    if not inert:
                        kclient_watch(record)
                else:
                    record = self.record_type(
                        self.topic,
                        self.partition,
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
                out.append(record)
                wanted = offset + 1
                room -= 1
                if not room:
                    self.here.at = at
                    self.here.index = index
                    return 0
            self.end_batch()
            wanted = max(wanted, self.here.batch_next)
        except ValueError as error:
            raise self.invalid(f"{error}", wanted) from error
        finally:
            self.here.next_offset = wanted
        return 0

    cdef bint read_batch_columns(self, ColumnWriter out, int64_t max_records) except -1:
        cdef Found found
        cdef int64_t at = self.here.at
        cdef int64_t index = self.here.index
        cdef int64_t count = self.here.count
        cdef int64_t left = self.here.end - at
        cdef int64_t records = count - index
        cdef int64_t wanted = self.here.next_offset
        cdef int64_t room = max_records - out.count
        cdef int64_t offset = 0
        try:
            if count < 0:
                raise ValueError(f"the batch claims {count} records")
            # The count is a claim; so many records cannot be in so few bytes.
            if self.messages is None and records > left // SMALLEST_RECORD + 1:
                records = left // SMALLEST_RECORD + 1
            if records > room:
                left = left // records * room
                records = room
            else:
                # The batches behind this one will need about their size.
                left += self.size - self.here.pos
            out.begin_batch(self.source, source_size(self.source), records, left)
            while index < count:
                self.take(at, index, &found)
                self.worked(found.end - at)
                if self.is_wanted(&found, wanted, &offset):
                    if not out.add(
                        self.here.data, &found, offset, self.time_of(&found), self.here.timestamp_type
                    ):
                        self.here.at = at
                        self.here.index = index
                        return False
                    wanted = offset + 1
                    room -= 1
                    if not room:
                        self.here.at = found.end
                        self.here.index = index + 1
                        return True
                at = found.end
                index += 1
            self.end_batch()
            wanted = max(wanted, self.here.batch_next)
        except ValueError as error:
            raise self.invalid(f"{error}", wanted) from error
        finally:
            self.here.next_offset = wanted
        out.inflated += self.here.inflated
        return not out.count or out.inflated <= self.decompress_max

    cdef object deserialized(self, int64_t offset, timestamp_ms, raw_key, raw_value, tuple headers):
        """Key and value as a tuple; None to leave the record out, or the record to take in its place."""
        cdef object key = raw_key
        cdef object value = raw_value
        if raw_key is not None and self.key_deserializer is not None:
            try:
                key = self.key_deserializer(self.topic, headers, raw_key)
            except Exception as cause:
                key = self.instead(cause, offset, "key", timestamp_ms, raw_key, raw_value, headers)
                if key is None or isinstance(key, self.record_type):
                    return key
        if raw_value is not None and self.value_deserializer is not None:
            try:
                value = self.value_deserializer(self.topic, headers, raw_value)
            except Exception as cause:
                value = self.instead(cause, offset, "value", timestamp_ms, raw_key, raw_value, headers)
                if value is None or isinstance(value, self.record_type):
                    return value
        return key, value

    cdef object instead(
        self, cause, int64_t offset, str which, timestamp_ms, raw_key, raw_value, tuple headers
    ):
        """Return what `on_undecodable` puts in the place of `which`; raises the error without it."""
        cdef object error = hooks.undecodable_error(
            self.topic,
            self.partition,
            offset,
            which,
            timestamp_ms,
            self.here.timestamp_type,
            raw_key,
            raw_value,
            headers,
        )
        if self.on_undecodable is None:
            raise error from cause
        error.__cause__ = cause
        return self.on_undecodable(error)

cdef inline bint is_inert(value) noexcept:
    """Return True if the collector has nothing to find behind it."""
    return value is None or type(value) is bytes or type(value) is str or type(value) is int or type(value) is float


cdef int64_t source_size(source) except -1:
    return len(source)


cdef tuple headers_of(const uint8_t* data, const Found* found):
    """The headers of a record, which scan_record has found to be sound."""
    cdef int64_t pos = found.headers
    cdef uint32_t raw = 0
    cdef list made = []
    cdef tuple header
    cdef object name, value
    cdef int64_t left = found.header_count
    while left > 0:
        left -= 1
        take_varint(data, &pos, found.end, &raw)
        name = PyUnicode_DecodeUTF8(<const char*>data + pos, raw >> 1, "replace")
        pos += raw >> 1
        take_varint(data, &pos, found.end, &raw)
        value = None
        if not raw & 1:
            value = PyBytes_FromStringAndSize(<const char*>data + pos, raw >> 1)
            pos += raw >> 1
        header = (name, value)
        kclient_unwatch(header)
        made.append(header)
        if left and not left & (HEADERS_FOR_A_TURN - 1):
            give_turn()
    header = tuple(made)
    kclient_unwatch(header)
    return header


def end_of_batches(data):
    cdef Py_buffer view
    cdef const uint8_t* at
    cdef int64_t pos = 0
    cdef int64_t base = 0
    cdef int32_t length, delta
    cdef int32_t last_delta = 0
    cdef int64_t found = 0
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        while view.len - pos >= BATCH_FACTS:
            at = <const uint8_t*>view.buf + pos
            length = <int32_t>get_32(at + 8)
            delta = <int32_t>get_32(at + 23) if at[16] < 128 and at[16] >= 2 else 0
            if length < SMALLEST_BATCH or delta < 0:
                found = 0
                break
            pos += LENGTH_PREFIX + <int64_t>length
            if pos > view.len:
                break
            base = <int64_t>get_64(at)
            last_delta = delta
            found += 1
            if not found % BATCHES_FOR_A_TURN:
                give_turn()
    finally:
        PyBuffer_Release(&view)
    # In Python's numbers, which have no largest one.
    return (<object>base) + 1 + last_delta if found else None
