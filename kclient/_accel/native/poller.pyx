# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The native body: an I/O thread's sockets through epoll, keeping the interpreter lock (GIL) wherever nothing waits.

What it does is said by the pure body. Beside a busy application thread, letting go of the GIL costs an I/O thread up
to the switch interval (5 ms) until it has it back, and one round of it would let go five times or more. So `send` and
`recv_into` keep it: the copy of a megabyte takes a tenth of a millisecond. Only a `poll` that has to wait lets go, and
while it then waits for the GIL it is counted in `*yield_gil_waiting`, so that an append on the application's thread can see it
and give way at once.

Where there is no epoll (`AVAILABLE` is false) nothing here works, and the pure body stands in.
"""

cimport cython
from cpython.buffer cimport (
    PyBUF_SIMPLE, PyBUF_WRITABLE, PyBuffer_FillInfo, PyBuffer_Release, PyObject_GetBuffer,
)
from cpython.exc cimport PyErr_CheckSignals, PyErr_SetFromErrno
from cpython.mem cimport PyMem_Free, PyMem_Malloc, PyMem_RawFree, PyMem_RawMalloc, PyMem_RawRealloc
from libc.errno cimport EAGAIN, EINTR, errno
from libc.stdint cimport int32_t, int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

import os
import time

from kclient._accel.native.batch cimport yield_gil_waiting

cdef extern from "epoll.h":
    const bint KCLIENT_EPOLL
    ctypedef struct kclient_event:
        pass
    ctypedef struct kclient_fill:
        int fd
        char* at
        size_t left, head, got
        int error
    ctypedef struct kclient_span:
        void* iov_base
        size_t iov_len
    int kclient_epoll()
    int kclient_eventfd()
    int kclient_watch(int epoll, int what, int fd, int events)
    int kclient_fd_of(const kclient_event* event)
    int kclient_mask_of(const kclient_event* event)
    int kclient_wait(int epoll, kclient_event* events, int room, int timeout_ms)
    int kclient_wait_released(
        int epoll, kclient_event* events, int room, int timeout_ms, kclient_fill* fills, int fill_count,
        int* waiting
    )
    void kclient_ring(int fd)
    void kclient_hush(int fd)
    int64_t kclient_now_ms()
    Py_ssize_t kclient_send(int fd, kclient_span* spans, int count)
    Py_ssize_t kclient_recv(int fd, void* to, size_t size)
    void kclient_close(int fd)

AVAILABLE = bool(KCLIENT_EPOLL)

cdef enum:
    ADD = 0
    MODIFY = 1
    REMOVE = 2
    READ = 1
    BOTH = 3
    MAX_EVENTS = 256  # of one poll; epoll gives the others first the next time
    MAX_BUFFERS = 1024
    FEW_BUFFERS = 32
    MAX_FILLS = 16  # more sockets than that are received from piece by piece
    MAX_WAIT_MS = 2_000_000_000
    LENGTH_BYTES = 4


@cython.final
cdef class Poller:
    """Watches non-blocking sockets for one thread; only `wake` may be called by others and by signal handlers."""

    cdef int _epoll
    cdef int _event
    cdef dict _watched  # descriptor -> (data, events), which is also what poll gives for it
    cdef bint _woken
    cdef bint _rung  # the eventfd was written
    cdef kclient_fill _fills[MAX_FILLS]
    cdef Py_buffer _held[MAX_FILLS]  # the memory of each
    cdef int _fill_count
    cdef readonly bint polling

    RECEIVES = True

    def __cinit__(self):
        self._epoll = self._event = -1
        self._watched = {}
        self._epoll = kclient_epoll()
        if self._epoll >= 0:
            self._event = kclient_eventfd()
        if self._event < 0 or kclient_watch(self._epoll, ADD, self._event, 1) < 0:
            PyErr_SetFromErrno(OSError)

    def __dealloc__(self):
        # The collector may have taken what other objects hold already, so nothing but memory is looked at.
        self._shut()
        while self._fill_count:
            self._fill_count -= 1
            PyBuffer_Release(&self._held[self._fill_count])

    def register(self, sock, int events, data):
        cdef int fd = self._checked(sock, events)
        if fd in self._watched:
            raise KeyError(f"file descriptor {fd} is watched already")
        if kclient_watch(self._epoll, ADD, fd, events) < 0:
            PyErr_SetFromErrno(OSError)
        self._watched[fd] = (data, events)

    def modify(self, sock, int events, data):
        cdef int fd = self._checked(sock, events)
        if fd not in self._watched:
            raise KeyError(f"file descriptor {fd} is not watched")
        if kclient_watch(self._epoll, MODIFY, fd, events) < 0:
            PyErr_SetFromErrno(OSError)
        self._watched[fd] = (data, events)

    def unregister(self, sock):
        cdef int fd = self._checked(sock, BOTH)
        if self._watched.pop(fd, None) is None:
            raise KeyError(f"file descriptor {fd} is not watched")
        self._drop(self._fill_of(fd))
        kclient_watch(self._epoll, REMOVE, fd, BOTH)  # it fails if the socket was closed before: then it is gone

    def poll(self, timeout_ms):
        cdef kclient_event events[MAX_EVENTS]
        cdef int count
        cdef int wait_ms
        cdef int64_t deadline_ms = -1
        if self._epoll < 0:
            raise ValueError("the poller is closed")
        wait_ms = -1 if timeout_ms < 0 else min(timeout_ms, MAX_WAIT_MS)
        # What is there already is taken without letting go of the GIL. Not in the middle of a frame: nothing can be
        # done with a piece of it, and the copying can be done beside the application's thread.
        count = 0
        if not self._fill_count or wait_ms == 0 or self._woken:
            count = kclient_wait(self._epoll, events, MAX_EVENTS, 0)
        while (count == 0 and wait_ms != 0 and not self._woken) or (count < 0 and errno == EINTR):
            if count < 0:
                PyErr_CheckSignals()
                if self._epoll < 0:
                    raise ValueError("the poller is closed")
                if self._woken:
                    wait_ms = 0
                elif deadline_ms >= 0:
                    wait_ms = <int>max(deadline_ms - kclient_now_ms(), 0)
            elif wait_ms > 0:
                deadline_ms = kclient_now_ms() + wait_ms
            # Nothing can come between the look at the flag and this: both are under the GIL.
            self.polling = True
            count = kclient_wait_released(
                self._epoll, events, MAX_EVENTS, wait_ms, self._fills, self._fill_count,
                yield_gil_waiting()
            )
            self.polling = False
            if count == 0:
                break
        if count < 0:
            PyErr_SetFromErrno(OSError)
        return self._reported(events, count)

    def wake(self):
        # Under the GIL all of this is one step: the poll is seen to wait, or will see the flag before it does.
        if not self._woken:
            self._woken = True
            if self.polling and self._event >= 0:
                self._rung = True
                kclient_ring(self._event)

    def expect(self, sock, buffer, bint framed=False):
        cdef int fd = self._checked(sock, BOTH)
        cdef kclient_fill* fill
        if self._fill_of(fd) >= 0:
            raise ValueError(f"file descriptor {fd} is received from already")
        if self._fill_count == MAX_FILLS:
            return
        PyObject_GetBuffer(buffer, &self._held[self._fill_count], PyBUF_WRITABLE)
        if framed and self._held[self._fill_count].len <= LENGTH_BYTES:
            PyBuffer_Release(&self._held[self._fill_count])
            raise ValueError("there is no room for a frame")
        fill = &self._fills[self._fill_count]
        fill.fd = fd
        fill.at = <char*>self._held[self._fill_count].buf
        fill.left = <size_t>self._held[self._fill_count].len
        fill.head = 0
        if framed:
            fill.head = LENGTH_BYTES
            fill.left -= LENGTH_BYTES
        fill.got = 0
        fill.error = 0
        self._fill_count += 1

    def taken(self, sock):
        cdef int number = self._fill_of(self._checked(sock, BOTH))
        cdef size_t got
        cdef int error
        if number < 0:
            return 0
        got = self._fills[number].got
        error = self._fills[number].error
        self._drop(number)
        if error:
            raise OSError(error, os.strerror(error))
        return got

    cdef int _fill_of(self, int fd) noexcept:
        cdef int i
        for i in range(self._fill_count):
            if self._fills[i].fd == fd:
                return i
        return -1

    cdef int _drop(self, int number) except -1:
        cdef Py_buffer held
        if number >= 0:
            held = self._held[number]
            self._fill_count -= 1
            self._fills[number] = self._fills[self._fill_count]
            self._held[number] = self._held[self._fill_count]
            PyBuffer_Release(&held)
        return 0

    @staticmethod
    def send(sock, buffers):
        cdef int fd = sock.fileno()
        cdef Py_ssize_t written
        cdef Spans spans = Spans.__new__(Spans)
        try:
            spans.fill(buffers)
            while True:
                written = kclient_send(fd, spans.spans, spans.count)
                if written >= 0:
                    return written
                if errno == EAGAIN:
                    return 0
                if errno != EINTR:
                    PyErr_SetFromErrno(OSError)
                PyErr_CheckSignals()
        finally:
            spans.release()

    @staticmethod
    def recv_into(sock, buffer):
        cdef int fd = sock.fileno()
        cdef Py_ssize_t count
        cdef Py_buffer to
        try:
            PyObject_GetBuffer(buffer, &to, PyBUF_WRITABLE)
        except BufferError:
            raise TypeError(f"a read-write bytes-like object is required, not {type(buffer).__name__}") from None
        try:
            if to.len == 0:
                return 0  # which tells nothing of the end
            while True:
                count = kclient_recv(fd, to.buf, <size_t>to.len)
                if count > 0:
                    return count
                if count == 0:
                    raise EOFError
                if errno == EAGAIN:
                    return 0
                if errno != EINTR:
                    PyErr_SetFromErrno(OSError)
                PyErr_CheckSignals()
        finally:
            PyBuffer_Release(&to)

    def close(self):
        self._shut()
        self._watched.clear()
        while self._fill_count:
            self._drop(0)

    cdef void _shut(self) noexcept:
        if self._epoll >= 0:
            kclient_close(self._epoll)
        if self._event >= 0:
            kclient_close(self._event)
        self._epoll = self._event = -1

    cdef int _checked(self, sock, int events) except -1:
        cdef int fd
        if self._epoll < 0:
            raise ValueError("the poller is closed")
        if events == 0 or events & ~BOTH:
            raise ValueError(f"invalid events: {events}")
        fd = sock.fileno()
        if fd < 0:
            raise ValueError(f"invalid file descriptor: {fd}")
        return fd

    cdef list _reported(self, kclient_event* events, int count):
        cdef list found = []
        cdef int i, fd, mask, wanted
        cdef tuple known
        for i in range(count):
            fd = kclient_fd_of(&events[i])
            known = self._watched.get(fd)
            if known is None:
                continue  # the wake; or a socket closed without being unregistered, of which a copy lives on
            wanted = known[1]
            mask = kclient_mask_of(&events[i]) & wanted
            found.append(known if mask == wanted else (known[0], mask))
        for i in range(self._fill_count):
            # What was received so far, when something else ended the wait.
            known = self._watched.get(self._fills[i].fd)
            if self._fills[i].got and known is not None and not any(entry[0] is known[0] for entry in found):
                found.append((known[0], READ))
        if self._rung:
            self._rung = False
            kclient_hush(self._event)
        # Cleared last: what a wake before this wants to be seen was there before this poll returns.
        self._woken = False
        return found


include "memory.pxi"


@cython.final
cdef class Spans:
    """The buffers of one sendmsg: the memory of several buffers, held until `release`."""

    cdef kclient_span few[FEW_BUFFERS]
    cdef Py_buffer few_held[FEW_BUFFERS]
    cdef kclient_span* spans
    cdef Py_buffer* held
    cdef int count

    cdef int fill(self, buffers) except -1:
        # A tuple, since what gives a buffer may be Python code that changes a list.
        cdef tuple givers = tuple(buffers)
        cdef Py_ssize_t wanted = min(len(givers), MAX_BUFFERS)
        cdef Py_ssize_t i
        self.spans = self.few
        self.held = self.few_held
        if wanted > FEW_BUFFERS:
            self.spans = <kclient_span*>PyMem_Malloc(wanted * (sizeof(kclient_span) + sizeof(Py_buffer)))
            if self.spans == NULL:
                raise MemoryError
            self.held = <Py_buffer*>(self.spans + wanted)
        for i in range(wanted):
            PyObject_GetBuffer(givers[i], &self.held[i], PyBUF_SIMPLE)
            self.spans[i].iov_base = self.held[i].buf
            self.spans[i].iov_len = <size_t>self.held[i].len
            self.count += 1
        return 0

    cdef void release(self) noexcept:
        cdef int i
        for i in range(self.count):
            PyBuffer_Release(&self.held[i])
        self.count = 0
        if self.spans != self.few and self.spans != NULL:
            PyMem_Free(self.spans)
        self.spans = NULL
