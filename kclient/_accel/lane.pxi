# Part of poller.pyx: the way of a lone record past the I/O thread.

cdef extern from "pythread.h":
    ctypedef void* PyThread_type_lock
    ctypedef enum PyLockStatus:
        PY_LOCK_ACQUIRED
        PY_LOCK_INTR
    PyThread_type_lock PyThread_allocate_lock() nogil
    void PyThread_free_lock(PyThread_type_lock lock) nogil
    int PyThread_acquire_lock(PyThread_type_lock lock, int wait) nogil
    PyLockStatus PyThread_acquire_lock_timed(PyThread_type_lock lock, long long us, int interruptible) nogil
    void PyThread_release_lock(PyThread_type_lock lock) nogil

cdef extern from "lane.h":
    const int KCLIENT_LARGEST_ANSWER
    const int KCLIENT_SHUT
    const int KCLIENT_OPEN
    const int KCLIENT_SENDING
    const int KCLIENT_SENT
    const int KCLIENT_ANSWERED
    ctypedef struct kclient_lane:
        int fd, waiting, answered, patrol_ms
        int32_t correlation_id
        unsigned char* answer
        size_t answer_size, offset_at, time_at, start_at
        int64_t base_offset, append_time_ms, sent_ms, latency_ms, longest_ms
        PyThread_type_lock unanswered
    void kclient_put_big_endian(unsigned char* at, int size, uint64_t number)

cdef enum:
    CORRELATION_ID_AT = 8  # of a request: behind the length, the API's number and the version
    LENGTH_ROOM = 5  # of a length as a varint
    LANE_SPANS = 3
    NOT_WAITING = 0  # for a lock

cdef double LONGEST_WAIT_US = 1_000_000  # then it is looked again


@cython.final
cdef class Lane:
    """One request at a time over a connection, past its I/O thread.

    Without the GIL only a poll does something, to a lane that is SENT or, if there is nothing in it, OPEN.
    """

    cdef kclient_lane lane
    cdef bytes head, tail
    cdef bint compact
    cdef bint live  # the poll that it was lent to goes on, and nobody wants it to end
    cdef int64_t turn  # counts what may have happened while Python code ran in `send`
    cdef object builder, result  # what is on its way
    cdef int64_t producer_id
    cdef int producer_epoch
    cdef int64_t sequence
    cdef readonly bint partly
    cdef readonly int64_t total_bytes, largest_bytes

    def __cinit__(self, bytes head, bytes tail, bint compact, bytes answer, places):
        cdef Py_ssize_t offset_at, time_at, start_at
        cdef Py_ssize_t size = len(answer)
        offset_at, time_at, start_at = places
        if not 8 <= size <= KCLIENT_LARGEST_ANSWER or any(not 8 <= at <= size - 8 for at in places):
            raise ValueError("the answer has no such place, or is too long")
        if len(head) < CORRELATION_ID_AT + 4:
            raise ValueError("the request has no place for its number")
        self.lane.fd = -1
        self.lane.unanswered = PyThread_allocate_lock()
        self.lane.answer = <unsigned char*>PyMem_RawMalloc(<size_t>size)
        if self.lane.answer == NULL or self.lane.unanswered == NULL:
            raise MemoryError
        memcpy(self.lane.answer, <const char*>answer, <size_t>size)
        self.lane.answer_size = <size_t>size
        self.lane.offset_at = <size_t>offset_at
        self.lane.time_at = <size_t>time_at
        self.lane.start_at = <size_t>start_at
        self.head = head
        self.tail = tail
        self.compact = compact

    def __dealloc__(self):
        PyMem_RawFree(self.lane.answer)
        if self.lane.unanswered != NULL:
            PyThread_free_lock(self.lane.unanswered)

    @property
    def open(self):
        return kclient_lane_state(&self.lane) == KCLIENT_OPEN

    @property
    def entered(self):
        return False  # nobody waits for a step here, as the GIL makes it one

    @property
    def waiting(self):
        return self.lane.waiting

    @property
    def answered(self):
        return self.lane.answered

    @property
    def latency_ms(self):
        return self.lane.latency_ms

    @property
    def longest_ms(self):
        return self.lane.longest_ms

    @property
    def pending(self):
        return self.builder

    def prepare(self, int64_t producer_id, int producer_epoch, int64_t sequence):
        if kclient_lane_state(&self.lane) != KCLIENT_SHUT:
            raise ValueError("the lane is in use")
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.sequence = sequence
        self.builder = None
        self.lane.answered = 0
        self.lane.latency_ms = self.lane.longest_ms = 0
        self.total_bytes = self.largest_bytes = 0
        self.partly = False

    def send(self, builder):
        cdef int64_t turn, sequence = self.sequence
        cdef size_t size
        cdef Py_ssize_t count
        cdef Py_buffer batch
        cdef kclient_span spans[LANE_SPANS]
        cdef unsigned char* head
        cdef bytearray request
        if self.lane.waiting or not kclient_lane_move(&self.lane, KCLIENT_OPEN, KCLIENT_SENDING):
            return False
        self.turn += 1
        turn = self.turn
        try:
            if sequence >= 0:
                sequence = (sequence + self.lane.answered) & 0x7FFFFFFF
            builder.close(self.producer_id, self.producer_epoch, sequence, 0)
            result = builder.result
            request = bytearray(self.head)
            request.extend(self.length_of(builder.size))
            (whole,) = builder.views()
            PyObject_GetBuffer(whole, &batch, PyBUF_SIMPLE)
        except BaseException:
            self.back_out(turn)
            raise
        # Until here a collection may have run anything. From here on it is one step under the GIL.
        if turn != self.turn or kclient_lane_state(&self.lane) != KCLIENT_SENDING:
            PyBuffer_Release(&batch)
            return False
        self.lane.correlation_id = (self.lane.correlation_id + 1) & 0x7FFFFFFF
        head = <unsigned char*><char*>request
        size = <size_t>len(request) + <size_t>batch.len + <size_t>len(self.tail)
        kclient_put_big_endian(head, LENGTH_BYTES, size - LENGTH_BYTES)
        kclient_put_big_endian(head + CORRELATION_ID_AT, 4, <uint32_t>self.lane.correlation_id)
        spans[0].iov_base = head
        spans[0].iov_len = <size_t>len(request)
        spans[1].iov_base = batch.buf
        spans[1].iov_len = <size_t>batch.len
        spans[2].iov_base = <char*>self.tail
        spans[2].iov_len = <size_t>len(self.tail)
        self.lane.sent_ms = kclient_now_ms()
        PyThread_acquire_lock(self.lane.unanswered, NOT_WAITING)
        # Before it is written, since the answer may come at once.
        kclient_lane_enter(&self.lane, KCLIENT_SENT)
        count = kclient_send(self.lane.fd, spans, LANE_SPANS)
        if count <= 0:
            kclient_lane_enter(&self.lane, KCLIENT_SENDING)
            PyThread_release_lock(self.lane.unanswered)
            self.lane.correlation_id = (self.lane.correlation_id - 1) & 0x7FFFFFFF
            self.back_out(turn)
        else:
            self.partly = <size_t>count < size
            self.total_bytes += batch.len
            self.largest_bytes = max(self.largest_bytes, <int64_t>batch.len)
            self.builder = builder
            self.result = result
        PyBuffer_Release(&batch)
        return count > 0

    def wait(self, result, timeout_s=None):
        cdef PyLockStatus status
        cdef double left_us
        cdef long long wait_us
        cdef object deadline_s
        if result is not self.result:
            return None
        if kclient_lane_state(&self.lane) == KCLIENT_SENT:
            deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
            kclient_lane_wait(&self.lane, 1)
            try:
                while True:
                    left_us = LONGEST_WAIT_US
                    if deadline_s is not None:
                        left_us = min(left_us, max((deadline_s - time.monotonic()) * 1e6, 0))
                    wait_us = <long long>left_us
                    with nogil:
                        status = PyThread_acquire_lock_timed(self.lane.unanswered, wait_us, 1)
                    if status == PY_LOCK_ACQUIRED:
                        PyThread_release_lock(self.lane.unanswered)  # it is passed on from one waiter to the next
                        break
                    if status == PY_LOCK_INTR:
                        PyErr_CheckSignals()
                    elif left_us < LONGEST_WAIT_US:
                        break
            finally:
                kclient_lane_wait(&self.lane, -1)
        if result is self.result and kclient_lane_state(&self.lane) == KCLIENT_ANSWERED:
            return self.lane.base_offset, self.lane.append_time_ms
        return None

    def taken(self, result):
        if result is self.result and kclient_lane_state(&self.lane) == KCLIENT_ANSWERED:
            self.builder = self.result = None
            kclient_lane_enter(&self.lane, KCLIENT_OPEN if self.live else KCLIENT_SHUT)

    def settle(self):
        cdef int state = kclient_lane_state(&self.lane)
        answer = None
        self.turn += 1
        self.live = False
        self.result = None
        kclient_lane_enter(&self.lane, KCLIENT_SHUT)
        if state == KCLIENT_SENT:
            PyThread_release_lock(self.lane.unanswered)
        elif state == KCLIENT_ANSWERED:
            answer = self.lane.base_offset, self.lane.append_time_ms
        return self.builder, answer

    cdef bytes length_of(self, int64_t size):
        """The length of the batch, as it stands in front of it."""
        cdef unsigned char room[LENGTH_ROOM]
        cdef int count = 0
        cdef uint64_t left = <uint64_t>size
        if not self.compact:
            kclient_put_big_endian(room, 4, left)
            return (<char*>room)[:4]
        left += 1
        while left >= 0x80:
            room[count] = <unsigned char>(left & 0x7F | 0x80)
            left >>= 7
            count += 1
        room[count] = <unsigned char>left
        return (<char*>room)[:count + 1]

    cdef void back_out(self, int64_t turn) noexcept:
        """Nothing was sent; unless the poll is over, the lane is as it was."""
        if turn == self.turn and kclient_lane_state(&self.lane) == KCLIENT_SENDING:
            kclient_lane_enter(&self.lane, KCLIENT_OPEN if self.live else KCLIENT_SHUT)

    cdef int lend(self, int fd, int32_t correlation_id, int patrol_ms) except -1:
        """For the next poll."""
        if kclient_lane_state(&self.lane) != KCLIENT_SHUT:
            raise ValueError("the lane is in use")
        self.lane.fd = fd
        self.lane.correlation_id = correlation_id
        self.lane.patrol_ms = patrol_ms
        self.live = True
        return 0

    cdef void begin(self) noexcept:
        """The poll begins to wait; nothing happens if it was to end before that, or was interrupted."""
        if self.live:
            kclient_lane_move(&self.lane, KCLIENT_SHUT, KCLIENT_OPEN)

    cdef void end(self) noexcept:
        """It no longer waits, or is about to. What was sent stays to be settled."""
        self.live = False
        self.turn += 1
        if not kclient_lane_move(&self.lane, KCLIENT_OPEN, KCLIENT_SHUT):
            kclient_lane_move(&self.lane, KCLIENT_SENDING, KCLIENT_SHUT)
