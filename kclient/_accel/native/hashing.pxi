# Part of batch.pyx: checksums and hashes, and the partitions of keys.

def crc32c(buf, crc=0):
    """CRC-32C (Castagnoli) of `buf`, unsigned; `crc` is that of the bytes before it."""
    cdef Py_buffer view
    cdef uint32_t before = crc
    PyObject_GetBuffer(buf, &view, PyBUF_SIMPLE)
    before = crc32c_of(before, view.buf, <size_t>view.len)
    PyBuffer_Release(&view)
    return before


def murmur2(data):
    """The 32-bit murmur2 hash by which Kafka's default partitioner places keys, as Java's signed int."""
    cdef Py_buffer view
    cdef int32_t found
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    found = murmur2_of(<const uint8_t*>view.buf, view.len)
    PyBuffer_Release(&view)
    return found


def key_partitions(keys, Py_ssize_t start, Py_ssize_t stop, partition_count):
    """The partitions of the keys `start` to `stop` of a column, as int32; -1 for a key that is null."""
    cdef Columnar column
    cdef Content key
    cdef Py_ssize_t row
    cdef int32_t* found
    cdef int32_t partitions
    if partition_count < 1:
        raise ValueError(f"keys cannot be spread over {partition_count} partitions")
    partitions = min(partition_count, INT32_LARGEST)
    keys = checked_column(keys, "keys", start, stop)
    column = columnar(keys)
    memory = memoryview(bytearray(4 * (stop - start))).cast("i")
    found = <int32_t*>PyMemoryView_GET_BUFFER(memory).buf
    for row in range(start, stop):
        if not column_content(&column, row, &key):
            raise outside("keys", row)
        if key.size < 0:
            found[row - start] = -1
        else:
            found[row - start] = (murmur2_of(<const uint8_t*>key.at, key.size) & INT32_LARGEST) % partitions
    return memory
