# Part of reader.pyx: records given out one at a time.

from cpython.list cimport PyList_GET_ITEM, PyList_GET_SIZE
from cpython.pythread cimport PyThread_get_thread_ident

cdef extern from *:
    """
    #include <time.h>

    /* Milliseconds of the monotonic clock of Python's `time`, or a few less; -1 where C has no such clock. */
    static int64_t kclient_monotonic_ms(void) {
    #if defined(CLOCK_MONOTONIC_COARSE)
        struct timespec now;
        if (clock_gettime(CLOCK_MONOTONIC_COARSE, &now) == 0)
            return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    #endif
        return -1;
    }
    """
    int64_t kclient_monotonic_ms() nogil


@cython.final
cdef class RecordCursor:
    """Gives out the records of a list one at a time, as the class of this name in `reference/record_cursor.py`."""

    cdef object clock
    cdef list records
    cdef int64_t until_ms, seen_forks
    cdef long owner
    cdef readonly Py_ssize_t index
    cdef readonly int64_t last_ms

    def __init__(self, clock=None):
        self.clock = system_ms if clock is None and kclient_monotonic_ms() < 0 else clock
        self.records = []
        self.index = self.last_ms = 0

    def start(self, list records not None, Py_ssize_t index, int64_t until_ms):
        if index < 0:
            raise ValueError(f"the first record cannot be {index}")
        self.index = index
        self.until_ms = until_ms
        self.owner = PyThread_get_thread_ident()
        self.seen_forks = fork_count()
        self.records = records

    def stop(self):
        self.records = []

    cpdef object take(self):
        cdef int64_t now_ms
        cdef object record
        if self.index >= PyList_GET_SIZE(self.records):
            return None
        if self.owner != PyThread_get_thread_ident() or self.seen_forks != fork_count():
            return None
        now_ms = kclient_monotonic_ms() if self.clock is None else self.clock()
        # The clock may be one of Python's, in which the list may have changed.
        if now_ms >= self.until_ms or self.index >= PyList_GET_SIZE(self.records):
            return None
        self.last_ms = now_ms
        record = <object>PyList_GET_ITEM(self.records, self.index)
        self.index += 1
        return record


@cython.final
cdef class RecordIterator:
    """The records of a cursor, and then what a function returns."""

    cdef RecordCursor cursor
    cdef object more

    def __init__(self, RecordCursor cursor not None, more):
        self.cursor = cursor
        self.more = more

    def __iter__(self):
        return self

    def __next__(self):
        record = self.cursor.take()
        return self.more() if record is None else record
