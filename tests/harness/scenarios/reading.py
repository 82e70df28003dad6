"""Reading that other things get in the way of, as scenarios for the embedded broker and a real one."""

from __future__ import annotations

import time

from harness.broker.wire import Wire
from harness.topics import DEADLINE_S, new_topic
from harness.waiting import wait_until
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import KafkaConsumer
from kclient.errors import OffsetOutOfRangeError, RecordTooLargeError
from kclient.producer import KafkaProducer
from kclient.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)


def look_up_while_a_fetch_waits(servers: str) -> None:
    """Ask for offsets, positions and topics while the broker keeps a fetch for longer than any question may take."""
    here, elsewhere = (TopicPartition(new_topic(servers, 1), 0) for _ in range(2))
    patience = {"fetch.max.wait.ms": 300_000, "request.timeout.ms": 600_000, "default.api.timeout.ms": 30_000}
    with KafkaConsumer({"bootstrap.servers": servers, **patience}) as consumer:
        consumer.assign([here])
        assert consumer.end_offsets([here]) == {here: 0}  # beside the lookup of the position
        consumer.poll(0)
        assert consumer.position(here) == 0
        consumer.poll(100)
        assert consumer.beginning_offsets([here]) == consumer.end_offsets([here]) == {here: 0}
        assert consumer.offsets_for_times({here: 0}) == {here: None}
        consumer.seek_to_end()
        assert consumer.position(here) == 0
        assert len(consumer.partitions_for(elsewhere.topic)) == 1
        assert elsewhere.topic in consumer.list_topics()
        assert consumer.end_offsets([elsewhere]) == {elsewhere: 0}
        consumer.assign([elsewhere])
        assert consumer.position(elsewhere) == 0


def know_the_lag_without_reading(servers: str, isolation: str, topic: str, end: int) -> None:
    """Ask for the lag of a position that nothing was read from, in the partition 0 of a topic whose end is given."""
    tp = TopicPartition(topic, 0)
    with KafkaConsumer(
        bootstrap_servers=servers, isolation_level=isolation, auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([tp])
        consumer.pause([tp])
        assert consumer.current_lag(tp) is None
        assert consumer.position(tp) == 0
        wait_until(lambda: consumer.current_lag(tp) == end, DEADLINE_S, "the lag")
        consumer.seek(tp, end - 1)
        assert consumer.current_lag(tp) == 1
        consumer.seek(tp, end + 5)
        assert consumer.current_lag(tp) == 0


def read_beside_a_record_that_is_too_large(servers: str) -> None:
    """Read three partitions, one of which has a record that no answer may bring, and then go past that."""
    topic = new_topic(servers, 3, max_message_bytes="8000000")
    with KafkaProducer(
        {"bootstrap.servers": servers, "max.request.size": 8_000_000, "batch.size": 0, "linger.ms": 0}
    ) as producer:
        for number in range(12):
            producer.send(
                topic, b"%d" % number + bytes(3_000_000 if number == 4 else 10), partition=number % 3
            )
    too_large = TopicPartition(topic, 1)
    limits = {"fetch.max.bytes": 100_000, "kclient.receive.max.bytes": 2_000_000}
    with KafkaConsumer({"bootstrap.servers": servers, **limits}) as consumer:
        consumer.assign([TopicPartition(topic, number) for number in range(3)])
        consumer.seek_to_beginning()
        seen: list[int] = []
        errors: list[RecordTooLargeError] = []
        deadline = time.monotonic() + DEADLINE_S
        while len(seen) < 11:
            assert time.monotonic() < deadline, f"{seen} and {errors} came"
            try:
                seen += [int((record.value or b"").rstrip(bytes(1))) for record in consumer.poll(200)]
            except RecordTooLargeError as error:
                errors.append(error)
                if (
                    len(seen) == 9
                ):  # all that there is beside it; it is raised again until something is done about it
                    consumer.seek(too_large, 2)
        assert sorted(seen) == [0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 11]
    assert errors
    for error in errors:
        assert error.sizes.keys() == {too_large}
        assert error.sizes[too_large] > 3_000_000
        for part in (f"{too_large}", "offset 1", str(error.sizes[too_large]), "kclient.receive.max.bytes"):
            assert part in str(error)


def read_from_offsets_that_do_not_exist(servers: str, policy: str) -> None:
    """Seek below the first record that is left, and beyond the last one: as `auto.offset.reset` says, or an error."""
    topic = new_topic(servers, 2)
    low, high = (TopicPartition(topic, number) for number in (0, 1))
    _write(servers, topic, 20)
    part = DeleteRecordsPartition(partition_index=0, offset=4)
    request = DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic, partitions=[part])], timeout_ms=10_000
    )
    with Wire(servers) as wire:
        assert not wire.ask(request, 2).topics[0].partitions[0].error_code
    with KafkaConsumer(bootstrap_servers=servers, auto_offset_reset=policy) as consumer:
        consumer.assign([low, high])
        consumer.seek(low, 1)
        consumer.seek(high, 99)
        seen: dict[TopicPartition, list[int]] = {low: [], high: []}
        refused: set[str] = set()
        deadline = time.monotonic() + DEADLINE_S
        while len(seen[low]) + len(seen[high]) < {"earliest": 16, "latest": 4, "none": 10}[policy]:
            assert time.monotonic() < deadline, f"{seen} came, {refused} were refused"
            try:
                for record in consumer.poll(200):
                    seen[record.topic_partition].append(record.offset)
                if policy == "latest" and consumer.position(low) == consumer.position(high) == 10:
                    _write(servers, topic, 4)
            except OffsetOutOfRangeError as error:
                refused.add(str(error).partition(" is")[0])
                for tp, wrong, right in ((low, 1, 4), (high, 99, 6)):
                    if f"Offset {wrong} of {tp}" in str(error):
                        consumer.seek(tp, right)
        assert (seen[low], seen[high]) == {
            "earliest": ([*range(4, 10)], [*range(10)]),
            "latest": ([10, 11], [10, 11]),
            "none": ([*range(4, 10)], [*range(6, 10)]),
        }[policy]
        assert refused == ({f"Offset 1 of {low}", f"Offset 99 of {high}"} if policy == "none" else set())


def _write(servers: str, topic: str, count: int) -> None:
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for number in range(count):
            producer.send(topic, b"%d" % number, partition=number % 2)
