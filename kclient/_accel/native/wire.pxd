# Numbers of the wire and the two hashes, for the modules beside this file. Everything is inline: there is no wire module.
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef extern from "crc32c.h" nogil:
    void crc32c_setup "kclient_crc32c_setup"()
    uint32_t crc32c_of "kclient_crc32c"(uint32_t crc, const void* data, size_t size)


cdef inline int put_varint(uint8_t* to, int64_t value) noexcept nogil:
    """Write a zigzag varint of at most ten bytes; returns its size."""
    cdef uint64_t rest = (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)
    cdef int size = 0
    while rest >= 0x80:
        to[size] = <uint8_t>(rest | 0x80)
        size += 1
        rest >>= 7
    to[size] = <uint8_t>rest
    return size + 1


cdef inline int varint_size(int64_t value) noexcept nogil:
    cdef uint64_t rest = (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)
    cdef int size = 1
    while rest >= 0x80:
        size += 1
        rest >>= 7
    return size


cdef inline void put_16(uint8_t* to, int value) noexcept nogil:
    to[0] = <uint8_t>(value >> 8)
    to[1] = <uint8_t>value


cdef inline void put_32(uint8_t* to, uint32_t value) noexcept nogil:
    to[0] = <uint8_t>(value >> 24)
    to[1] = <uint8_t>(value >> 16)
    to[2] = <uint8_t>(value >> 8)
    to[3] = <uint8_t>value


cdef inline void put_64(uint8_t* to, uint64_t value) noexcept nogil:
    put_32(to, <uint32_t>(value >> 32))
    put_32(to + 4, <uint32_t>value)


cdef inline uint32_t get_32(const uint8_t* at) noexcept nogil:
    return (<uint32_t>at[0] << 24) | (<uint32_t>at[1] << 16) | (<uint32_t>at[2] << 8) | at[3]


cdef inline uint64_t get_64(const uint8_t* at) noexcept nogil:
    return (<uint64_t>get_32(at) << 32) | get_32(at + 4)


cdef inline uint32_t mixed(uint32_t word) noexcept nogil:
    word *= <uint32_t>0x5BD1E995
    return (word ^ (word >> 24)) * <uint32_t>0x5BD1E995


cdef inline int32_t murmur2_of(const uint8_t* at, Py_ssize_t size) noexcept nogil:
    cdef uint32_t h = <uint32_t>0x9747B28C ^ <uint32_t>size
    while size >= 4:
        h = h * <uint32_t>0x5BD1E995 ^ mixed(
            at[0] | <uint32_t>at[1] << 8 | <uint32_t>at[2] << 16 | <uint32_t>at[3] << 24
        )
        at += 4
        size -= 4
    if size:
        if size == 3:
            h ^= <uint32_t>at[2] << 16
        if size >= 2:
            h ^= <uint32_t>at[1] << 8
        h = (h ^ at[0]) * <uint32_t>0x5BD1E995
    h = (h ^ (h >> 13)) * <uint32_t>0x5BD1E995
    return <int32_t>(h ^ (h >> 15))
