# Part of batch.pyx: where the next record of a topic goes.

cdef class OpenBatches:
    """The queues of one topic's partitions, each with its open batch."""

    cdef public bint ignores_keys
    cdef public Py_ssize_t partition_count
    cdef public dict queues
    cdef public object sticky_queue

    def __init__(self, bint ignores_keys):
        self.ignores_keys = ignores_keys
        self.partition_count = 0
        self.queues = {}
        self.sticky_queue = None

    def try_append(self, key, value, headers, timestamp_ms, partition, callback):
        cdef Py_ssize_t count = self.partition_count
        cdef int64_t when
        cdef int32_t number
        cdef HeaderList header_list
        cdef PyObject* found
        cdef bytes encoded
        if not ((key is None or PyBytes_CheckExact(key)) and (value is None or PyBytes_CheckExact(value))):
            return None
        if callback is not None and not callable(callback):
            return None
        if timestamp_ms is not None and not (PyLong_CheckExact(timestamp_ms) and is_timestamp(timestamp_ms)):
            return None
        if PyList_CheckExact(headers):
            headers = tuple(headers)  # which nobody can change meanwhile
        # Others may run in this call, so everything else comes after it.
        when = timestamp_of(timestamp_ms)
        if partition is not None:
            if not PyLong_CheckExact(partition) or not is_below(partition, count):
                return None
            found = PyDict_GetItem(self.queues, partition)
        elif not count:
            return None
        elif key is None or self.ignores_keys:
            found = <PyObject*>self.sticky_queue
        else:
            number = murmur2_of(<const uint8_t*>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key)) & INT32_LARGEST
            found = PyDict_GetItem(self.queues, number % <int32_t>count)
        if found == NULL or <object>found is None:
            return None
        builder = (<object>found).open
        if type(builder) is not BatchBuilder:
            return None
        if not headers:
            no_headers(&header_list)
        elif not headers_of(headers, &header_list):
            if not are_plain(headers):
                return None
            encoded = encode_into(&header_list, headers)
        return (<BatchBuilder>builder).add(when, content_of(key), content_of(value), &header_list, callback)


cdef inline bint is_timestamp(object number):
    cdef int overflow = 0
    cdef int64_t found = PyLong_AsLongLongAndOverflow(number, &overflow)
    return not overflow and found >= 0


cdef inline bint is_below(object number, Py_ssize_t count):
    cdef int overflow = 0
    cdef int64_t found = PyLong_AsLongLongAndOverflow(number, &overflow)
    return not overflow and 0 <= found < count
