"""Records that producers sent, and what they were told, in few bytes a record: a soak sends millions."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

Place = tuple[str, int]
"""A topic and one of its partitions."""

_NONE = -3
_FAILED = -2


class Account:
    """The numbered records of one producer. Numbers go round `places`, `in_a_row` to each.

    A record's value is its producer's name and its number, so that a log can be held against this.
    """

    def __init__(self, name: str, places: Sequence[Place], in_a_row: int = 1) -> None:
        self.name = name
        self.errors: dict[int, str] = {}
        """Errors of the records that failed."""
        self._places = places
        self._in_a_row = in_a_row
        self._offsets = array("q")
        self._told = bytearray()

    def __len__(self) -> int:
        return len(self._offsets)

    def new(self) -> int:
        """The number of one more record."""
        self._told.append(0)
        self._offsets.append(_NONE)
        return len(self._offsets) - 1

    def place(self, number: int) -> Place:
        """The partition that a record is for."""
        return self._places[number // self._in_a_row % len(self._places)]

    def value(self, number: int) -> bytes:
        """The value of a record."""
        return b"%s:%d" % (self.name.encode(), number)

    def acked(self, number: int, offset: int) -> None:
        """A record was acknowledged; an offset of -1 is one that is not known."""
        self._offsets[number] = offset
        self._tell(number)

    def failed(self, number: int, error: BaseException) -> None:
        """A record failed."""
        self._offsets[number] = _FAILED
        self.errors[number] = f"{type(error).__name__}: {error}"
        self._tell(number)

    def told(self, number: int) -> int:
        """Times that the outcome of a record was told."""
        return self._told[number]

    def offset(self, number: int) -> int | None:
        """Offset at which a record was acknowledged, None if it was not."""
        found = self._offsets[number]
        return found if found > _FAILED else None

    def _tell(self, number: int) -> None:
        self._told[number] = min(self._told[number] + 1, 255)
