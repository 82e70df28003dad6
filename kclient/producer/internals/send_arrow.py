"""`send_arrow`: records in Arrow's columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kclient._accel import key_partitions
from kclient.producer.bulk import BulkFuture
from kclient.producer.internals.arguments import check_topic
from kclient.producer.internals.arrow_records import ArrowRecords, pyarrow, records_of
from kclient.producer.internals.bulk_send import BulkSend
from kclient.producer.internals.partition_queue import Added, TopicQueues
from kclient.producer.internals.placement import Placement
from kclient.utils.futures import KafkaFuture
from kclient.utils.steps import Steps

if TYPE_CHECKING:
    from kclient.producer.internals.assembly import ProducerCore

_STICKY = -1


def send_arrow(core: ProducerCore, placement: Placement, data: Any, topic: str | None) -> Steps[BulkFuture]:
    """See `KafkaProducer.send_arrow`."""
    if core.config.key_serializer is not None or core.config.value_serializer is not None:
        raise ValueError(
            "send_arrow sends bytes as they are: use a producer without key and value serializers"
        )
    placement.check_sendable()
    return (yield from placement.guarded(_send_all(core, placement, data, topic)))


def _send_all(core: ProducerCore, placement: Placement, data: Any, topic: str | None) -> Steps[BulkFuture]:
    if topic is not None:
        check_topic(topic)
    # Whatever can be wrong with a record is found before the first one is sent.
    pieces = list(records_of(data, topic, core.time.wall_ms()))
    for piece in pieces:
        yield from _check_piece(core, placement, piece)
    bulk = BulkSend(core.accumulator, placement.refused)
    for piece in pieces:
        if piece.headers is not None or core.interceptors or core.partitioner is not None:
            yield from _send_singly(bulk, placement, piece)
        else:
            queues, _ = yield from placement.topic(piece.topic, None)
            yield from _send_columns(core, bulk, queues, piece, placement.ignore_keys)
    return bulk.future()


def _check_piece(core: ProducerCore, placement: Placement, piece: ArrowRecords) -> Steps[None]:
    import pyarrow.compute as pc

    largest = None if piece.partition is None else pc.max(piece.partition).as_py()
    yield from placement.topic(piece.topic, largest)
    sizes = pc.fill_null(pc.binary_length(piece.value), 0)
    if piece.key is not None:
        sizes = pc.add(sizes, pc.fill_null(pc.binary_length(piece.key), 0))
    room = core.accumulator.sizes.largest_plain
    if pc.max(sizes).as_py() > room:
        for at in pc.indices_nonzero(pc.greater(sizes, room)).to_pylist():
            _, key, value = piece.row(at)
            core.accumulator.sizes.check(piece.topic, key, value, piece.headers_of(at))


def _send_columns(
    core: ProducerCore, bulk: BulkSend, queues: TopicQueues, piece: ArrowRecords, ignore_keys: bool
) -> Steps[None]:
    pa = pyarrow()
    import pyarrow.compute as pc

    keyed = piece.key is not None and not ignore_keys and piece.key.null_count < len(piece)
    if not keyed and piece.partition is None:
        yield from _send_run(core, bulk, queues, None, piece, 0, len(piece))
        return
    chosen = piece.partition
    if keyed and piece.keys is not None:
        by_key = key_partitions(piece.keys, 0, len(piece), queues.partition_count)
        by_key = pa.Array.from_buffers(pa.int32(), len(piece), [None, pa.py_buffer(by_key)])
        chosen = by_key if chosen is None else pc.coalesce(chosen, by_key)
    # Sorted by partition the records stay in order within each, and every partition is one run.
    chosen = chosen.fill_null(_STICKY)
    order = pc.array_sort_indices(chosen)
    piece = piece.taken(order)
    start = 0
    for counted in pc.value_counts(chosen.take(order)).to_pylist():
        partition = None if counted["values"] == _STICKY else counted["values"]
        yield from _send_run(core, bulk, queues, partition, piece, start, start + counted["counts"])
        start += counted["counts"]


def _send_run(
    core: ProducerCore,
    bulk: BulkSend,
    queues: TopicQueues,
    partition: int | None,
    piece: ArrowRecords,
    start: int,
    stop: int,
) -> Steps[None]:
    def take(queues: TopicQueues, partition: int | None, done: int, count: int) -> Steps[Added]:
        return core.accumulator.append_columns(queues, partition, piece, start + done, start + count)

    yield from bulk.run(take, queues, partition, piece.indexes[start:stop])


def _send_singly(bulk: BulkSend, placement: Placement, piece: ArrowRecords) -> Steps[None]:
    partitions = None if piece.partition is None else piece.partition.to_pylist()
    for number, index in enumerate(piece.indexes):
        partition = None if partitions is None else partitions[number]
        yield from bulk.add_single(_send_row(placement, piece, number, partition), piece.topic, index)


def _send_row(
    placement: Placement, piece: ArrowRecords, number: int, partition: int | None
) -> Steps[KafkaFuture[Any]]:
    timestamp_ms, key, value = piece.row(number)
    headers = piece.headers_of(number)
    return (yield from placement.send(piece.topic, value, key, partition, headers, timestamp_ms))
