# What the other modules of the native body take from this one.
from libc.stdint cimport int64_t

cdef int* yield_gil_waiting() noexcept nogil
# How many I/O threads are back from their poll and wait for the interpreter lock (GIL). Who waits adds one before and
# takes it off again once it has the lock, both atomically; an append that sees it lets go of the GIL for a moment.
cdef int64_t fork_count() noexcept nogil
# The number of forks between this process and the one that imported the module; cheaper to ask than process ids.
