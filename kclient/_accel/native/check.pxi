# Part of reader.pyx: the records of a batch that is about to be appended, looked at where they lie.

cdef enum:
    RECORDS_FOR_A_TURN = 65536  # of which only that is looked at


def largest_timestamp(records, int64_t count, int64_t base_ms):
    cdef Py_buffer view
    cdef Found found
    cdef Fault fault
    cdef int64_t index = 0
    cdef int64_t at = 0
    cdef int64_t timestamp
    cdef int64_t largest = NO_TIMESTAMP
    PyObject_GetBuffer(records, &view, PyBUF_SIMPLE)
    try:
        while index < count:
            fault = scan_record(<const uint8_t*>view.buf, at, view.len, &found)
            if fault != SOUND:
                raise fault_of(fault, index)
            at = found.end
            index += 1
            # Unsigned, as times add up in Java.
            timestamp = <int64_t>(<uint64_t>base_ms + <uint64_t>found.delta)
            if timestamp > largest:
                largest = timestamp
            if not index % RECORDS_FOR_A_TURN:
                give_turn()
        if at != view.len:
            raise ValueError(f"{view.len - at} bytes follow the last record")
    finally:
        PyBuffer_Release(&view)
    return largest
