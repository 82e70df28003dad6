# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The native body: an I/O thread's sockets through epoll, keeping the interpreter lock (GIL) wherever nothing waits.

What it does is said by the pure body. Beside a busy application thread, letting go of the GIL costs an I/O thread up
to the switch interval (5 ms) until it has it back, and one round of it would let go five times or more. So `send` and
`recv_into` keep it: the copy of a megabyte takes a tenth of a millisecond. Only a `poll` that has to wait lets go, and
while it then waits for the GIL it is counted in `*hand_over_waiting`, so that an append on the application's thread can see it
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
from libc.stdint cimport int64_t

import os

from kclient._accel.batch cimport hand_over_waiting

cdef extern from *:
    """
    #include <errno.h>
    #include <stddef.h>
    #include <string.h>

    /* Memory that a socket is received into by polls, and what came of it. */
    typedef struct { int fd; char *at; size_t left, got; int error; } kclient_fill;

    #if defined(__linux__)
    #include <limits.h>
    #include <sys/epoll.h>
    #include <sys/eventfd.h>
    #include <sys/socket.h>
    #include <sys/uio.h>
    #include <time.h>
    #include <unistd.h>

    #define KCLIENT_EPOLL 1
    typedef struct epoll_event kclient_event;
    typedef struct iovec kclient_span;

    static int kclient_epoll(void) { return epoll_create1(EPOLL_CLOEXEC); }
    static int kclient_eventfd(void) { return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK); }

    /* what: 0 adds, 1 modifies, 2 removes */
    static int kclient_watch(int epoll, int what, int fd, int events) {
        static const int operations[] = {EPOLL_CTL_ADD, EPOLL_CTL_MOD, EPOLL_CTL_DEL};
        struct epoll_event event;
        memset(&event, 0, sizeof event);
        event.events = (events & 1 ? EPOLLIN : 0) | (events & 2 ? EPOLLOUT : 0);
        event.data.fd = fd;
        return epoll_ctl(epoll, operations[what], fd, &event);
    }
    static int kclient_fd_of(const kclient_event *event) { return event->data.fd; }
    /* As selectors have it: what is neither input nor output, an error or a hang-up, counts as both. */
    static int kclient_mask_of(const kclient_event *event) {
        return (event->events & ~EPOLLOUT ? 1 : 0) | (event->events & ~EPOLLIN ? 2 : 0);
    }
    static int kclient_wait(int epoll, kclient_event *events, int room, int timeout_ms) {
        return epoll_wait(epoll, events, room, timeout_ms);
    }
    static int64_t kclient_now_ms(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
    }
    /* Receive into the memory that waits for `event`, if any does: whether that is all the event is good for. */
    static int kclient_received(const kclient_event *event, kclient_fill *fills, int fill_count) {
        ssize_t count;
        for (; fill_count; ++fills, --fill_count)
            if (fills->fd == event->data.fd) break;
        if (!fill_count || event->events != EPOLLIN || !fills->left || fills->error) return 0;
        count = recv(fills->fd, fills->at, fills->left, MSG_DONTWAIT);
        if (count > 0) {
            fills->at += count;
            fills->left -= (size_t)count;
            fills->got += (size_t)count;
            return fills->left != 0;
        }
        if (count < 0 && (errno == EAGAIN || errno == EINTR)) return 1;
        if (count < 0) fills->error = errno;
        return 0; /* the end will be met again by whoever reads on */
    }
    /* The same without the GIL, and for `fills` until all there is to receive is there, or something else happens.
       From the end of the wait until the GIL is here again, *waiting counts this thread. */
    static int kclient_wait_released(int epoll, kclient_event *events, int room, int timeout_ms,
                                     kclient_fill *fills, int fill_count, volatile int *waiting) {
        int count, error, found, i;
        int64_t deadline_ms = timeout_ms < 0 ? -1 : kclient_now_ms() + timeout_ms;
        PyThreadState *state = PyEval_SaveThread();
        for (;;) {
            found = epoll_wait(epoll, events, room, timeout_ms);
            error = errno;
            for (count = i = 0; i < found; ++i)
                if (!kclient_received(&events[i], fills, fill_count)) events[count++] = events[i];
            if (count || found <= 0) break;
            if (deadline_ms >= 0) {
                int64_t left_ms = deadline_ms - kclient_now_ms();
                if (left_ms <= 0) break;
                timeout_ms = (int)left_ms;
            }
        }
        if (found < 0) count = found;
        __atomic_fetch_add(waiting, 1, __ATOMIC_SEQ_CST);
        PyEval_RestoreThread(state);
        __atomic_fetch_sub(waiting, 1, __ATOMIC_SEQ_CST);
        errno = error;
        return count;
    }
    static void kclient_ring(int fd) {
        int error = errno;
        eventfd_write(fd, 1); /* it fails only when it is full, and then it wakes, too */
        errno = error;
    }
    static void kclient_hush(int fd) {
        eventfd_t count;
        eventfd_read(fd, &count);
    }
    static Py_ssize_t kclient_send(int fd, kclient_span *spans, int count) {
        struct msghdr message;
        memset(&message, 0, sizeof message);
        message.msg_iov = spans;
        message.msg_iovlen = (size_t)count;
        return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    static Py_ssize_t kclient_recv(int fd, void *to, size_t size) { return recv(fd, to, size, MSG_DONTWAIT); }
    static void kclient_close(int fd) { close(fd); }

    #else

    #define KCLIENT_EPOLL 0
    typedef struct { int unused; } kclient_event;
    typedef struct { void *iov_base; size_t iov_len; } kclient_span;

    static int kclient_nothing(void) { errno = ENOSYS; return -1; }
    #define kclient_epoll() kclient_nothing()
    #define kclient_eventfd() kclient_nothing()
    #define kclient_watch(epoll, what, fd, events) kclient_nothing()
    #define kclient_fd_of(event) ((void)(event), -1)
    #define kclient_mask_of(event) ((void)(event), 0)
    #define kclient_wait(epoll, events, room, timeout_ms) kclient_nothing()
    #define kclient_wait_released(epoll, events, room, timeout_ms, fills, count, waiting) ((void)(fills), kclient_nothing())
    #define kclient_ring(fd) ((void)(fd))
    #define kclient_hush(fd) ((void)(fd))
    #define kclient_now_ms() ((int64_t)0)
    #define kclient_send(fd, spans, count) ((void)(spans), (Py_ssize_t)kclient_nothing())
    #define kclient_recv(fd, to, size) ((void)(to), (Py_ssize_t)kclient_nothing())
    #define kclient_close(fd) ((void)(fd))
    #endif
    """
    const bint KCLIENT_EPOLL
    ctypedef struct kclient_event:
        pass
    ctypedef struct kclient_fill:
        int fd
        char* at
        size_t left, got
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
        volatile int* waiting
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

    def __cinit__(self):
        self._epoll = self._event = -1
        self._watched = {}
        self._epoll = kclient_epoll()
        if self._epoll >= 0:
            self._event = kclient_eventfd()
        if self._event < 0 or kclient_watch(self._epoll, ADD, self._event, 1) < 0:
            PyErr_SetFromErrno(OSError)

    def __dealloc__(self):
        self._shut()
        while self._fill_count:
            self._drop(0)

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
                self._epoll, events, MAX_EVENTS, wait_ms, self._fills, self._fill_count, hand_over_waiting()
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

    def expect(self, sock, buffer):
        cdef int fd = self._checked(sock, BOTH)
        cdef kclient_fill* fill
        if self._fill_of(fd) >= 0:
            raise ValueError(f"file descriptor {fd} is received from already")
        if self._fill_count == MAX_FILLS:
            return
        PyObject_GetBuffer(buffer, &self._held[self._fill_count], PyBUF_WRITABLE)
        fill = &self._fills[self._fill_count]
        fill.fd = fd
        fill.at = <char*>self._held[self._fill_count].buf
        fill.left = <size_t>self._held[self._fill_count].len
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


cdef struct Block:
    void* at
    Py_ssize_t room

cdef enum:
    KEPT_BLOCKS = 4
    SMALLEST_KEPT = 65536
    LARGEST_KEPT = 5242880

# Memory of frames that were read, for the next ones: what comes fresh from the system is zeroed page by page as it is
# written to, which costs more than receiving into it.
cdef Block kept[KEPT_BLOCKS]


cdef Block block_of(Py_ssize_t size) noexcept:
    """A kept block that is large enough, and not far too large; else a new one, whose address may be NULL."""
    cdef Block found
    cdef Py_ssize_t step = SMALLEST_KEPT
    cdef int i, best = -1
    if size >= SMALLEST_KEPT:
        for i in range(KEPT_BLOCKS):
            if size <= kept[i].room <= 4 * size and (best < 0 or kept[i].room < kept[best].room):
                best = i
    if best >= 0:
        found = kept[best]
        kept[best].at = NULL
        kept[best].room = 0
    else:
        if SMALLEST_KEPT <= size <= LARGEST_KEPT:
            # In steps of a quarter, or a frame that is a little larger than the last one would not fit.
            while 2 * step <= size:
                step *= 2
            size += step // 4 - 1 - (size - 1) % (step // 4)
        found.room = size
        found.at = PyMem_RawMalloc(<size_t>size)
    return found


cdef void let_go(Block block) noexcept:
    """Keep the block instead of the smallest one, or free it."""
    cdef Block other
    cdef int i, smallest = 0
    if SMALLEST_KEPT <= block.room <= LARGEST_KEPT:
        for i in range(1, KEPT_BLOCKS):
            if kept[i].room < kept[smallest].room:
                smallest = i
        if kept[smallest].room < block.room:
            other = kept[smallest]
            kept[smallest] = block
            block = other
    PyMem_RawFree(block.at)


@cython.final
@cython.no_gc
cdef class FrameMemory:
    """Memory to receive a frame into; what is in it before is anything."""

    # Nobody has written to the rest of it, so that it costs addresses and no memory.
    FIRST_BYTES = 2 * 1024 * 1024

    cdef Block block
    cdef Py_ssize_t size
    cdef int views

    def __cinit__(self, Py_ssize_t size):
        if size < 0:
            raise ValueError(f"there is no memory of {size} bytes")
        self.block = block_of(size)
        if self.block.at == NULL:
            raise MemoryError
        self.size = size

    def __dealloc__(self):
        if self.block.at != NULL:
            let_go(self.block)

    def __len__(self):
        return self.size

    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.block.at, self.size, 0, flags)
        self.views += 1

    def __releasebuffer__(self, Py_buffer* view):
        self.views -= 1

    def grow(self, Py_ssize_t size):
        cdef void* moved
        if self.views:
            raise BufferError("memory that is looked at cannot grow")
        if size > self.block.room:
            moved = PyMem_RawRealloc(self.block.at, <size_t>size)
            if moved == NULL:
                raise MemoryError
            self.block.at = moved
            self.block.room = size
        self.size = max(size, self.size)


@cython.final
cdef class Spans:
    """What one sendmsg writes: the memory of several buffers, held until `release`."""

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
