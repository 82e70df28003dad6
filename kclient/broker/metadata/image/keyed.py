"""KeyedDelta: changes of an image that is a mapping from keys to values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class KeyedDelta(Generic[K, V]):
    """Changes of a mapping. Used by one thread."""

    __slots__ = ("_before", "changes")

    def __init__(self, before: Mapping[K, V]) -> None:
        self._before = before
        self.changes: dict[K, V | None] = {}
        """The new values by their keys; None for a key that goes."""

    def get(self, key: K) -> V | None:
        """The value as it is now, None if there is none."""
        return self.changes[key] if key in self.changes else self._before.get(key)

    def removed(self) -> list[V]:
        """The values that go, those that others take the place of included: the objects of the mapping before."""
        before = self._before
        return [before[key] for key in self.changes if key in before]

    def added(self) -> list[V]:
        """The values that come: the objects of the mapping after."""
        return [value for value in self.changes.values() if value is not None]

    def apply(self) -> dict[K, V]:
        """The mapping after the change."""
        after = dict(self._before)
        for key, value in self.changes.items():
            if value is None:
                after.pop(key, None)
            else:
                after[key] = value
        return after
