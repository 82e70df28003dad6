"""Memory that is there before it is needed."""

from __future__ import annotations

import mmap
import os

_MOST_BYTES = 2 * 2**30


def make_present(most_bytes: int = _MOST_BYTES) -> int:
    """Write to every page of so much memory, a quarter of the machine's at most, and give it back. Returns how much.

    A virtual machine gives its host the memory back that nobody uses, and gets it again page by page, at a fraction of
    the speed of memory. Who is measured would pay for that or not by chance, and the broker's page cache most of all.
    """
    page_bytes = mmap.PAGESIZE
    pages = min(most_bytes // page_bytes, os.sysconf("SC_PHYS_PAGES") // 4)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_POPULATE", 0)
    with mmap.mmap(-1, max(pages, 1) * page_bytes, flags=flags) as memory:
        for offset in range(0, len(memory), page_bytes):
            memory[offset] = 1
        return len(memory)
