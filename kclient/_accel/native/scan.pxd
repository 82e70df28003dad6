# One record of a batch of magic 2, taken apart where it lies. Everything is inline: there is no scan module.
#
# The steps and their order are those of decode_records in shared/records.py, so that both bodies find the same fault in
# the same place. Positions are numbers and not pointers: those that sizes lead to may lie beyond the end.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef enum Fault:
    SOUND = 0
    BAD_SIZE        # the record's size is negative
    BEYOND_END      # it is more than there is
    CUT_OFF         # the data ends within the record
    LONG_VARINT
    LONG_VARLONG
    BAD_HEADER_COUNT
    BAD_HEADER_SIZE
    BAD_END         # the fields end elsewhere than the size says


cdef struct Found:
    int64_t delta           # of the timestamp
    int64_t offset_delta
    int64_t key             # position
    int64_t key_size        # -1 for null
    int64_t value
    int64_t value_size
    int64_t headers         # position behind their number
    int64_t header_count
    int64_t end


cdef inline Fault take_bits(
    const uint8_t* data, int64_t* at, int64_t end, int last_shift, Fault too_long, uint64_t* found
) noexcept nogil:
    """Unsigned bits in groups of seven, the last of which is shifted by `last_shift`; `at` moves behind them."""
    cdef int64_t pos = at[0]
    cdef uint64_t raw
    cdef uint8_t byte
    cdef int shift = 7
    if pos >= end:
        return CUT_OFF
    byte = data[pos]
    pos += 1
    raw = byte
    if byte >= 0x80:
        raw &= 0x7F
        while True:
            if pos >= end:
                return CUT_OFF
            byte = data[pos]
            pos += 1
            raw |= <uint64_t>(byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
            if shift > last_shift:
                return too_long
    at[0] = pos
    found[0] = raw
    return SOUND


cdef inline Fault take_varint(const uint8_t* data, int64_t* at, int64_t end, uint32_t* found) noexcept nogil:
    """An unsigned varint of 32 bits; what is beyond them is cut off."""
    cdef uint64_t raw
    cdef Fault fault
    if at[0] < end and data[at[0]] < 0x80:  # as nearly all are
        found[0] = data[at[0]]
        at[0] += 1
        return SOUND
    fault = take_bits(data, at, end, 28, LONG_VARINT, &raw)
    if fault == SOUND:
        found[0] = <uint32_t>raw
    return fault


cdef inline Fault take_varlong(const uint8_t* data, int64_t* at, int64_t end, uint64_t* found) noexcept nogil:
    """The same of 64 bits."""
    return take_bits(data, at, end, 63, LONG_VARLONG, found)


cdef inline Fault skip_headers(const uint8_t* data, int64_t* at, int64_t end, int64_t stop, Found* found) noexcept nogil:
    """Check the headers and move `at` behind them."""
    cdef uint32_t raw
    cdef int64_t pos = at[0]
    cdef int64_t left
    cdef Fault fault = take_varint(data, &pos, end, &raw)
    if fault != SOUND:
        return fault
    left = raw >> 1
    if raw & 1 or left > stop - pos:
        return BAD_HEADER_COUNT
    found.headers = pos
    found.header_count = left
    while left > 0:
        left -= 1
        fault = take_varint(data, &pos, end, &raw)
        if fault != SOUND:
            return fault
        pos += raw >> 1
        if raw & 1 or pos > stop:
            return BAD_HEADER_SIZE
        fault = take_varint(data, &pos, end, &raw)
        if fault != SOUND:
            return fault
        if not raw & 1:
            pos += raw >> 1
    at[0] = pos
    return SOUND


cdef inline Fault scan_record(const uint8_t* data, int64_t pos, int64_t end, Found* found) noexcept nogil:
    """The record at `pos` in data that ends at `end`."""
    cdef uint32_t raw
    cdef uint64_t wide
    cdef int64_t stop
    cdef Fault fault = take_varint(data, &pos, end, &raw)
    if fault != SOUND:
        return fault
    if raw & 1:
        return BAD_SIZE
    stop = pos + (raw >> 1)
    if stop > end:
        return BEYOND_END
    pos += 1  # attributes: none are defined
    fault = take_varlong(data, &pos, end, &wide)
    if fault != SOUND:
        return fault
    found.delta = <int64_t>(wide >> 1) ^ -<int64_t>(wide & 1)
    fault = take_varint(data, &pos, end, &raw)
    if fault != SOUND:
        return fault
    found.offset_delta = <int32_t>(raw >> 1) ^ -<int32_t>(raw & 1)
    fault = take_varint(data, &pos, end, &raw)
    if fault != SOUND:
        return fault
    found.key = pos
    if raw & 1:
        found.key_size = -1
    else:
        found.key_size = raw >> 1
        pos += raw >> 1
    fault = take_varint(data, &pos, end, &raw)
    if fault != SOUND:
        return fault
    found.value = pos
    if raw & 1:
        found.value_size = -1
    else:
        found.value_size = raw >> 1
        pos += raw >> 1
    if pos >= end:
        return CUT_OFF
    if data[pos]:
        fault = skip_headers(data, &pos, end, stop, found)
        if fault != SOUND:
            return fault
    else:
        pos += 1
        found.headers = pos
        found.header_count = 0
    if pos != stop:
        return BAD_END
    found.end = pos
    return SOUND
