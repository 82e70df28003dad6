# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The native body: from fetched bytes to the application's records, and to columns.

What it does, in which order and with which errors, is that of `pure_reader.py`. It keeps the interpreter lock.
"""

cimport cython
from cpython.buffer cimport Py_buffer, PyBuffer_FillInfo
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc, PyMem_RawRealloc
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport INT64_MAX, INT64_MIN, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcmp, memcpy, memset

from kclient._accel.scan cimport (
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
from kclient._accel.wire cimport crc32c_of, crc32c_setup, get_32, get_64

from kclient._accel.hooks import hooks
from kclient._accel.pure_columns import BinaryColumn, Columns, HeaderColumns
from kclient._accel.pure_reader import RECORD_FIELDS, is_plain

cdef extern from *:
    """
    #include <structmember.h>

    /* Where instances of `type` have the slot that `descriptor` stands for; -1 if it is not a plain slot of theirs. */
    static Py_ssize_t kclient_slot(PyObject *type, PyObject *descriptor) {
    #if CYTHON_COMPILING_IN_CPYTHON
        PyMemberDef *member;
        if (!PyType_Check(type) || Py_TYPE(descriptor) != &PyMemberDescr_Type) return -1;
        member = ((PyMemberDescrObject *)descriptor)->d_member;
        if (member->type != T_OBJECT_EX || member->flags
            || !PyType_IsSubtype((PyTypeObject *)type, PyDescr_TYPE(descriptor))
            || ((PyTypeObject *)type)->tp_itemsize || ((PyTypeObject *)type)->tp_alloc != PyType_GenericAlloc
            || member->offset < (Py_ssize_t)sizeof(PyObject)
            || member->offset + (Py_ssize_t)sizeof(PyObject *) > ((PyTypeObject *)type)->tp_basicsize) return -1;
        return member->offset;
    #else
        (void)type; (void)descriptor;
        return -1;
    #endif
    }

    /* An instance with empty slots that the collector does not know yet. */
    static PyObject *kclient_bare(PyObject *type) {
        PyObject *made = PyType_GenericAlloc((PyTypeObject *)type, 0);
        if (made != NULL && PyType_IS_GC((PyTypeObject *)type)) PyObject_GC_UnTrack(made);
        return made;
    }

    static CYTHON_INLINE void kclient_fill(PyObject *record, Py_ssize_t slot, PyObject *value) {
        Py_INCREF(value);
        *(PyObject **)((char *)record + slot) = value;
    }

    static void kclient_watch(PyObject *record) {
        if (PyObject_IS_GC(record)) PyObject_GC_Track(record);
    }

    static void kclient_unwatch(PyObject *tuple) { PyObject_GC_UnTrack(tuple); }
    """
    Py_ssize_t kclient_slot(object kind, object descriptor)
    object kclient_bare(object kind)
    void kclient_fill(object record, Py_ssize_t slot, object value)
    void kclient_watch(object record)
    void kclient_unwatch(object made)
    const Py_buffer* kclient_view "PyMemoryView_GET_BUFFER"(object view)

include "columns.pxi"

crc32c_setup()

cdef enum:
    HEADER = 61
    SMALLEST_LENGTH = 14
    SMALLEST_RECORD = 7
    LARGEST_LENGTH = 2147483635
    FIELDS = 11


cdef struct Cursor:
    int64_t pos             # of the next batch in the slice
    int64_t next_offset
    int64_t epoch           # -1 if it is not known
    int64_t aborted_met
    bint ended
    # The batch being read.
    bint open
    const uint8_t* data
    int64_t at              # of the next record in the data
    int64_t end
    int64_t index
    int64_t count
    int64_t base_offset
    int64_t lowest          # offset deltas below this lead below the smallest offset there can be
    int64_t highest         # and above this, above the largest
    int64_t base_ts
    int64_t append_ts
    bint by_broker
    int timestamp_type
    int64_t batch_next
    int64_t inflated


@cython.final
@cython.no_gc
cdef class Messages:
    """The records of a batch of magic 0 or 1, of which `data` holds keys and values one after the other."""

    cdef Found* found
    cdef int64_t count
    cdef bytes data

    def __cinit__(self, list records):
        cdef int64_t at = 0
        cdef Found* found
        self.count = len(records)
        self.data = b"".join([part for record in records for part in record[3:] if part])
        self.found = <Found*>PyMem_RawMalloc(self.count * sizeof(Found) + 1)
        if not self.found:
            raise MemoryError
        for index, (offset, timestamp, _, key, value) in enumerate(records):
            found = self.found + <int64_t>index
            memset(found, 0, sizeof(Found))
            found.offset_delta = offset
            found.delta = timestamp
            found.key = at
            found.key_size = -1 if key is None else len(key)
            at += len(key or b"")
            found.value = at
            found.value_size = -1 if value is None else len(value)
            at += len(value or b"")
            found.end = at

    def __dealloc__(self):
        PyMem_RawFree(self.found)


@cython.final
@cython.no_gc_clear
cdef class RecordReader:
    """The records of the batches in `buf[start:start + n]`, in order, from `from_offset` on. Belongs to one thread.

    As the class of this name in `pure_reader.py`.
    """

    cdef readonly str topic
    cdef readonly object partition
    # The view is nobody else's, so that nobody can release it; it has no buffer exported either, which would keep the
    # collector from clearing it.
    cdef object view
    cdef const uint8_t* bytes
    cdef int64_t size
    cdef bint busy
    cdef bint check_crc
    cdef object decompress_max
    cdef object key_deserializer
    cdef object value_deserializer
    cdef object record_type
    cdef bint plain
    cdef Py_ssize_t slots[FIELDS]
    cdef object error
    cdef list aborted
    # Where it stands. All of it is put back after an interrupt.
    cdef Cursor here
    cdef frozenset aborted_producers
    cdef object source
    cdef object broken_off
    cdef Messages messages

    def __cinit__(
        self,
        buf,
        start,
        n,
        str topic not None,
        partition,
        int64_t from_offset,
        bint check_crc,
        record_type,
        key_deserializer=None,
        value_deserializer=None,
        decompress_max=64 * 1024 * 1024,
        aborted=None,
    ):
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
        self.record_type = record_type
        self.plain = isinstance(record_type, type) and is_plain(record_type)
        if self.plain:
            for index, name in enumerate(RECORD_FIELDS):
                self.slots[<int>index] = kclient_slot(record_type, getattr(record_type, name, None))
                if self.slots[<int>index] < 0:
                    self.plain = False
        self.aborted = None if aborted is None else sorted(aborted, key=lambda entry: entry[1])
        self.aborted_producers = frozenset()
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
        """Whether nothing is left to return or to raise, as far as it is known without reading on."""
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
        objects = (self.aborted_producers, self.source, self.broken_off, self.messages)
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
            self.aborted_producers, self.source, self.broken_off, self.messages = objects
            raise
        finally:
            self.busy = False
        return 0

    # From record to record.

    cdef inline int take(self, int64_t at, int64_t index, Found* found) except -1:
        """The record at `at`, number `index` of the batch."""
        cdef Fault fault
        if self.messages is not None:
            found[0] = self.messages.found[index]
            return 0
        fault = scan_record(self.here.data, at, self.here.end, found)
        if fault != SOUND or index == self.here.count - 1:
            self.check(fault, index, found)
        return 0

    cdef int check(self, Fault fault, int64_t index, const Found* found) except -1:
        """Raise what is wrong with a record, or behind the last."""
        if fault == SOUND:
            if self.broken_off is not None:
                raise self.broken_off
            if found.end != self.here.end:
                raise ValueError(f"{self.here.end - found.end} bytes follow the last record")
            return 0
        if self.broken_off is not None and (fault == BEYOND_END or fault == CUT_OFF):
            raise self.broken_off
        if fault == BAD_SIZE or fault == BEYOND_END:
            raise ValueError(f"record {index} has an impossible size")
        if fault == CUT_OFF:
            raise ValueError(f"record {index} is cut off")
        if fault == LONG_VARINT:
            raise ValueError("a varint has more than 5 bytes")
        if fault == LONG_VARLONG:
            raise ValueError("a varlong has more than 10 bytes")
        if fault == BAD_HEADER_COUNT:
            raise ValueError("a record has an impossible number of headers")
        if fault == BAD_HEADER_SIZE:
            raise ValueError("a header has an impossible size")
        raise ValueError(f"record {index} does not end where its size says")

    cdef inline bint is_wanted(self, const Found* found, int64_t wanted, int64_t* offset) except -1:
        """Whether the record is to be returned; sets its offset."""
        if found.offset_delta < self.here.lowest:
            return False
        if found.offset_delta > self.here.highest:
            raise ValueError(f"offset {<object>self.here.base_offset + found.offset_delta} is out of range")
        offset[0] = self.here.base_offset + found.offset_delta
        return offset[0] >= wanted

    cdef inline int64_t time_of(self, const Found* found):
        if self.here.by_broker:
            return self.here.append_ts
        # Unsigned, as times add up in Java.
        return <int64_t>(<uint64_t>self.here.base_ts + <uint64_t>found.delta)

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
        cdef object record, key, value
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
                if deserialize:
                    key, value = self.deserialized(offset, timestamp_ms, key, value, headers)
                    inert = is_inert(key) and is_inert(value)
                if self.plain:
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

    cdef int end_batch(self) except -1:
        self.here.open = False
        self.source = None
        self.broken_off = None
        self.messages = None
        return 0

    cdef tuple deserialized(self, int64_t offset, timestamp_ms, key, value, tuple headers):
        cdef object raw_key = key
        cdef object raw_value = value
        cdef str which = "key"
        try:
            if key is not None and self.key_deserializer is not None:
                key = self.key_deserializer(self.topic, headers, key)
            which = "value"
            if value is not None and self.value_deserializer is not None:
                value = self.value_deserializer(self.topic, headers, value)
        except Exception as cause:
            raise hooks.undecodable_error(
                self.topic, self.partition, offset, which, timestamp_ms, raw_key, raw_value, headers
            ) from cause
        return key, value

    # From batch to batch.

    cdef bint next_batch(self) except -1:
        """Go to the next batch with records for the application; False at the end."""
        cdef int64_t pos, length, left
        cdef int magic
        cdef bint found
        cdef const uint8_t* batch
        while True:
            pos = self.here.pos
            left = self.size - pos
            if left < 17:
                return False
            batch = self.bytes + pos
            length = <int32_t>get_32(batch + 8)
            magic = batch[16]
            if not SMALLEST_LENGTH <= length <= LARGEST_LENGTH:
                raise self.corrupt(f"a batch of {length} bytes cannot be")
            if magic > 2:
                raise self.corrupt(f"magic {magic} is not known")
            length += 12
            if left < length:
                return False
            found = self.open_batch(pos, length) if magic == 2 else self.open_legacy(pos, length)
            self.here.pos = pos + length
            if found:
                self.here.open = True
                return True
            if self.here.batch_next > self.here.next_offset:
                self.here.next_offset = self.here.batch_next

    cdef bint open_batch(self, int64_t pos, int64_t size) except -1:
        """Make ready to read a batch of magic 2; False if all of it is to be left out."""
        cdef const uint8_t* batch = self.bytes + pos
        cdef int64_t base_offset, base_ts, max_ts, producer_id, behind
        cdef int32_t epoch, last_delta, count
        cdef int attributes
        if size < HEADER:
            raise self.corrupt(f"a batch of {size} bytes has no room for its header")
        base_offset = <int64_t>get_64(batch)
        epoch = <int32_t>get_32(batch + 12)
        attributes = batch[22]
        last_delta = <int32_t>get_32(batch + 23)
        base_ts = <int64_t>get_64(batch + 27)
        max_ts = <int64_t>get_64(batch + 35)
        producer_id = <int64_t>get_64(batch + 43)
        count = <int32_t>get_32(batch + 57)
        if self.check_crc and crc32c_of(0, batch + 21, size - 21) != get_32(batch + 17):
            raise self.corrupt("the checksum of a batch does not match")
        behind = <int64_t>last_delta + 1
        if behind > 0 and base_offset > INT64_MAX - behind:
            raise self.corrupt(f"a batch that ends at offset {<object>base_offset + behind} cannot be")
        if behind < 0 and base_offset < INT64_MIN - behind:
            self.here.batch_next = INT64_MIN
        else:
            self.here.batch_next = base_offset + behind
        if self.aborted is not None and producer_id >= 0:
            if self.left_out(pos, size, attributes, count, producer_id, <object>base_offset + last_delta):
                return False
        if attributes & 0x20 or not count or base_offset < self.here.batch_next <= self.here.next_offset:
            return False
        self.here.epoch = epoch if epoch >= 0 else -1
        self.here.base_offset = base_offset
        self.here.lowest = INT64_MIN - base_offset if base_offset < 0 else INT64_MIN
        self.here.highest = INT64_MAX - 1 - base_offset if base_offset > 0 else INT64_MAX
        self.here.base_ts = base_ts
        self.here.timestamp_type = attributes >> 3 & 1
        self.here.by_broker = self.here.timestamp_type
        self.here.append_ts = max_ts
        self.decode(pos, size, attributes, count)
        return True

    cdef int decode(self, int64_t pos, int64_t size, int attributes, int64_t count) except -1:
        """Begin with the first record, of the decompressed data if need be."""
        cdef object data, error
        self.messages = None
        self.here.index = 0
        self.here.count = count
        if not attributes & 7:
            self.source = self.view
            self.broken_off = None
            self.here.data = self.bytes
            self.here.at = pos + HEADER
            self.here.end = pos + size
            self.here.inflated = 0
            return 0
        data, error = hooks.decompress(attributes & 7, self.view[pos + HEADER : pos + size], self.decompress_max)
        if type(data) is not bytes:
            data = bytes(data)
        self.source = data
        self.broken_off = error
        self.here.data = <const uint8_t*>PyBytes_AS_STRING(data)
        self.here.at = 0
        self.here.end = self.here.inflated = len(data)
        return 0

    cdef bint left_out(
        self, int64_t pos, int64_t size, int attributes, int64_t count, int64_t producer_id, last_offset
    ) except -1:
        """Keep track of aborted transactions; True for a batch that belongs to one."""
        cdef Found found
        while self.here.aborted_met < len(self.aborted) and self.aborted[self.here.aborted_met][1] <= last_offset:
            self.aborted_producers |= {self.aborted[self.here.aborted_met][0]}
            self.here.aborted_met += 1
        if producer_id not in self.aborted_producers:
            return False
        if not attributes & 0x20:
            return attributes & 0x10 != 0
        try:
            self.decode(pos, size, attributes, count)
            if count < 0:
                raise ValueError(f"the batch claims {count} records")
            if not count:
                return False
            self.take(self.here.at, 0, &found)
        except ValueError as error:
            raise self.invalid(f"{error}", self.here.next_offset) from error
        if found.key_size < 4:
            raise self.invalid("a control record has no type", self.here.next_offset)
        # The end of this transaction; a second marker for it finds nothing to end. 0 is an abort.
        if not self.here.data[found.key + 2] and not self.here.data[found.key + 3]:
            self.aborted_producers -= {producer_id}
        return False

    cdef bint open_legacy(self, int64_t pos, int64_t size) except -1:
        cdef const uint8_t* batch = self.bytes + pos
        # Offsets and timestamps are absolute here, and the type is that of each record.
        cdef list records = list(hooks.read_legacy(self.view[pos : pos + size], self.check_crc, self.decompress_max))
        highest = max([record[0] for record in records], default=-1)
        highest = max(highest, <int64_t>get_64(batch)) + 1
        if highest > INT64_MAX:
            raise self.corrupt(f"a batch that ends at offset {highest} cannot be")
        self.here.batch_next = <int64_t>get_64(batch) + 1
        if not records:
            return False
        self.messages = Messages(records)
        self.source = self.messages.data
        self.broken_off = None
        self.here.data = <const uint8_t*>PyBytes_AS_STRING(self.messages.data)
        self.here.at = 0
        self.here.end = self.here.inflated = len(self.messages.data)
        self.here.index = 0
        self.here.count = self.messages.count
        self.here.epoch = -1
        self.here.base_offset = 0
        self.here.lowest = INT64_MIN
        self.here.highest = INT64_MAX
        self.here.base_ts = 0
        self.here.by_broker = False
        self.here.timestamp_type = records[0][2] if batch[16] else -1
        return True

    cdef object corrupt(self, str what):
        return hooks.corrupt_error(f"{self.topic}-{self.partition}, offset {self.here.next_offset}: {what}")

    cdef object invalid(self, str what, int64_t offset):
        return hooks.invalid_error(f"{self.topic}-{self.partition}, offset {offset}: {what}")


cdef inline bint is_inert(value):
    """Whether the collector has nothing to find behind it."""
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
    header = tuple(made)
    kclient_unwatch(header)
    return header
