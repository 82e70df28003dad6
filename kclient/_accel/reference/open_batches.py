"""OpenBatches: where the next record of a topic goes, as long as nothing is out of the ordinary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from kclient._accel.reference.batch import BatchBuilder
from kclient._accel.reference.future import Future
from kclient._accel.reference.hashing import murmur2
from kclient._accel.shared.batch_input import MAX_TIMESTAMP_MS, are_plain


class Queue(Protocol):
    """The part of a partition's queue that is needed here."""

    open: BatchBuilder | None


class OpenBatches:
    """The queues of one topic's partitions, each with its open batch. Thread-safe.

    Others fill `queues` and say how many partitions there are (0: the topic is not known now), and which of the queues
    is the turn of records without a key. With `ignores_keys` a key has no say in the partition.
    """

    __slots__ = ("ignores_keys", "partition_count", "queues", "sticky_queue")

    def __init__(self, ignores_keys: bool) -> None:
        self.ignores_keys = ignores_keys
        self.partition_count = 0
        self.queues: dict[int, Any] = {}
        self.sticky_queue: Any = None

    def try_append(
        self,
        key: object,
        value: object,
        headers: Sequence[Any] | None,
        timestamp_ms: object,
        partition: object,
        callback: Any,
    ) -> Future | None:
        """Add a record to the open batch of its partition: the given one, that of its key, or the one whose turn it is.

        None, and nothing has changed, if there is no room in an open batch, or if anything is not as it usually is:
        `key` and `value` bytes or None, `headers` tuples of str and bytes or None, in a tuple or list, `timestamp_ms`
        and `partition` in their ranges or None, `callback` callable or None. Whoever gets None finds out why.
        """
        count = self.partition_count
        if (key is not None and type(key) is not bytes) or (value is not None and type(value) is not bytes):
            return None
        if callback is not None and not callable(callback):
            return None
        if timestamp_ms is not None and (
            type(timestamp_ms) is not int or not 0 <= timestamp_ms <= MAX_TIMESTAMP_MS
        ):
            return None
        if headers and not are_plain(headers):
            return None
        if partition is not None:
            if type(partition) is not int or not 0 <= partition < count:
                return None
            queue = self.queues.get(partition)
        elif not count:
            return None
        elif key is None or self.ignores_keys:
            queue = self.sticky_queue
        else:
            queue = self.queues.get((murmur2(key) & 0x7FFFFFFF) % count)
        # Asked for once: the I/O thread may close the batch at any moment, and then there is none.
        builder: BatchBuilder | None = None if queue is None else queue.open
        return None if builder is None else builder.append(timestamp_ms, key, value, headers, callback)
