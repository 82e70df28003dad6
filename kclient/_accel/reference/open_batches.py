"""OpenBatches: where the next record of a topic goes, as long as nothing is out of the ordinary."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from kclient._accel.reference.batch import BatchBuilder
from kclient._accel.reference.future import Future
from kclient._accel.reference.hashing import murmur2
from kclient._accel.shared import forks
from kclient._accel.shared.batch_input import MAX_TIMESTAMP_MS, are_plain


class Queue(Protocol):
    """The part of a partition's queue that is needed here."""

    open: BatchBuilder | None


class Serializer(Protocol):
    """A serializer of keys or values (see `kclient.serialization.AdaptedSerializer`)."""

    function: Callable[..., Any] | None
    takes_topic: bool

    def __call__(self, topic: str, data: Any, headers: Any, /) -> bytes | None: ...
    def failed(self, topic: str, error: Exception) -> Exception: ...
    def as_bytes(self, made: Any, topic: str) -> bytes | None: ...


class OpenBatches:
    """The queues of one topic's partitions, each with its open batch. Thread-safe.

    Others fill `queues` and say how many partitions there are (0: the topic is not known now), and which of the queues
    is the turn of records without a key. With `ignores_keys` a key has no say in the partition.
    """

    __slots__ = (
        "_forks",
        "_key_serializer",
        "_value_serializer",
        "ignores_keys",
        "partition_count",
        "queues",
        "sticky_queue",
        "topic",
    )

    def __init__(
        self, topic: str, ignores_keys: bool, key_serializer: Serializer, value_serializer: Serializer
    ) -> None:
        self.topic = topic
        self.ignores_keys = ignores_keys
        self._key_serializer = key_serializer
        self._value_serializer = value_serializer
        self._forks = forks.generation
        self.partition_count = 0
        self.queues: dict[int, Any] = {}
        self.sticky_queue: Any = None

    def try_append(
        self,
        key: Any,
        value: Any,
        headers: Sequence[Any] | None,
        timestamp_ms: object,
        partition: object,
        callback: Any,
    ) -> Future | tuple[bytes | None, bytes | None] | None:
        """Serialize a record and add it to the open batch of its partition: the given one, that of its key, or the one
        whose turn it is.

        Where there is no room in an open batch nothing has changed, and key and value are returned as they were
        serialized. None, and no serializer was asked, if anything is not as it usually is: `key` and `value` without
        serializer bytes or None, `headers` tuples of str and bytes or None, in a tuple or list, `timestamp_ms` and
        `partition` in their ranges or None, `callback` callable or None, and the process not a child of the one that
        it was made in. Whoever gets None finds out why.
        """
        key_serializer, value_serializer = self._key_serializer, self._value_serializer
        if self._forks != forks.generation:
            return None
        if key_serializer.function is None and key is not None and type(key) is not bytes:
            return None
        if value_serializer.function is None and value is not None and type(value) is not bytes:
            return None
        if callback is not None and not callable(callback):
            return None
        if timestamp_ms is not None and (
            type(timestamp_ms) is not int or not 0 <= timestamp_ms <= MAX_TIMESTAMP_MS
        ):
            return None
        if not headers:
            headers = ()
        elif are_plain(headers):
            headers = tuple(headers)  # which nobody can change meanwhile
        else:
            return None
        if partition is None:
            if not self.partition_count:
                return None
        elif type(partition) is not int or not 0 <= partition < self.partition_count:
            return None
        key_bytes = key_serializer(self.topic, key, headers)
        value_bytes = value_serializer(self.topic, value, headers)
        # A serializer may take long. What the other threads change is looked at behind it.
        if partition is not None:
            queue = self.queues.get(partition)
        elif key_bytes is None or self.ignores_keys:
            queue = self.sticky_queue
        else:
            queue = self.queues.get((murmur2(key_bytes) & 0x7FFFFFFF) % (self.partition_count or 1))
        # Asked for once: the I/O thread may close the batch at any moment, and then there is none.
        builder: BatchBuilder | None = None if queue is None else queue.open
        if builder is None:
            return key_bytes, value_bytes
        future = builder.append(timestamp_ms, key_bytes, value_bytes, headers, callback)
        return (key_bytes, value_bytes) if future is None else future
