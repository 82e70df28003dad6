# Part of batch.pyx: where the next record of a topic goes.

cdef class OpenBatches:
    """The queues of one topic's partitions, each with its open batch."""

    cdef public object topic
    cdef public bint ignores_keys
    cdef public Py_ssize_t partition_count
    cdef public dict queues
    cdef public object sticky_queue
    cdef object key_serializer, key_function, value_serializer, value_function
    cdef bint key_takes_topic, value_takes_topic
    cdef int64_t seen_forks

    def __init__(self, topic, bint ignores_keys, key_serializer, value_serializer):
        self.topic = topic
        self.ignores_keys = ignores_keys
        self.partition_count = 0
        self.queues = {}
        self.sticky_queue = None
        self.key_serializer = key_serializer
        self.key_function = key_serializer.function
        self.key_takes_topic = key_serializer.takes_topic
        self.value_serializer = value_serializer
        self.value_function = value_serializer.function
        self.value_takes_topic = value_serializer.takes_topic
        self.seen_forks = forks

    def try_append(self, key, value, headers, timestamp_ms, partition, callback):
        cdef int64_t when
        cdef int32_t number, count
        cdef HeaderList header_list
        cdef PyObject* found
        cdef bytes encoded
        cdef Future future = None
        if self.seen_forks != forks:
            return None
        if self.key_function is None and not (key is None or PyBytes_CheckExact(key)):
            return None
        if self.value_function is None and not (value is None or PyBytes_CheckExact(value)):
            return None
        if callback is not None and not callable(callback):
            return None
        if timestamp_ms is not None and not (PyLong_CheckExact(timestamp_ms) and is_timestamp(timestamp_ms)):
            return None
        if partition is None:
            if not self.partition_count:
                return None
        elif not PyLong_CheckExact(partition) or not is_below(partition, self.partition_count):
            return None
        if not headers:
            headers = ()
            no_headers(&header_list)
        else:
            if PyList_CheckExact(headers):
                headers = tuple(headers)  # which nobody can change meanwhile
            if not headers_of(headers, &header_list):
                if not are_plain(headers):
                    return None
                encoded = encode_into(&header_list, headers)
        # Others may run in these calls, so everything else comes after them.
        if self.key_function is not None and key is not None:
            key = serialized(
                self.key_serializer, self.key_function, self.key_takes_topic, self.topic, key, headers
            )
        if self.value_function is not None and value is not None:
            value = serialized(
                self.value_serializer, self.value_function, self.value_takes_topic, self.topic, value, headers
            )
        when = timestamp_of(timestamp_ms)
        if partition is not None:
            found = PyDict_GetItem(self.queues, partition)
        elif key is None or self.ignores_keys:
            found = <PyObject*>self.sticky_queue
        else:
            count = <int32_t>self.partition_count or 1
            number = murmur2_of(<const uint8_t*>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key)) & INT32_LARGEST
            found = PyDict_GetItem(self.queues, number % count)
        if found != NULL and <object>found is not None:
            builder = (<object>found).open
            if type(builder) is BatchBuilder:
                future = (<BatchBuilder>builder).add(
                    when, content_of(key), content_of(value), &header_list, callback
                )
        return (key, value) if future is None else future


cdef object serialized(object serializer, object function, bint takes_topic, object topic, object data, object headers):
    """Return the bytes that the serializer makes of `data`, or None."""
    try:
        made = function(topic, data, headers) if takes_topic else function(data)
    except Exception as error:
        raise serializer.failed(topic, error) from error
    return made if PyBytes_CheckExact(made) else serializer.as_bytes(made, topic)


cdef inline bint is_timestamp(object number):
    cdef int overflow = 0
    cdef int64_t found = PyLong_AsLongLongAndOverflow(number, &overflow)
    return not overflow and found >= 0


cdef inline bint is_below(object number, Py_ssize_t count):
    cdef int overflow = 0
    cdef int64_t found = PyLong_AsLongLongAndOverflow(number, &overflow)
    return not overflow and 0 <= found < count
