"""Records in and out, through the wire."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from harness.broker.wire import Wire, batch
from kclient.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kclient.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from kclient.protocol.messages.delete_topics import DeleteTopicsRequest
from kclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kclient.protocol.messages.init_producer_id import InitProducerIdRequest
from kclient.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kclient.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kclient.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from kclient.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kclient.record.memory_records import iter_batches

OFFSET_OUT_OF_RANGE, CORRUPT_MESSAGE, UNKNOWN_TOPIC, INVALID_TOPIC, INVALID_ACKS = 1, 2, 3, 17, 21
NOT_ENOUGH_REPLICAS, MESSAGE_TOO_LARGE, UNSUPPORTED_VERSION, INVALID_REQUEST, OUT_OF_ORDER = (
    19,
    10,
    35,
    42,
    45,
)
FENCED_EPOCH, UNKNOWN_EPOCH, INVALID_RECORD, CLUSTER_AUTHORIZATION, TRANSACTIONAL_ID = 74, 75, 87, 31, 53
WITHOUT_RESPONSE_S = 0.2


def create(wire: Wire, name: str, partitions: int = 1, **configs: str) -> str:
    settings = [
        CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items()
    ]
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, configs=settings)
    assert wire.ask(CreateTopicsRequest(topics=[topic]), 7).topics[0].error_code == 0
    return name


def produce_request(topic: str, records: bytes | None, acks: int = -1, **fields: Any) -> ProduceRequest:
    data = [PartitionProduceData(index=0, records=records)]
    return ProduceRequest(
        acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=data)], **fields
    )


def produce(wire: Wire, topic: str, records: bytes | None, **fields: Any) -> Any:
    return wire.ask(produce_request(topic, records, **fields), 9).responses[0].partition_responses[0]


def fetch_request(
    topic: str, offset: int = 0, *, partition_max: int = 1 << 20, **fields: Any
) -> FetchRequest:
    epochs = {
        name: fields.pop(name) for name in ("current_leader_epoch", "last_fetched_epoch") if name in fields
    }
    wanted = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=partition_max, **epochs)
    given = {"max_wait_ms": 0, "min_bytes": 1, "max_bytes": 1 << 20, "session_epoch": -1, **fields}
    return FetchRequest(topics=[FetchTopic(topic=topic, partitions=[wanted])], **given)


def fetch(wire: Wire, topic: str, offset: int = 0, **fields: Any) -> Any:
    return wire.ask(fetch_request(topic, offset, **fields), 12).responses[0].partitions[0]


def values(data: Any) -> list[bytes]:
    return [record.value for found in iter_batches(data.records) for record in found.records()]


def offset_at(wire: Wire, topic: str, timestamp: int, version: int = 7, replica_id: int = -1) -> Any:
    wanted = [ListOffsetsPartition(partition_index=0, timestamp=timestamp)]
    request = ListOffsetsRequest(
        replica_id=replica_id, topics=[ListOffsetsTopic(name=topic, partitions=wanted)]
    )
    return wire.ask(request, version).topics[0].partitions[0]


def test_what_was_produced_is_fetched_with_the_offsets_it_was_given(wire: Wire) -> None:
    topic = create(wire, "round-trip")
    assert produce(wire, topic, batch(b"a", b"b")).base_offset == 0
    assert produce(wire, topic, batch(b"c")).base_offset == 2
    data = fetch(wire, topic)
    assert (values(data), data.high_watermark, data.log_start_offset) == ([b"a", b"b", b"c"], 3, 0)
    assert values(fetch(wire, topic, 2)) == [b"c"]
    assert values(fetch(wire, topic, 3)) == []


def test_without_acks_there_is_no_response(wire: Wire) -> None:
    topic = create(wire, "acks-0")
    wire.sock.sendall(_bytes(wire, produce_request(topic, batch(b"a"), acks=0)))
    assert offset_at(wire, topic, -1).offset == 1, "the next answer is that of the next request"


def test_without_acks_an_error_closes_the_connection(wire: Wire) -> None:
    wire.sock.sendall(_bytes(wire, produce_request("no-such-topic", batch(b"a"), acks=0)))
    assert wire.closed_by_peer()


@pytest.mark.parametrize(
    ("error", "make"),
    [
        pytest.param(UNKNOWN_TOPIC, lambda: ("no-such-topic", batch(b"a"), {}), id="unknown topic"),
        pytest.param(INVALID_TOPIC, lambda: ("__consumer_offsets", batch(b"a"), {}), id="internal topic"),
        pytest.param(INVALID_ACKS, lambda: ("errors", batch(b"a"), {"acks": 2}), id="acks 2"),
        pytest.param(
            UNSUPPORTED_VERSION, lambda: ("errors", batch(b"a"), {"transactional_id": "t"}), id="transaction"
        ),
        pytest.param(
            TRANSACTIONAL_ID,
            lambda: (
                "errors",
                batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True),
                {},
            ),
            id="transactional records without an id",
        ),
        pytest.param(
            INVALID_RECORD, lambda: ("errors", batch(b"a", is_control=True), {}), id="control records"
        ),
        pytest.param(INVALID_RECORD, lambda: ("errors", None, {}), id="no records"),
        pytest.param(CORRUPT_MESSAGE, lambda: ("errors", batch(b"a")[:-1] + b"\xff", {}), id="bad checksum"),
        pytest.param(MESSAGE_TOO_LARGE, lambda: ("errors", batch(bytes(2 << 20)), {}), id="too large"),
        pytest.param(
            OUT_OF_ORDER,
            lambda: ("errors", batch(b"a", producer_id=7, producer_epoch=0, base_sequence=0), {}),
            id="gap in sequences",
        ),
    ],
)
def test_what_cannot_be_appended_is_refused_with_its_error(
    wire: Wire, error: int, make: Callable[[], Any]
) -> None:
    topic, records, fields = make()
    if error == OUT_OF_ORDER:
        create(wire, "errors-sequence")
        topic = "errors-sequence"
        assert produce(wire, topic, records).error_code == 0
        records = batch(b"a", producer_id=7, producer_epoch=0, base_sequence=5)
    elif topic == "errors":
        wire.ask(MetadataRequest(topics=[MetadataRequestTopic(name=topic)]), 5)
    result = produce(wire, topic, records, **fields)
    assert result.error_code == error
    assert result.base_offset == -1
    assert result.error_message


def test_a_batch_sent_again_gets_the_offset_it_had(wire: Wire) -> None:
    topic = create(wire, "again")
    records = batch(b"a", b"b", producer_id=9, producer_epoch=0, base_sequence=0)
    assert [produce(wire, topic, records).base_offset for _ in range(2)] == [0, 0]
    assert offset_at(wire, topic, -1).offset == 2


def test_records_a_compacted_topic_cannot_keep_are_named_one_by_one(wire: Wire) -> None:
    topic = create(wire, "keys-needed", cleanup_policy="compact")
    result = produce(wire, topic, batch(b"no", b"key"))
    assert result.error_code == INVALID_RECORD
    assert [rejected.batch_index for rejected in result.record_errors] == [0, 1]


def test_more_replicas_than_there_are_cannot_be_had(wire: Wire) -> None:
    topic = create(wire, "two-replicas", min_insync_replicas="2")
    assert produce(wire, topic, batch(b"a")).error_code == NOT_ENOUGH_REPLICAS
    assert produce(wire, topic, batch(b"a"), acks=1).error_code == 0


def test_a_partition_that_comes_twice_in_a_request_is_refused(wire: Wire) -> None:
    topic = create(wire, "twice")
    request = produce_request(topic, batch(b"a"))
    request.topic_data *= 2
    answers = wire.ask(request, 9).responses
    assert [answer.partition_responses[0].error_code for answer in answers] == [INVALID_RECORD] * 2
    assert offset_at(wire, topic, -1).offset == 0


def test_a_whole_batch_comes_even_if_it_is_above_the_limits(wire: Wire) -> None:
    topic = create(wire, "big-batch")
    for _ in range(2):
        produce(wire, topic, batch(bytes(5000)))
    assert len(values(fetch(wire, topic, partition_max=10))) == 1
    assert len(values(fetch(wire, topic, max_bytes=10))) == 1
    assert len(values(fetch(wire, topic))) == 2


def test_a_fetch_waits_for_an_append(wire: Wire, connect: Callable[[], Wire]) -> None:
    topic = create(wire, "waiting")
    other = connect()
    other.send(fetch_request(topic, max_wait_ms=30_000), 12)
    produce(wire, topic, batch(b"now"))
    started = time.monotonic()
    assert values(other.receive().responses[0].partitions[0]) == [b"now"]
    assert time.monotonic() - started < 20


def test_a_fetch_waits_for_min_bytes(wire: Wire, connect: Callable[[], Wire]) -> None:
    topic = create(wire, "min-bytes")
    other = connect()
    other.send(fetch_request(topic, max_wait_ms=8000, min_bytes=3000), 12)
    other.sock.settimeout(WITHOUT_RESPONSE_S)
    for _ in range(2):
        produce(wire, topic, batch(bytes(1000)))
    with pytest.raises(TimeoutError):
        other.sock.recv(1)
    other.sock.settimeout(10)
    produce(wire, topic, batch(bytes(1000)))
    assert len(values(other.receive().responses[0].partitions[0])) == 3


def test_a_fetch_that_waits_in_vain_is_answered_after_max_wait(wire: Wire) -> None:
    topic = create(wire, "in-vain")
    started = time.monotonic()
    assert values(fetch(wire, topic, max_wait_ms=100)) == []
    assert time.monotonic() - started >= 0.09


def test_a_fetch_that_waits_ends_when_its_topic_is_deleted(wire: Wire, connect: Callable[[], Wire]) -> None:
    topic = create(wire, "deleted-meanwhile")
    other = connect()
    other.send(fetch_request(topic, max_wait_ms=30_000), 12)
    assert wire.ask(DeleteTopicsRequest(topic_names=[topic]), 5).responses[0].error_code == 0
    assert other.receive().responses[0].partitions[0].error_code == UNKNOWN_TOPIC


def test_an_offset_outside_the_log_is_answered_with_the_bounds(wire: Wire) -> None:
    topic = create(wire, "bounds")
    produce(wire, topic, batch(b"a", b"b"))
    for offset in (-1, 3):
        data = fetch(wire, topic, offset, max_wait_ms=5000)
        assert (data.error_code, data.high_watermark, data.log_start_offset) == (OFFSET_OUT_OF_RANGE, 2, 0)


def test_followers_are_refused(wire: Wire) -> None:
    topic = create(wire, "followers")
    for replica_id in (0, 2):
        assert wire.ask(fetch_request(topic, replica_id=replica_id), 12).error_code == CLUSTER_AUTHORIZATION
        assert offset_at(wire, topic, -1, replica_id=replica_id).error_code == CLUSTER_AUTHORIZATION
    assert offset_at(wire, topic, -1).error_code == 0


def test_a_session_tells_only_what_is_new(wire: Wire) -> None:
    topic = create(wire, "session")
    produce(wire, topic, batch(b"a"))
    first = wire.ask(fetch_request(topic, session_epoch=0), 12)
    assert first.session_id != 0
    next_request = fetch_request(topic, 1, session_id=first.session_id, session_epoch=1)
    assert wire.ask(next_request, 12).responses == []
    produce(wire, topic, batch(b"b"))
    again = FetchRequest(max_bytes=1 << 20, session_id=first.session_id, session_epoch=2)
    assert values(wire.ask(again, 12).responses[0].partitions[0]) == [b"b"]


def test_another_leader_epoch_than_the_present_one_is_refused(wire: Wire) -> None:
    topic = create(wire, "epochs")
    produce(wire, topic, batch(b"a"))
    assert fetch(wire, topic, current_leader_epoch=0).error_code == 0
    assert fetch(wire, topic, current_leader_epoch=1).error_code == UNKNOWN_EPOCH
    assert offset_at(wire, topic, -1).leader_epoch == 0


def test_where_an_epoch_ended_is_told(wire: Wire) -> None:
    topic = create(wire, "epoch-end")
    produce(wire, topic, batch(b"a"))
    wanted = [OffsetForLeaderPartition(partition=0, leader_epoch=0), OffsetForLeaderPartition(partition=7)]
    request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=topic, partitions=wanted)])
    known, unknown = wire.ask(request, 4).topics[0].partitions
    assert (known.leader_epoch, known.end_offset) == (0, 1)
    assert unknown.error_code == UNKNOWN_TOPIC


def test_offsets_are_found_by_time(wire: Wire) -> None:
    topic = create(wire, "times")
    first_ms = 1_700_000_000_000
    produce(wire, topic, batch(b"a", b"b", b"c", first_ms=first_ms))
    assert offset_at(wire, topic, -2).offset == 0
    assert offset_at(wire, topic, -1).offset == 3
    found = offset_at(wire, topic, first_ms + 1)
    assert (found.offset, found.timestamp) == (1, first_ms + 1)
    assert (offset_at(wire, topic, -3).offset, offset_at(wire, topic, -3).timestamp) == (2, first_ms + 2)
    assert offset_at(wire, topic, first_ms + 9).offset == -1
    assert offset_at(wire, topic, -3, version=6).error_code == UNSUPPORTED_VERSION


def test_deleting_records_moves_the_start(wire: Wire) -> None:
    topic = create(wire, "delete-records")
    produce(wire, topic, batch(b"a", b"b", b"c"))

    def delete(offset: int) -> Any:
        wanted = [DeleteRecordsPartition(partition_index=0, offset=offset)]
        request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=topic, partitions=wanted)])
        return wire.ask(request, 2).topics[0].partitions[0]

    assert delete(2).low_watermark == 2
    assert fetch(wire, topic, 1).error_code == OFFSET_OUT_OF_RANGE
    assert delete(4).error_code == OFFSET_OUT_OF_RANGE
    assert delete(-1).low_watermark == 3


def test_producer_ids_are_given_out_but_not_for_transactions(wire: Wire) -> None:
    ids = [wire.ask(InitProducerIdRequest(transactional_id=None), 4).producer_id for _ in range(3)]
    assert len(set(ids)) == 3
    assert wire.ask(InitProducerIdRequest(transactional_id="t"), 4).error_code == UNSUPPORTED_VERSION


def _bytes(wire: Wire, request: ProduceRequest) -> bytes:
    from kclient.protocol.header import request_buffers

    return b"".join(request_buffers(request, 9, 0, wire.client_id))
