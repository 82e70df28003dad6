# What the other modules of the native body take from this one.
cdef int* yield_gil_waiting() noexcept nogil
# How many I/O threads are back from their poll and wait for the interpreter lock (GIL). Who waits adds one before and
# takes it off again once it has the lock, both atomically; an append that sees it lets go of the GIL for a moment.
