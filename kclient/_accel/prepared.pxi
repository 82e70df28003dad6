# Part of poller.pyx: the fetch that a poll sends by itself.

cdef extern from "follow.h":
    ctypedef struct kclient_place:
        unsigned char topic_id[16]
        int32_t partition
        size_t offset_at
    ctypedef struct kclient_prepared:
        unsigned char* frame
        size_t size, epoch_at, written
        kclient_place* places
        size_t place_count
        const unsigned char* occupied
        int32_t answered, session_id
        int armed, followed
    uint64_t kclient_big_endian(const unsigned char* at, int size)
    void kclient_put_big_endian(unsigned char* at, int size, uint64_t number)
    int kclient_follow(kclient_prepared* fetch, const unsigned char* data, size_t size)

cdef enum:
    CORRELATION_ID_AT = 8
    TOPIC_ID_BYTES = 16


@cython.final
cdef class PreparedFetch:
    """A fetch in which only numbers and offsets are still open."""

    cdef kclient_prepared fetch
    cdef Py_buffer occupied

    def __cinit__(self, frame, Py_ssize_t epoch_at, offsets_at, partitions, occupied):
        cdef bytes request = bytes(frame)
        cdef list places = list(offsets_at)
        cdef list known = list(partitions)
        cdef Py_ssize_t last = len(request) - 8
        cdef Py_ssize_t at
        cdef bytes topic_id
        if not 0 <= epoch_at <= last or any(not 0 <= place <= last for place in places) or last < CORRELATION_ID_AT:
            raise ValueError("the frame has no such place")
        if len(known) != len(places) or any(len(each[0]) != TOPIC_ID_BYTES for each in known):
            raise ValueError("every partition has a topic id of 16 bytes and one place")
        PyObject_GetBuffer(occupied, &self.occupied, PyBUF_WRITABLE)
        if not self.occupied.len:
            raise ValueError("there is no byte that says what is occupied")
        self.fetch.occupied = <const unsigned char*>self.occupied.buf
        self.fetch.frame = <unsigned char*>PyMem_RawMalloc(<size_t>len(request))
        self.fetch.places = <kclient_place*>PyMem_RawMalloc(<size_t>(len(places) + 1) * sizeof(kclient_place))
        if self.fetch.frame == NULL or self.fetch.places == NULL:
            raise MemoryError
        self.fetch.size = <size_t>len(request)
        memcpy(self.fetch.frame, <const char*>request, self.fetch.size)
        self.fetch.epoch_at = <size_t>epoch_at
        for at in range(len(places)):
            topic_id = bytes(known[at][0])
            memcpy(self.fetch.places[at].topic_id, <const char*>topic_id, TOPIC_ID_BYTES)
            self.fetch.places[at].partition = known[at][1]
            self.fetch.places[at].offset_at = places[at]
        self.fetch.place_count = <size_t>len(places)

    def __dealloc__(self):
        PyMem_RawFree(self.fetch.frame)
        PyMem_RawFree(self.fetch.places)
        if self.occupied.buf != NULL:
            PyBuffer_Release(&self.occupied)

    @property
    def followed(self):
        return self.fetch.followed != 0

    @property
    def written(self):
        return self.fetch.written

    def arm(self, int32_t answered, int32_t session_id, int32_t correlation_id, int32_t epoch, offsets):
        cdef list asked = list(offsets)
        cdef int64_t offset
        cdef size_t at
        if <size_t>len(asked) != self.fetch.place_count:
            raise ValueError("every partition has an offset")
        kclient_put_big_endian(self.fetch.frame + CORRELATION_ID_AT, 4, <uint32_t>correlation_id)
        kclient_put_big_endian(self.fetch.frame + self.fetch.epoch_at, 4, <uint32_t>epoch)
        for at in range(self.fetch.place_count):
            offset = asked[at]
            kclient_put_big_endian(self.fetch.frame + self.fetch.places[at].offset_at, 8, <uint64_t>offset)
        self.fetch.answered = answered
        self.fetch.session_id = session_id
        self.fetch.followed = 0
        self.fetch.written = 0
        self.fetch.armed = 1

    def disarm(self):
        self.fetch.armed = 0

    def follow(self, answer):
        cdef Py_buffer data
        cdef bint followed
        PyObject_GetBuffer(answer, &data, PyBUF_SIMPLE)
        followed = kclient_follow(&self.fetch, <const unsigned char*>data.buf, <size_t>data.len) != 0
        PyBuffer_Release(&data)
        return followed

    def offsets(self):
        cdef size_t at
        return [
            <int64_t>kclient_big_endian(self.fetch.frame + self.fetch.places[at].offset_at, 8)
            for at in range(self.fetch.place_count)
        ]

    def unwritten(self):
        return (<const char*>self.fetch.frame)[self.fetch.written:self.fetch.size]
