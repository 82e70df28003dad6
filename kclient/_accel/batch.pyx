# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The native body: a batch under construction, its futures, and the two hashes."""

from libc.stdint cimport uint8_t, uint32_t

from kclient._accel.wire cimport crc32c_of, crc32c_setup

crc32c_setup()


def crc32c(const uint8_t[::1] buf, uint32_t crc=0):
    """CRC-32C (Castagnoli) of `buf`, unsigned; `crc` is that of the bytes before it. Keeps the GIL."""
    if buf.shape[0] == 0:
        return crc
    return crc32c_of(crc, &buf[0], buf.shape[0])
