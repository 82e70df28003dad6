# Part of batch.pyx: what became of records, told to their callbacks in one loop.

cdef extern from "slots.h":
    Py_ssize_t kclient_slot(object kind, object descriptor)
    object kclient_bare(object kind)
    void kclient_fill(object made, Py_ssize_t slot, object value)
    void kclient_watch(object made)
    void kclient_unwatch(object made)

METADATA_FIELDS = (
    "topic", "partition", "offset", "timestamp_ms", "serialized_key_size", "serialized_value_size",
)

cdef enum:
    SLOTS = 6


@cython.final
cdef class MetadataFactory:
    """Makes what a record's future returns: an instance of a class with these fields in slots, without a constructor."""

    cdef object kind
    cdef Py_ssize_t slots[SLOTS]

    def __call__(self, result, int index, timestamp_ms, key_size, value_size):
        return self.make(Outcome(result), index, timestamp_ms, key_size, value_size)

    cdef object make(self, Outcome outcome, int64_t index, int64_t timestamp_ms, key_size, value_size):
        made = kclient_bare(self.kind)
        kclient_fill(made, self.slots[0], outcome.topic)
        kclient_fill(made, self.slots[1], outcome.partition)
        kclient_fill(made, self.slots[2], outcome.base_offset + index if outcome.base_offset >= 0 else -1)
        kclient_fill(made, self.slots[3], timestamp_ms if outcome.append_time_ms < 0 else outcome.append_time_ms)
        kclient_fill(made, self.slots[4], key_size)
        kclient_fill(made, self.slots[5], value_size)
        kclient_watch(made)
        return made


@cython.final
cdef class Outcome:
    """The part of a batch's result that is the same for all its records."""

    cdef object topic, partition
    cdef int64_t base_offset, append_time_ms

    def __cinit__(self, result):
        self.topic = result.topic
        self.partition = result.partition
        self.base_offset = result.base_offset
        self.append_time_ms = result.log_append_time_ms


def metadata_factory(kind, function):
    """A factory of `kind` that does as `function`; that itself, if instances of `kind` have more than the fields."""
    cdef MetadataFactory factory
    cdef int number
    if not has_plain_slots(kind, METADATA_FIELDS):
        return function
    factory = MetadataFactory.__new__(MetadataFactory)
    factory.kind = kind
    for number in range(SLOTS):
        factory.slots[number] = kclient_slot(kind, getattr(kind, METADATA_FIELDS[number], None))
        if factory.slots[number] < 0:
            return function
    return factory


def deliver(result, list callbacks):
    """As `BatchResult._deliver`: in one loop, and with metadata made for each record when its turn comes."""
    cdef Py_ssize_t begun = 0
    cdef Py_ssize_t count = len(callbacks)
    cdef MetadataFactory factory = None
    cdef Outcome outcome = Outcome(result)
    cdef Future future
    cdef tuple entry
    failure = result.error
    if type(result.metadata_factory) is MetadataFactory:
        factory = result.metadata_factory
    try:
        while begun < count:
            entry = <tuple>callbacks[begun]
            begun += 1
            if factory is None or not entry[2] or type(entry[0]) is not Future or (<Future>entry[0])._result is not result:
                result._notify(entry[0], entry[1], entry[2])
                continue
            future = <Future>entry[0]
            try:
                entry[1](
                    factory.make(
                        outcome, future._index, future._timestamp_ms, future._key_size, future._value_size
                    ),
                    None if failure is None else result.record_error(future._index),
                )
            except BaseException as error:
                result.callback_raised(error)
    except BaseException:
        del callbacks[:begun]
        raise
