"""`send_many`: lists of keys and values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from kclient.producer.bulk import BulkFuture
from kclient.producer.internals.arguments import check_partition
from kclient.producer.internals.bulk_send import BulkSend
from kclient.producer.internals.partition_queue import Contents, TopicQueues
from kclient.producer.internals.placement import Placement
from kclient.producer.partitioner import partition_for_key
from kclient.utils.steps import Steps

if TYPE_CHECKING:
    from kclient.producer.internals.assembly import ProducerCore

# Records with keys are sorted by partition in pieces of this many, so that all partitions fill at the same time.
_SORTED_AT_ONCE = 8192
_PLAIN = frozenset({bytes, type(None)})


def send_many(
    core: ProducerCore,
    placement: Placement,
    topic: str,
    values: Iterable[Any],
    keys: Iterable[Any] | None,
    partition: int | None,
) -> Steps[BulkFuture]:
    """See `KafkaProducer.send_many`."""
    placement.check_sendable()
    if partition is not None:
        check_partition(partition)
    return (yield from placement.guarded(_send_all(core, placement, topic, values, keys, partition)))


def _send_all(
    core: ProducerCore,
    placement: Placement,
    topic: str,
    values: Iterable[Any],
    keys: Iterable[Any] | None,
    partition: int | None,
) -> Steps[BulkFuture]:
    value_list = _listed(values, "values")
    key_list = None if keys is None else _listed(keys, "keys")
    if key_list is not None and len(key_list) != len(value_list):
        raise ValueError(f"there are {len(key_list)} keys for {len(value_list)} values")
    bulk = BulkSend(core.accumulator, placement.refused)
    if core.interceptors or core.partitioner is not None:
        for i, value in enumerate(value_list):
            key = None if key_list is None else key_list[i]
            yield from bulk.add_single(placement.send(topic, value, key, partition), topic, i)
        return bulk.future()
    queues, _ = yield from placement.topic(topic, partition)
    # Everything that can be wrong with a record is found before the first one is sent.
    value_bytes = _serialized(core, topic, value_list, "value")
    key_bytes = None if key_list is None else _serialized(core, topic, key_list, "key")
    _check_sizes(core, topic, key_bytes, value_bytes)
    if partition is not None or key_bytes is None or placement.ignore_keys:
        yield from bulk.add(queues, partition, key_bytes, value_bytes, range(len(value_bytes)))
    else:
        yield from _send_by_key(bulk, queues, key_bytes, value_bytes)
    return bulk.future()


def _listed(given: Iterable[Any], name: str) -> list[Any] | tuple[Any, ...]:
    if isinstance(given, (str, bytes, bytearray, memoryview)) or not hasattr(given, "__iter__"):
        raise TypeError(
            f"{name} must be a sequence with one element for each record, not {type(given).__name__}"
        )
    return given if isinstance(given, (list, tuple)) else list(given)


def _serialized(core: ProducerCore, topic: str, given: list[Any] | tuple[Any, ...], which: str) -> Contents:
    configured = core.config.value_serializer if which == "value" else core.config.key_serializer
    if configured is None and _PLAIN.issuperset(map(type, given)):
        return given
    serialize = core.value_serializer if which == "value" else core.key_serializer
    return [serialize(topic, one, ()) for one in given]


def _check_sizes(core: ProducerCore, topic: str, keys: Contents | None, values: Contents) -> None:
    if _largest(values) + _largest(keys or ()) <= core.accumulator.sizes.largest_plain:
        return
    for i, value in enumerate(values):
        core.accumulator.sizes.check(topic, None if keys is None else keys[i], value, ())


def _largest(contents: Contents) -> int:
    return max(map(len, filter(None, contents)), default=0)


def _send_by_key(bulk: BulkSend, queues: TopicQueues, keys: Contents, values: Contents) -> Steps[None]:
    count = queues.partition_count
    for start in range(0, len(values), _SORTED_AT_ONCE):
        sorted_indexes: dict[int | None, list[int]] = {}
        for i in range(start, min(start + _SORTED_AT_ONCE, len(values))):
            key = keys[i]
            partition = None if key is None else partition_for_key(key, count)
            sorted_indexes.setdefault(partition, []).append(i)
        for partition, indexes in sorted_indexes.items():
            chosen_keys, chosen = [keys[i] for i in indexes], [values[i] for i in indexes]
            yield from bulk.add(queues, partition, chosen_keys, chosen, indexes)
