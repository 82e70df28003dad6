# Part of batch.pyx: the time of day, forks, and giving way to the I/O thread.

cdef extern from *:
    """
    #include <time.h>
    #if defined(_WIN32)
    #include <windows.h>
    #define kclient_yield() ((void)SwitchToThread())
    #else
    #include <sched.h>
    #define kclient_yield() ((void)sched_yield())
    #endif

    /* What polls change without the GIL; where there are none, whoever has it is alone. */
    #if defined(__GNUC__)
    #define kclient_load(at) __atomic_load_n(at, __ATOMIC_SEQ_CST)
    #define kclient_store(at, number) __atomic_store_n(at, number, __ATOMIC_SEQ_CST)
    #else
    #define kclient_load(at) (*(at))
    #define kclient_store(at, number) ((void)(*(at) = (number)))
    #endif

    /* Microseconds since the epoch; -1 where C does not tell. */
    static int64_t kclient_clock_us(void) {
        struct timespec now;
    #if defined(CLOCK_REALTIME)
        if (clock_gettime(CLOCK_REALTIME, &now) != 0) return -1;
    #elif defined(TIME_UTC)
        if (timespec_get(&now, TIME_UTC) != TIME_UTC) return -1;
    #else
        return -1;
    #endif
        return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
    }
    """
    int64_t kclient_clock_us() nogil
    void kclient_yield() nogil
    int kclient_load(const int* at) nogil
    void kclient_store(int* at, int number) nogil

cdef enum:
    # Given way more often, the I/O thread sends smaller batches, which cost the broker and the throughput more. With
    # a producer that spins at 100,000 records/s, 300 us had a lower median latency (1.4 ms, not 1.7) but four times
    # the p99, and 3 % more CPU for each record when the producer sends as fast as it can.
    YIELD_GIL_INTERVAL_US = 1000
    YIELD_GIL_YIELDS = 50

cdef int io_waiting = 0
cdef int64_t forks = 0
cdef int64_t last_yield_us = 0
cdef object stand_in = None


cdef int* yield_gil_waiting() noexcept nogil:
    return &io_waiting


cdef int64_t fork_count() noexcept nogil:
    return forks


def _after_fork_in_child():
    """Count the fork; the I/O threads that were counted are the parent's."""
    global forks
    forks += 1
    kclient_store(&io_waiting, stand_in is not None)


def give_way_by(function):
    """Call `function` to give way, for Pollers that cannot count who waits: to find that out is its part."""
    global stand_in
    stand_in = function
    kclient_store(&io_waiting, function is not None)


in_forked_children(_after_fork_in_child)


cdef int64_t now_us() except -1:
    cdef int64_t now = kclient_clock_us()
    return now if now >= 0 else time.time_ns() // 1000


cdef int give_way(int64_t us) except -1:
    """Let an I/O thread have the GIL that waits for it. Anything may have changed afterwards."""
    global last_yield_us
    cdef int turns = 0
    if 0 <= us - last_yield_us < YIELD_GIL_INTERVAL_US:
        return 0
    last_yield_us = us
    if stand_in is not None:
        stand_in()
        return 0
    with nogil:
        while kclient_load(&io_waiting) > 0 and turns < YIELD_GIL_YIELDS:
            kclient_yield()
            turns += 1
    return 0


cdef inline int maybe_yield_gil() except -1:
    if kclient_load(&io_waiting) > 0:
        give_way(now_us())
    return 0


def yield_gil():
    """Let an I/O thread run that waits for the interpreter lock, unless one did a moment ago."""
    maybe_yield_gil()
