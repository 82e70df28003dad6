# The way from batch to batch and from record to record of reader.pyx, of which this is a part in a file of its own.

cdef enum:
    HEADER = 61
    SMALLEST_LENGTH = 14
    SMALLEST_RECORD = 7
    LARGEST_LENGTH = 2147483635
    # Records, or pieces of 4 KiB, after which other threads have their turn: about a millisecond.
    WORK_FOR_A_TURN = 4096
    HEADERS_FOR_A_TURN = 1024  # a power of two


cdef struct Cursor:
    int64_t pos             # of the next batch in the slice
    int64_t next_offset
    int64_t epoch           # -1 if it is not known
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
    int64_t batch_epoch
    int64_t inflated


cdef class Walk


@cython.final
@cython.no_gc
cdef class Messages:
    """The records of a batch of magic 0 or 1, of which `data` holds keys and values one after the other."""

    cdef Found* found
    cdef int64_t count
    cdef bytes data

    def __cinit__(self, list records, Walk walk):
        cdef int64_t at = 0, index = 0
        cdef Found* found
        cdef bytearray data = bytearray()
        self.count = len(records)
        self.found = <Found*>PyMem_RawMalloc(self.count * sizeof(Found) + 1)
        if not self.found:
            raise MemoryError
        for offset, timestamp, _, key, value in records:
            found = self.found + index
            index += 1
            memset(found, 0, sizeof(Found))
            found.offset_delta = offset
            found.delta = timestamp
            found.key = at
            found.key_size = -1 if key is None else len(key)
            data += key or b""
            found.value = len(data)
            found.value_size = -1 if value is None else len(value)
            data += value or b""
            walk.worked(len(data) - at)
            found.end = at = len(data)
        self.data = bytes(data)

    def __dealloc__(self):
        PyMem_RawFree(self.found)


@cython.no_gc_clear
cdef class Walk:
    """Stands somewhere in the batches of a slice. What of them is left out is as the pure reader's docstrings say."""

    cdef readonly object topic
    cdef readonly object partition
    # The view is nobody else's, so that nobody can release it; it has no buffer exported either, which would keep the
    # collector from clearing it.
    cdef object view
    cdef const uint8_t* bytes
    cdef int64_t size
    cdef bint check_crc
    cdef object decompress_max
    cdef object aborted     # AbortedTransactions, None where there are none
    # Where it stands. All of it is put back after an interrupt.
    cdef Cursor here
    cdef object source
    cdef object broken_off
    cdef Messages messages
    cdef int64_t work       # that is left until other threads have their turn

    @cython.final
    cdef inline int worked(self, int64_t size) except -1:
        """A record or batch of `size` bytes was looked at. Like any Python code, this may be interrupted."""
        self.work -= 1 + (size >> 12)
        if self.work <= 0:
            self.work = WORK_FOR_A_TURN
            give_turn()
        return 0

    # From batch to batch.

    @cython.final
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
            self.worked(length)
            found = self.open_batch(pos, length) if magic == 2 else self.open_legacy(pos, length)
            self.here.pos = pos + length
            if found:
                self.here.open = True
                self.here.epoch = self.here.batch_epoch
                return True
            # A batch that is passed counts as read, or the position behind it would have an epoch that ends before it.
            if self.here.batch_next > self.here.next_offset:
                self.here.next_offset = self.here.batch_next
                self.here.epoch = self.here.batch_epoch

    @cython.final
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
        self.here.batch_epoch = epoch if epoch >= 0 else -1
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
        self.here.base_offset = base_offset
        self.here.lowest = INT64_MIN - base_offset if base_offset < 0 else INT64_MIN
        self.here.highest = INT64_MAX - 1 - base_offset if base_offset > 0 else INT64_MAX
        self.here.base_ts = base_ts
        self.here.timestamp_type = attributes >> 3 & 1
        self.here.by_broker = self.here.timestamp_type
        self.here.append_ts = max_ts
        self.decode(pos, size, attributes, count)
        return True

    @cython.final
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

    @cython.final
    cdef bint left_out(
        self, int64_t pos, int64_t size, int attributes, int64_t count, int64_t producer_id, last_offset
    ) except -1:
        """Keep track of aborted transactions; True for a batch that belongs to one."""
        cdef Found found
        if not self.aborted.has(producer_id, last_offset):
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
            self.aborted.end(producer_id, last_offset)
        return False

    @cython.final
    cdef bint open_legacy(self, int64_t pos, int64_t size) except -1:
        cdef const uint8_t* batch = self.bytes + pos
        # Offsets and timestamps are absolute here, and the type is that of each record.
        cdef list records = list(hooks.read_legacy(self.view[pos : pos + size], self.check_crc, self.decompress_max))
        cdef object highest = max(-1, <int64_t>get_64(batch))
        for record in records:
            self.worked(0)
            if record[0] > highest:
                highest = record[0]
        if highest >= INT64_MAX:
            raise self.corrupt(f"a batch that ends at offset {highest + 1} cannot be")
        self.here.batch_next = <int64_t>get_64(batch) + 1
        self.here.batch_epoch = -1
        if not records:
            return False
        self.messages = Messages(records, self)
        self.source = self.messages.data
        self.broken_off = None
        self.here.data = <const uint8_t*>PyBytes_AS_STRING(self.messages.data)
        self.here.at = 0
        self.here.end = self.here.inflated = len(self.messages.data)
        self.here.index = 0
        self.here.count = self.messages.count
        self.here.base_offset = 0
        self.here.lowest = INT64_MIN
        self.here.highest = INT64_MAX
        self.here.base_ts = 0
        self.here.by_broker = False
        self.here.timestamp_type = records[0][2] if batch[16] else -1
        return True

    @cython.final
    cdef int end_batch(self) except -1:
        self.here.open = False
        self.source = None
        self.broken_off = None
        self.messages = None
        return 0

    # From record to record.

    @cython.final
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

    @cython.final
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
        raise fault_of(fault, index)

    @cython.final
    cdef inline bint is_wanted(self, const Found* found, int64_t wanted, int64_t* offset) except -1:
        """Return True if the record is to be returned; set its offset."""
        if found.offset_delta < self.here.lowest:
            return False
        if found.offset_delta > self.here.highest:
            raise ValueError(f"offset {<object>self.here.base_offset + found.offset_delta} is out of range")
        offset[0] = self.here.base_offset + found.offset_delta
        return offset[0] >= wanted

    @cython.final
    cdef inline int64_t time_of(self, const Found* found) noexcept:
        if self.here.by_broker:
            return self.here.append_ts
        # Unsigned, as times add up in Java.
        return <int64_t>(<uint64_t>self.here.base_ts + <uint64_t>found.delta)

    # What is wrong.

    @cython.final
    cdef object corrupt(self, str what):
        return hooks.corrupt_error(f"{self.topic}-{self.partition}, offset {self.here.next_offset}: {what}")

    @cython.final
    cdef object invalid(self, str what, int64_t offset):
        return hooks.invalid_error(f"{self.topic}-{self.partition}, offset {offset}: {what}")


cdef object fault_of(Fault fault, int64_t index):
    """The error of a record that is malformed."""
    if fault == BAD_SIZE or fault == BEYOND_END:
        return ValueError(f"record {index} has an impossible size")
    if fault == CUT_OFF:
        return ValueError(f"record {index} is cut off")
    if fault == LONG_VARINT:
        return ValueError("a varint has more than 5 bytes")
    if fault == LONG_VARLONG:
        return ValueError("a varlong has more than 10 bytes")
    if fault == BAD_HEADER_COUNT:
        return ValueError("a record has an impossible number of headers")
    if fault == BAD_HEADER_SIZE:
        return ValueError("a header has an impossible size")
    return ValueError(f"record {index} does not end where its size says")
