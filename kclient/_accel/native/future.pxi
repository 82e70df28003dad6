# Part of batch.pyx: the futures of records.

@cython.final
@cython.no_gc
@cython.freelist(1024)
cdef class Future:
    """The result of one record: a handle on its batch's result and the record's index in it. Thread-safe.

    Not known to the cyclic collector, which would spend more time on the futures that an application keeps than is
    spent on their records. The only way back to a future is its result's list of callbacks, given up when it is
    complete.
    """

    cdef object _result
    cdef int64_t _timestamp_ms
    cdef int32_t _index, _key_size, _value_size

    def __init__(self, result, int index, about):
        self._result = result
        self._index = index
        self._timestamp_ms, self._key_size, self._value_size = about

    def done(self):
        """True if the record was acknowledged or has failed, and the callback that it was sent with has run."""
        return self._result.done or self._result.successor(self._index)[0].done

    def result(self, timeout=None):
        """The record's metadata; waits for it up to `timeout` seconds, or without end.

        Raises the record's error if it failed, and a TimeoutError if neither is known in time. In a callback of its own
        batch it does not wait, although it is not done there.
        """
        result = self._result
        if not result.done or result.error is not None:
            error = self.exception(timeout)
            if error is not None:
                raise error
        return self.metadata()

    def exception(self, timeout=None):
        """The record's error, None if it was written; waits, and raises when the time is over, as `result` does."""
        result = self._result
        # First what is asked for most, of every record at the end of a program that checks them all.
        if result.done and result.error is None:
            return None
        return result.outcome(self._index, timeout)

    def add_done_callback(self, callback):
        """Call `callback(future)` when done, on the thread that completes it; at once, if it is done."""
        result, _ = self.resolve()
        result.add_callback(self, callback, False)

    def as_concurrent(self):
        """A `concurrent.futures.Future`, for `wait`, `as_completed` and `asyncio.wrap_future`; not to be cancelled."""
        return as_concurrent(self)

    def __await__(self):
        """Wait in the running asyncio loop; a task that is cancelled leaves the record on its way."""
        return wait_in_loop(self)

    def __repr__(self):
        result, _ = self.resolve()
        return text_of(self, f"Future of a record for {result.topic}-{result.partition}")

    def metadata(self):
        """The record's metadata as far as it is known now; never waits and never raises."""
        cdef MetadataFactory factory
        result = self._result
        # A batch that is done was not split, so its result is the one that stands for the record.
        if result.done and type(result.metadata_factory) is MetadataFactory:
            factory = result.metadata_factory
            return factory.make(
                Outcome(result), self._index, self._timestamp_ms, self._key_size, self._value_size
            )
        result, index = self.resolve()
        return result.metadata_factory(result, index, self._timestamp_ms, self._key_size, self._value_size)

    def resolve(self):
        """The result that stands for the record now, and the record's index in it."""
        return self._result.successor(self._index)

    def resolved_error(self):
        """The record's error as far as it is known now."""
        result, index = self.resolve()
        return result.record_error(index)
