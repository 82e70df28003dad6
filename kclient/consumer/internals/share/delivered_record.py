"""DeliveredRecord: a record with the number of its delivery."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import repeat
from typing import Any

import attrs

from kclient.consumer.types import ConsumerRecord, K, V


class DeliveredRecord(ConsumerRecord[K, V]):
    """A record that a share group delivered. Immutable.

    No attrs class of its own: the record reader fills the fields of a record and nothing else, and the number of the
    delivery is set afterwards.
    """

    __slots__ = ("_delivery_count",)

    _delivery_count: int

    @property
    def delivery_count(self) -> int:
        """The number of times that the group has delivered the record, this one included."""
        return self._delivery_count

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, delivery_count={self._delivery_count})"

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[object, ...]]:
        fields = tuple(getattr(self, each.name) for each in attrs.fields(ConsumerRecord))
        return _delivered, (fields, self._delivery_count)


def _slot(cls: type) -> Callable[[object, int], None]:
    setter: Callable[[object, int], None] = vars(cls)["_delivery_count"].__set__
    return setter


# Not through the frozen class, which refuses it; and without a step of the interpreter for each record.
_set_count: Callable[[object, int], None] = _slot(DeliveredRecord)


def set_delivery_count(records: Iterable[DeliveredRecord[Any, Any]], count: int) -> None:
    """Say of new records that this is their delivery number `count`."""
    deque(map(_set_count, records, repeat(count)), maxlen=0)


def _delivered(fields: tuple[Any, ...], count: int) -> DeliveredRecord[Any, Any]:
    record: DeliveredRecord[Any, Any] = DeliveredRecord(*fields)
    set_delivery_count((record,), count)
    return record
