# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, auto_pickle=False
"""The native body: a batch under construction, its futures, and the two hashes.

What it does is said by the pure body; `BatchResult` is shared with it.

There is no lock: the interpreter lock (GIL) makes every method atomic as long as it runs no Python code between its
look at the batch and its last write, and the comments here say where that matters. Nothing declares this module safe
without the GIL, so a free-threaded interpreter switches it on again when it imports it. To be safe there, append,
close and their like would need a lock in the builder, and the allocation of futures one of its own.

Nor is the GIL let go of for checksums and copies: they run at 10 to 30 GB/s, while taking it back from a busy thread
costs up to 5 ms.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport (
    PyBytes_AS_STRING, PyBytes_Check, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE,
)
from cpython.mem cimport PyMem_RawFree, PyMem_RawMalloc, PyMem_RawRealloc
from cpython.dict cimport PyDict_GetItem
from cpython.exc cimport PyErr_Clear
from cpython.list cimport PyList_CheckExact
from cpython.long cimport PyLong_CheckExact
from cpython.ref cimport PyObject
from cpython.tuple cimport PyTuple_CheckExact, PyTuple_GET_ITEM, PyTuple_GET_SIZE
from cpython.unicode cimport PyUnicode_AsUTF8String, PyUnicode_CheckExact
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t
from libc.string cimport memcpy

import time

from kclient._accel.reference.fast_construction import has_plain_slots
from kclient._accel.shared.bridges import as_concurrent, text_of, wait_in_loop
from kclient._accel.shared.closed_batch import decompressed, records_of, spread
from kclient._accel.shared.forks import in_forked_children
from kclient._accel.shared.hooks import hooks
from kclient._accel.shared.batch_input import (
    MAX_RECORD_BYTES,
    MAX_TIMESTAMP_MS,
    are_plain,
    check_content,
    check_headers,
    check_many,
    check_timestamp,
    checked_column,
    checked_timestamps,
    outside,
    too_large,
    unfit,
)

from kclient._accel.native.wire cimport (
    crc32c_of, crc32c_setup, murmur2_of, put_16, put_32, put_64, put_varint, varint_size,
)

cdef extern from "Python.h":
    PyObject** PySequence_Fast_ITEMS(object sequence)
    Py_ssize_t PySequence_Fast_GET_SIZE(object sequence)
    Py_buffer* PyMemoryView_GET_BUFFER(object view)
    long long PyLong_AsLongLongAndOverflow(object number, int* overflow) except? -1
    const char* PyUnicode_AsUTF8AndSize(object text, Py_ssize_t* size)

cdef enum:
    HEADER_BYTES = 61
    COVERED_AT = 21  # from the attributes on the checksum holds
    CODEC_BITS = 7
    # Batches are charged to buffer.memory by their limit, and most fill it. Up to this size it is taken at once.
    FIRST_CAPACITY = 16384

cdef int64_t INT32_LARGEST = 2**31 - 1
cdef int64_t INT64_LARGEST = MAX_TIMESTAMP_MS
assert MAX_RECORD_BYTES == INT32_LARGEST

crc32c_setup()

include "gil.pxi"


cdef inline int64_t timestamp_of(object timestamp_ms) except? -1:
    """The timestamp that a caller gave, None for now. Also the place to give way: before any look at a batch."""
    cdef int64_t us
    cdef int overflow = 0
    cdef int64_t value
    if timestamp_ms is None:
        us = now_us()
        if kclient_load(&io_waiting) > 0:
            give_way(us)
        return us // 1000
    maybe_yield_gil()
    value = PyLong_AsLongLongAndOverflow(timestamp_ms, &overflow)
    if overflow or value < -1:
        check_timestamp(timestamp_ms, 0)
    return value


include "future.pxi"
include "deliveries.pxi"
include "content.pxi"
include "hashing.pxi"


@cython.final
cdef class Store:
    """The bytes of a batch, the header first. Whoever has a view keeps them alive, and nobody writes meanwhile."""

    cdef uint8_t* data
    cdef Py_ssize_t size, capacity, views

    def __cinit__(self, Py_ssize_t capacity):
        self.data = <uint8_t*>PyMem_RawMalloc(<size_t>capacity)
        if self.data == NULL:
            raise MemoryError
        self.capacity = capacity
        self.size = HEADER_BYTES

    def __dealloc__(self):
        PyMem_RawFree(self.data)

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.data, self.size, 1, flags)
        self.views += 1

    def __releasebuffer__(self, Py_buffer* view):
        self.views -= 1


cdef Store store_of(const void* body, Py_ssize_t size):
    cdef Store store = Store.__new__(Store, HEADER_BYTES + size)
    memcpy(store.data + HEADER_BYTES, body, <size_t>size)
    store.size += size
    return store


@cython.final
@cython.no_gc_clear  # whose store would then be gone under its methods; cycles through it are broken elsewhere
cdef class BatchBuilder:
    """The records of one partition that will travel together."""

    cdef readonly object topic, result
    cdef readonly int partition
    cdef readonly Py_ssize_t limit
    cdef readonly int64_t created_ms
    cdef readonly int32_t count
    cdef readonly bint closed
    cdef Store store
    cdef bint complete
    cdef Py_ssize_t whole_size  # uncompressed, of a batch that has only the compressed form of its records; or 0
    cdef object attributes
    cdef list deliveries  # the result's, until the batch is closed
    cdef int64_t base_ts, max_ts

    def __cinit__(self, topic, int partition, Py_ssize_t limit, result, int64_t created_ms):
        self.topic = topic
        self.partition = partition
        self.limit = limit
        self.result = result
        self.deliveries = result._deliveries
        self.created_ms = created_ms
        self.store = Store.__new__(Store, max(min(limit, FIRST_CAPACITY), HEADER_BYTES))
        self.attributes = 0
        self.base_ts = self.max_ts = -1

    cdef int64_t room_for(
        self, int64_t timestamp_ms, Content key, Content value, Py_ssize_t headers_size
    ) except -1:
        """Make room for a record of the open batch; returns its size without the length in front, 0 if it does not fit.

        Only for an error does it run Python code.
        """
        cdef Store store = self.store
        cdef int64_t base = self.base_ts if self.count else timestamp_ms
        cdef int64_t body, total, capacity
        cdef void* moved
        # With a base of -1 the largest one has a delta of 65 bits.
        if timestamp_ms < -1 or (base < 0 and timestamp_ms > base + INT64_LARGEST):
            check_timestamp(timestamp_ms, base)
        # 64 bits hold the sum of any sizes, also where a Py_ssize_t has 32.
        body = (
            1 + varint_size(timestamp_ms - base) + varint_size(self.count)
            + content_size(key) + content_size(value) + headers_size
        )
        if body > INT32_LARGEST - 5:
            raise too_large()
        total = store.size + varint_size(body) + body
        if self.count and total > self.limit or self.count == INT32_LARGEST:
            return 0
        if total > store.capacity:
            capacity = max(total, min(2 * <int64_t>store.capacity, <int64_t>self.limit))
            moved = PyMem_RawRealloc(store.data, <size_t>capacity)
            if moved == NULL:
                raise MemoryError
            store.data = <uint8_t*>moved
            store.capacity = <Py_ssize_t>capacity
        return body

    cdef uint8_t* put(self, int64_t body, int64_t timestamp_ms, Content key, Content value) noexcept:
        """Write the record that room was made for, up to its headers; returns where these go."""
        cdef uint8_t* to = self.store.data + self.store.size
        if not self.count:
            self.base_ts = self.max_ts = timestamp_ms
        elif timestamp_ms > self.max_ts:
            self.max_ts = timestamp_ms
        to += put_varint(to, body)
        to[0] = 0
        to += 1 + put_varint(to + 1, timestamp_ms - self.base_ts)
        to += put_varint(to, self.count)
        self.count += 1
        return put_content(put_content(to, key), value)

    cdef inline void end(self, uint8_t* to) noexcept:
        """End a record without headers."""
        to[0] = 0
        self.store.size = to + 1 - self.store.data

    cdef void put_headers(self, uint8_t* to, const HeaderList* headers) noexcept:
        """Write the headers, which end the record."""
        cdef Py_ssize_t i
        if headers.encoded.at != NULL:
            memcpy(to, headers.encoded.at, <size_t>headers.encoded.size)
            to += headers.encoded.size
        else:
            to += put_varint(to, headers.count)
            for i in range(2 * headers.count):
                to = put_content(to, headers.contents[i])
        self.store.size = to - self.store.data

    cdef Future add(
        self, int64_t when, Content key, Content value, const HeaderList* headers, object callback
    ):
        """Add a record whose contents were looked at; None if it does not fit or the batch is closed."""
        cdef Future future = Future.__new__(Future)
        cdef int64_t body
        cdef bint late = False
        entry = None
        if callback is not None:
            entry = (future, callback, True)
            kclient_unwatch(entry)  # as a future is not known to the cyclic collector
        # From here on no Python code runs, unless it ends in an error.
        if self.closed:
            return None
        body = self.room_for(when, key, value, headers.size)
        if not body:
            return None
        future._result = self.result
        future._timestamp_ms = when
        future._index = self.count
        future._key_size = <int32_t>key.size
        future._value_size = <int32_t>value.size
        if entry is not None:
            # As in `BatchResult.add_callback`, but in the same step as the record: the batch cannot be closed, sent and
            # complete before the callback is known. A result that is complete or was replaced has another list.
            late = self.result._deliveries is not self.deliveries
            if not late:
                self.deliveries.append(entry)
        self.put_headers(self.put(body, when, key, value), headers)
        if late:
            self.result.add_callback(future, callback, True)
        return future

    @property
    def entered(self):
        return False  # nobody waits for a step here, as the GIL makes it one

    def append(self, timestamp_ms, key, value, headers, callback=None):
        cdef HeaderList header_list
        cdef bytes encoded
        cdef int64_t when = timestamp_of(timestamp_ms)
        if self.closed:
            return None
        # Whatever can run Python code, and be interrupted or come back here, comes before the look at the batch.
        if key is not None and not PyBytes_Check(key):
            check_content(key, "key")
        if value is not None and not PyBytes_Check(value):
            check_content(value, "value")
        no_headers(&header_list)
        if headers:
            encoded = encode_into(&header_list, headers)
        return self.add(when, content_of(key), content_of(value), &header_list, callback)

    def append_many(self, timestamp_ms, keys, values, Py_ssize_t start, Py_ssize_t stop):
        cdef PyObject** key_items = NULL
        cdef PyObject** value_items
        cdef Content key, value
        cdef Py_ssize_t i
        cdef int64_t when = timestamp_of(timestamp_ms)
        cdef int32_t first, taken = 0
        check_many(keys, values, start, stop)
        # As they are now: another thread may have cut them since, or a subclass say what it likes.
        if PySequence_Fast_GET_SIZE(values) < stop or (keys is not None and PySequence_Fast_GET_SIZE(keys) < stop):
            raise ValueError(f"records {start} to {stop} were to be taken, and there are fewer")
        first = self.count
        if self.closed:
            return first, 0
        # No Python code runs in the loop, so neither the batch nor the lists change. How long it keeps the GIL is
        # bounded by the batch's limit.
        value_items = PySequence_Fast_ITEMS(values)
        key = content_of(None)
        if keys is not None:
            key_items = PySequence_Fast_ITEMS(keys)
        for i in range(start, stop):
            if key_items != NULL:
                if not is_content(key_items[i]):
                    if i == start:
                        check_content(<object>key_items[i], f"keys[{i}]")
                    break
                key = content_of(<object>key_items[i])
            if not is_content(value_items[i]):
                if i == start:
                    check_content(<object>value_items[i], f"values[{i}]")
                break
            value = content_of(<object>value_items[i])
            if not self.take(when, key, value, i == start):
                break
            taken += 1
        return first, taken

    cdef bint take(self, int64_t when, Content key, Content value, bint first) except -1:
        """Add a record without headers; raise what is wrong with it only if it is the first one."""
        cdef int64_t body
        try:
            body = self.room_for(when, key, value, 1)
        except (ValueError, MemoryError):
            if first:
                raise
            return False
        if body:
            self.end(self.put(body, when, key, value))
        return body != 0

    def append_columns(self, timestamps, keys, values, Py_ssize_t start, Py_ssize_t stop):
        cdef Columnar key_column, value_column
        cdef Content key, value
        cdef const char* times = NULL
        cdef int64_t when = timestamp_of(None)
        cdef Py_ssize_t row
        cdef int32_t first, taken = 0
        if timestamps is not None:
            timestamps = checked_timestamps(timestamps, start, stop)
            times = <const char*>PyMemoryView_GET_BUFFER(timestamps).buf
        if keys is not None:
            keys = checked_column(keys, "keys", start, stop)
        if values is not None:
            values = checked_column(values, "values", start, stop)
        if timestamps is None and keys is None and values is None and not 0 <= start <= stop:
            raise ValueError(f"records {start} to {stop} were to be taken")
        key_column = columnar(keys)
        value_column = columnar(values)
        first = self.count
        if self.closed:
            return first, 0
        for row in range(start, stop):
            if times != NULL:
                memcpy(&when, times + 8 * row, 8)
            if not column_content(&key_column, row, &key):
                if row == start:
                    raise outside("keys", row)
                break
            if not column_content(&value_column, row, &value):
                if row == start:
                    raise outside("values", row)
                break
            if not self.take(when, key, value, row == start):
                break
            taken += 1
        return first, taken

    @property
    def size(self):
        return self.store.size

    @property
    def uncompressed_size(self):
        return self.whole_size or self.store.size

    @property
    def max_timestamp_ms(self):
        return self.max_ts

    def grow_limit(self, Py_ssize_t limit):
        self.limit = max(limit, self.limit)

    def freeze(self):
        self.closed = True
        self.deliveries = None
        body = memoryview(self.store)[HEADER_BYTES:]
        if not self.whole_size:
            return body
        return decompressed(self, self.attributes & CODEC_BITS, body, self.whole_size - HEADER_BYTES)

    def close(self, producer_id, producer_epoch, base_sequence, attributes, compressed=None):
        cdef Store store = self.store
        cdef Py_buffer view
        if not self.count:
            raise ValueError("a batch without records cannot be closed")
        if self.complete or store.size == HEADER_BYTES:
            raise ValueError("the batch is closed already")
        self.closed = True
        self.deliveries = None
        self.attributes = attributes
        if compressed is not None:
            PyObject_GetBuffer(compressed, &view, PyBUF_SIMPLE)
            try:
                store = store_of(view.buf, view.len)
            finally:
                PyBuffer_Release(&view)
        self.write_header(store, producer_id, producer_epoch, base_sequence)
        if compressed is not None:
            self.whole_size = self.store.size
            self.store = store
        self.complete = True

    def restamp(self, producer_id, producer_epoch, base_sequence):
        cdef Store store = self.store
        if not self.complete:
            raise ValueError("only a closed batch can be restamped")
        if store.views:
            store = store_of(store.data + HEADER_BYTES, store.size - HEADER_BYTES)
        self.write_header(store, producer_id, producer_epoch, base_sequence)
        self.store = store

    cdef int write_header(self, Store store, producer_id, producer_epoch, base_sequence) except -1:
        cdef uint8_t* to = store.data
        cdef int64_t the_id = 0, epoch = 0, sequence = 0, attributes = 0
        try:
            the_id = producer_id
            epoch = producer_epoch
            sequence = base_sequence
            attributes = self.attributes
            fits = -32768 <= epoch <= 32767 and -32768 <= attributes <= 32767
            fits = fits and -INT32_LARGEST - 1 <= sequence <= INT32_LARGEST
        except (OverflowError, TypeError):
            fits = False
        if not fits:
            raise unfit(self.attributes, producer_id, producer_epoch, base_sequence)
        put_64(to, 0)
        put_32(to + 8, <uint32_t>(store.size - 12))
        put_32(to + 12, <uint32_t>-1)
        to[16] = 2
        put_16(to + 21, <int>attributes)
        put_32(to + 23, <uint32_t>(self.count - 1))
        put_64(to + 27, self.base_ts)
        put_64(to + 35, self.max_ts)
        put_64(to + 43, the_id)
        put_16(to + 51, <int>epoch)
        put_32(to + 53, <uint32_t>sequence)
        put_32(to + 57, <uint32_t>self.count)
        put_32(to + 17, crc32c_of(0, to + COVERED_AT, <size_t>(store.size - COVERED_AT)))
        return 0

    def views(self):
        if not self.complete:
            raise ValueError("only a closed batch can be sent")
        return [memoryview(self.store)]

    def records(self):
        return records_of(self, self.base_ts, Future)

    def split(self, Py_ssize_t limit, new_result):
        return spread(self, limit, new_result, BatchBuilder)

    def release(self):
        self.closed = True
        self.deliveries = None
        self.store = Store.__new__(Store, HEADER_BYTES)
        self.whole_size = 0
        self.complete = False


include "open_batches.pxi"
