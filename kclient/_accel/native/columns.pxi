# The column buffers of reader.pyx, of which this is a part in a file of its own. The layouts are documented with the
# classes in shared/columns.py, which carry them for both bodies.

cdef int64_t LARGEST_COLUMN = 2147483647
cdef int64_t INLINE = 12


@cython.final
@cython.no_gc
cdef class Buffer:
    """Memory that grows while it is filled, and is read through the buffer protocol when that is done."""

    cdef uint8_t* at
    cdef Py_ssize_t size
    cdef Py_ssize_t room

    def __dealloc__(self):
        PyMem_RawFree(self.at)

    def __getbuffer__(self, Py_buffer* buffer, int flags):
        # Never NULL, which some readers take for no buffer at all.
        PyBuffer_FillInfo(buffer, self, <void*>self.at if self.at else <void*>b"", self.size, True, flags)

    cdef int reserve(self, Py_ssize_t room) except -1:
        """Have room for `room` bytes at least."""
        cdef void* moved
        if room <= self.room:
            return 0
        # By half again, so that filling it costs a constant for each byte.
        if room < self.room + self.room // 2:
            room = self.room + self.room // 2
        moved = PyMem_RawRealloc(self.at, room)
        if not moved:
            raise MemoryError
        self.at = <uint8_t*>moved
        self.room = room
        return 0

    cdef Buffer finish(self, Py_ssize_t size):
        """Nothing more than `size` bytes will be here; gives the rest back."""
        cdef void* moved
        self.size = size
        if size < self.room:
            moved = PyMem_RawRealloc(self.at, size if size else 1)
            if moved:
                self.at = <uint8_t*>moved
                self.room = size
        return self


@cython.final
@cython.no_gc
cdef class BinaryWriter:
    """A column of byte strings, copied or as views."""

    cdef Buffer ends        # int32 offsets, or views of 16 bytes
    cdef Buffer data        # of copied strings
    cdef Buffer validity    # None until there is a null
    cdef bint view
    cdef int64_t count
    cdef int64_t nulls
    cdef int64_t used
    cdef int64_t room

    def __cinit__(self, bint view):
        self.ends = Buffer()
        self.data = Buffer()
        self.view = view
        if not view:
            self.ends.reserve(4)
            (<int32_t*>self.ends.at)[0] = 0

    cdef int expect(self, int64_t strings, int64_t data_bytes) except -1:
        """Have room for so many more strings; and, if they are copied, for this much data."""
        cdef int64_t room = self.count + strings
        if room > self.room:
            if room < self.room + self.room // 2:
                room = self.room + self.room // 2
            if self.view:
                self.ends.reserve(16 * room)
            else:
                self.ends.reserve(4 * (room + 1))
            if self.validity is not None:
                self.validity.reserve(room // 8 + 1)
            self.room = room
        if not self.view:
            self.data.reserve(self.used + data_bytes)
        return 0

    cdef inline int copy(self, const uint8_t* at, int64_t size) except -1:
        """Add a string, for which `expect` made room, but perhaps not for its data; null if `size` is negative."""
        if size > 0:
            if self.used + size > self.data.room:
                self.data.reserve(self.used + size)
            memcpy(self.data.at + self.used, at, size)
            self.used += size
        self.mark(size < 0)
        self.count += 1
        (<int32_t*>self.ends.at)[self.count] = <int32_t>self.used
        return 0

    cdef inline int see(self, const uint8_t* at, int64_t size, int32_t buffer, int64_t offset) except -1:
        """Add a view of a string."""
        cdef uint8_t* view = self.ends.at + 16 * self.count
        cdef int32_t number = <int32_t>size if size > 0 else 0
        memcpy(view, &number, 4)
        if size <= INLINE:
            memset(view + 4, 0, 12)
            if size > 0:
                memcpy(view + 4, at, size)
        else:
            memcpy(view + 4, at, 4)
            memcpy(view + 8, &buffer, 4)
            number = <int32_t>offset
            memcpy(view + 12, &number, 4)
        self.mark(size < 0)
        self.count += 1
        return 0

    cdef inline int mark(self, bint null) except -1:
        cdef uint8_t bit = <uint8_t>(1 << (self.count & 7))
        if self.validity is None:
            if not null:
                return 0
            self.begin_validity()
        if null:
            self.validity.at[self.count >> 3] &= <uint8_t>~bit
            self.nulls += 1
        else:
            self.validity.at[self.count >> 3] |= bit
        return 0

    cdef int begin_validity(self) except -1:
        cdef Buffer validity = Buffer()
        validity.reserve(self.room // 8 + 1)
        memset(validity.at, 0xFF, self.room // 8 + 1)
        self.validity = validity
        return 0

    cdef object finish(self, tuple buffers):
        cdef int64_t size = (self.count + 7) // 8
        if not self.nulls:
            # The only one perhaps was in a record that was not taken.
            self.validity = None
        if self.validity is not None:
            if self.count & 7:
                self.validity.at[size - 1] &= <uint8_t>((1 << (self.count & 7)) - 1)
            self.validity.finish(size)
        if self.view:
            return BinaryColumn(self.nulls, self.validity, None, self.ends.finish(16 * self.count), buffers)
        self.ends.finish(4 * (self.count + 1))
        return BinaryColumn(self.nulls, self.validity, self.ends, None, (self.data.finish(self.used),))


@cython.final
@cython.no_gc
cdef class HeaderWriter:
    """The headers of all records; made when the first record has one."""

    cdef Buffer ends
    cdef BinaryWriter names
    cdef BinaryWriter values

    def __cinit__(self):
        self.ends = Buffer()
        self.names = BinaryWriter(False)
        self.values = BinaryWriter(False)


@cython.final
cdef class ColumnWriter:
    """Collects records and makes columns of them."""

    cdef bint view
    cdef int64_t column_bytes
    cdef int64_t count
    cdef int64_t room
    cdef int64_t inflated
    cdef Buffer offsets
    cdef Buffer timestamps
    cdef Buffer types
    cdef BinaryWriter keys
    cdef BinaryWriter values
    cdef HeaderWriter headers
    cdef list buffers
    # What views of the batch being read refer to: none yet if `base` is negative.
    cdef object source
    cdef int64_t source_size
    cdef int64_t base

    def __cinit__(self, bint view, int64_t column_bytes):
        self.view = view
        self.column_bytes = min(column_bytes, LARGEST_COLUMN)
        self.offsets = Buffer()
        self.timestamps = Buffer()
        self.types = Buffer()
        self.keys = BinaryWriter(view)
        self.values = BinaryWriter(view)
        self.buffers = []
        self.base = -1

    cdef int begin_batch(self, object source, int64_t source_size, int64_t records, int64_t data_bytes) except -1:
        """A batch begins or goes on whose bytes are those of `source`: at most so many records, about so many bytes."""
        cdef int64_t room = self.count + records
        if source is not self.source:
            self.source = source
            self.source_size = source_size
            self.base = -1
        if room > self.room:
            if room < self.room + self.room // 2:
                room = self.room + self.room // 2
            self.offsets.reserve(8 * room)
            self.timestamps.reserve(8 * room)
            self.types.reserve(room)
            self.room = room
        self.keys.expect(records, 0)
        self.values.expect(records, data_bytes)
        if self.headers is not None:
            self.headers.ends.reserve(4 * (self.room + 1))
        return 0

    cdef inline int add(
        self, const uint8_t* data, const Found* found, int64_t offset, int64_t timestamp, int timestamp_type
    ) except -1:
        """Take a record; 0 if it would make a column too long, unless it is the first."""
        if not self.view and self.count and (
            self.keys.used + (found.key_size if found.key_size > 0 else 0) > self.column_bytes
            or self.values.used + (found.value_size if found.value_size > 0 else 0) > self.column_bytes
        ):
            return 0
        if (found.header_count or self.headers is not None) and not self.add_headers(data, found):
            return 0
        (<int64_t*>self.offsets.at)[self.count] = offset
        (<int64_t*>self.timestamps.at)[self.count] = timestamp
        self.types.at[self.count] = <uint8_t>timestamp_type
        if self.view:
            self.see(self.keys, data, found.key, found.key_size)
            self.see(self.values, data, found.value, found.value_size)
        else:
            self.keys.copy(data + found.key, found.key_size)
            self.values.copy(data + found.value, found.value_size)
        self.count += 1
        return 1

    cdef inline int see(self, BinaryWriter column, const uint8_t* data, int64_t pos, int64_t size) except -1:
        if size > INLINE and (self.base < 0 or pos + size - self.base > LARGEST_COLUMN):
            self.begin_buffer(pos)
        column.see(data + pos, size, <int32_t>(len(self.buffers) - 1), pos - self.base)
        return 0

    cdef int begin_buffer(self, int64_t pos) except -1:
        """Have a buffer in which the string at `pos` lies; only what is referred to is kept alive."""
        self.base = 0 if self.source_size <= LARGEST_COLUMN else pos
        self.buffers.append(memoryview(self.source)[self.base : self.base + LARGEST_COLUMN])
        return 0

    cdef bint add_headers(self, const uint8_t* data, const Found* found) except -1:
        """The headers of the next record; False, with nothing changed, where `add` says so."""
        cdef HeaderWriter headers = self.headers
        cdef BinaryWriter names
        cdef BinaryWriter values
        cdef int64_t before[5]
        cdef int64_t pos = found.headers
        cdef int64_t left = found.header_count
        cdef int64_t longest
        cdef uint32_t raw = 0
        if headers is None:
            headers = HeaderWriter()
            headers.ends.reserve(4 * (self.room + 1))
            memset(headers.ends.at, 0, 4 * (self.count + 1))
            self.headers = headers
        names = headers.names
        values = headers.values
        before[:] = [names.count, names.used, values.count, values.used, values.nulls]
        names.expect(left, 0)
        values.expect(left, 0)
        while left > 0:
            left -= 1
            # scan_record has found these to be sound.
            take_varint(data, &pos, found.end, &raw)
            self.add_name(names, data + pos, raw >> 1)
            pos += raw >> 1
            take_varint(data, &pos, found.end, &raw)
            values.copy(data + pos, -1 if raw & 1 else <int64_t>(raw >> 1))
            if not raw & 1:
                pos += raw >> 1
            if left and not left & (HEADERS_FOR_A_TURN - 1):
                give_turn()
        longest = max(names.used, values.used)
        if names.count > LARGEST_COLUMN:
            longest = names.count
        if longest > self.column_bytes:
            if self.count:
                names.count, names.used, values.count, values.used, values.nulls = before
                return False
            if longest > LARGEST_COLUMN:
                raise ValueError("the headers of a record are too long for a column")
        (<int32_t*>headers.ends.at)[self.count + 1] = <int32_t>names.count
        return True

    cdef int add_name(self, BinaryWriter names, const uint8_t* at, int64_t size) except -1:
        cdef int64_t index
        cdef uint8_t high = 0
        cdef bytes mended
        for index in range(size):
            high |= at[index]
        if high < 0x80:
            names.copy(at, size)
            return 0
        mended = PyUnicode_DecodeUTF8(<const char*>at, size, "replace").encode()
        names.copy(<const uint8_t*>PyBytes_AS_STRING(mended), len(mended))
        return 0

    cdef object build(self):
        """The columns; None without records."""
        cdef tuple buffers
        cdef HeaderWriter headers = self.headers
        if not self.count:
            return None
        buffers = tuple(self.buffers)
        return Columns(
            self.count,
            self.offsets.finish(8 * self.count),
            self.timestamps.finish(8 * self.count),
            self.types.finish(self.count),
            self.keys.finish(buffers),
            self.values.finish(buffers),
            # A writer is made for a record that perhaps was not taken in the end.
            None
            if headers is None or not headers.names.count
            else HeaderColumns(
                headers.ends.finish(4 * (self.count + 1)), headers.names.finish(()), headers.values.finish(())
            ),
        )
