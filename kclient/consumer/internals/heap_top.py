"""HeapTop: memory of the records of one poll stays with the process for those of the next one."""

from __future__ import annotations

from typing import Final

_PIN_BYTES: Final = 4096
"""More than what the C library keeps in small caches, so that it comes from where the large free space is."""
_FAR_BYTES: Final = 16 * 1024 * 1024


class HeapTop:
    """Pins the end of the C library's heap behind the records of the last poll. Used by one thread.

    glibc gives free memory at the end of its heap back to the system above 128 KiB, which is less than the values of
    one poll; their pages would come back fresh and zeroed, one fault each, and a consumer of 1 KB records spend half of
    its time on that. What is free below something in use is kept. So a small object that lies behind the records is
    held until there is one behind it, or far below it. The threshold itself belongs to the whole program, and stays as
    it is.
    """

    __slots__ = ("_pin",)

    def __init__(self) -> None:
        self._pin = bytes(_PIN_BYTES)

    def hold(self) -> None:
        """Pin what is the end of the heap now, after records were made."""
        new = bytes(_PIN_BYTES)
        ahead = id(new) - id(self._pin)
        if ahead > 0 or ahead < -_FAR_BYTES:
            self._pin = new
