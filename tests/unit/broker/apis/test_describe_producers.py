"""DescribeProducers: what each partition knows of who wrote to it."""

from __future__ import annotations

from typing import Any

from harness.broker.handlers import Handlers
from harness.broker.logs import append_alone
from harness.broker.wire import batch
from kclient.broker.apis.describe_producers import describe_producers
from kclient.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest

UNKNOWN_TOPIC = 3
FIRST_MS = 1_700_000_000_000


def describe(handlers: Handlers, wanted: dict[str, list[int]]) -> list[Any]:
    request = DescribeProducersRequest(
        topics=[TopicRequest(name=name, partition_indexes=numbers) for name, numbers in wanted.items()]
    )
    return [
        part for topic in handlers.ask(describe_producers, request, 0).topics for part in topic.partitions
    ]


def write(
    handlers: Handlers, *values: bytes, pid: int, epoch: int = 0, sequence: int = 0, **options: Any
) -> None:
    records = batch(
        *values, first_ms=FIRST_MS, producer_id=pid, producer_epoch=epoch, base_sequence=sequence, **options
    )
    append_alone(handlers.led().log, records)


def test_a_producer_is_told_with_its_last_batch(handlers: Handlers) -> None:
    handlers.topics.create()
    write(handlers, b"a", pid=7, epoch=3)
    write(handlers, b"b", b"c", pid=7, epoch=3, sequence=1)
    (part,) = describe(handlers, {"t": [0]})
    (state,) = part.active_producers
    assert (state.producer_id, state.producer_epoch, state.last_sequence) == (7, 3, 2)
    assert state.last_timestamp == FIRST_MS + 1


def test_a_producer_outside_a_transaction_has_no_start_of_one(handlers: Handlers) -> None:
    handlers.topics.create()
    write(handlers, b"a", pid=7)
    write(handlers, b"b", pid=8, is_transactional=True)
    write(handlers, b"c", pid=8, sequence=1, is_transactional=True)
    (part,) = describe(handlers, {"t": [0]})
    starts = {state.producer_id: state.current_txn_start_offset for state in part.active_producers}
    assert starts == {7: -1, 8: 1}


def test_a_transaction_that_begins_with_the_log_starts_at_0(handlers: Handlers) -> None:
    handlers.topics.create()
    write(handlers, b"a", pid=8, is_transactional=True)
    (part,) = describe(handlers, {"t": [0]})
    assert [state.current_txn_start_offset for state in part.active_producers] == [0]


def test_records_without_a_producer_id_leave_no_trace(handlers: Handlers) -> None:
    handlers.topics.create()
    append_alone(handlers.led().log, batch(b"a"))
    (part,) = describe(handlers, {"t": [0]})
    assert (part.error_code, part.active_producers) == (0, [])


def test_each_partition_is_told_or_fails_by_itself(handlers: Handlers) -> None:
    handlers.topics.create()
    write(handlers, b"a", pid=7)
    parts = describe(handlers, {"none": [0], "t": [5, 0, 1]})
    assert [(part.partition_index, part.error_code, len(part.active_producers)) for part in parts] == [
        (0, UNKNOWN_TOPIC, 0), (5, UNKNOWN_TOPIC, 0), (0, 0, 1), (1, 0, 0),
    ]  # fmt: skip
    assert "t-5" in parts[1].error_message
