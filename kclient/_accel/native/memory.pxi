# Part of poller.pyx: the memory that frames are received into.

cdef struct Block:
    void* at
    Py_ssize_t room

cdef enum:
    KEPT_BLOCKS = 2  # one is filled and one is read; these are what is between the two
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
