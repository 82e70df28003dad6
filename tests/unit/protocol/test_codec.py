"""Encoding and decoding of single messages: what is passed on, refused and kept."""

from __future__ import annotations

import linecache
import threading
from typing import Any

import pytest

from kclient.common.uuid import Uuid
from kclient.errors import SchemaError, UnsupportedVersionError
from kclient.protocol import decode, decode_prefix, decode_versioned, encode, encode_buffers, encode_versioned
from kclient.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from kclient.protocol.messages.fetch import FetchableTopicResponse as FetchedTopic
from kclient.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData
from kclient.protocol.messages.heartbeat import HeartbeatRequest
from kclient.protocol.messages.list_offsets import ListOffsetsRequest
from kclient.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kclient.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData


def produce(*records: bytes | memoryview | None) -> ProduceRequest:
    parts = [PartitionProduceData(index=i, records=each) for i, each in enumerate(records)]
    return ProduceRequest(
        acks=-1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=parts)]
    )


@pytest.mark.parametrize("version", [3, 9, 12])
def test_large_records_are_passed_on_by_reference(version: int) -> None:
    large, small, larger = b"a" * 1025, b"b" * 1024, memoryview(b"c" * 5000)
    message = produce(large, small, larger, None)
    buffers = encode_buffers(message, version)
    assert [each for each in buffers if each is large or each is larger] == [large, larger]
    assert b"".join(buffers) == encode(message, version)


def test_a_message_without_large_records_is_one_buffer() -> None:
    assert len(encode_buffers(produce(b"small"), 9)) == 1


@pytest.mark.parametrize("version", [4, 12])
def test_records_are_slices_of_the_input(version: int) -> None:
    part = PartitionData(partition_index=1, records=b"r" * 3000)
    raw = bytearray(encode(FetchResponse(responses=[FetchedTopic(topic="t", partitions=[part])]), version))
    records = decode(FetchResponse, version, memoryview(raw)).responses[0].partitions[0].records
    assert isinstance(records, memoryview)
    raw[raw.index(b"rrr")] = ord("x")
    assert bytes(records[:2]) == b"xr"


def test_a_field_that_the_version_lacks_is_refused_unless_it_may_be_left_out() -> None:
    with pytest.raises(
        UnsupportedVersionError, match=r"HeartbeatRequest\.group_instance_id is set, but version 2"
    ):
        encode(HeartbeatRequest(group_instance_id="static"), 2)
    assert encode(FetchRequest(rack_id="r", max_bytes=5), 4) == encode(FetchRequest(max_bytes=5), 4)
    with pytest.raises(UnsupportedVersionError, match=r"ListOffsetsRequest\.isolation_level"):
        encode(ListOffsetsRequest(isolation_level=1), 1)


def test_unknown_tagged_fields_are_refused_where_there_are_no_tags() -> None:
    with pytest.raises(UnsupportedVersionError, match="has tagged fields"):
        encode(HeartbeatRequest(unknown_tagged_fields={0: b"x"}), 3)


def test_unknown_tagged_fields_are_kept_and_written_in_order() -> None:
    message = HeartbeatRequest(unknown_tagged_fields={300: b"", 7: b"seven"})
    raw = encode(message, 4)
    assert decode(HeartbeatRequest, 4, raw) == message
    assert raw.endswith(b"\x02\x07\x05seven\xac\x02\x00")


def test_an_unknown_tagged_field_may_not_have_the_tag_of_a_known_one() -> None:
    with pytest.raises(SchemaError, match="Tag 0"):
        encode(FetchRequest(unknown_tagged_fields={0: b"x"}), 12)


@pytest.mark.parametrize("version", [-1, 5, 99])
def test_a_version_that_the_message_lacks_is_refused(version: int) -> None:
    with pytest.raises(UnsupportedVersionError, match="HeartbeatRequest has versions 0 to 4"):
        encode(HeartbeatRequest(), version)
    with pytest.raises(UnsupportedVersionError, match="HeartbeatRequest has versions 0 to 4"):
        decode(HeartbeatRequest, version, b"")


@pytest.mark.parametrize(
    "message",
    [
        HeartbeatRequest(generation_id=2**31),
        HeartbeatRequest(group_id="x" * 32768),
        HeartbeatRequest(group_id=None),  # type: ignore[arg-type]
        HeartbeatRequest(group_id="\ud800"),
        HeartbeatRequest(generation_id="1"),  # type: ignore[arg-type]
    ],
)
def test_a_value_that_does_not_fit_its_field_is_refused(message: HeartbeatRequest) -> None:
    with pytest.raises(SchemaError, match="HeartbeatRequest v3 has a value that cannot be encoded"):
        encode(message, 3)


def test_none_stands_for_all_topics_only_where_the_version_has_null() -> None:
    assert encode(MetadataRequest(topics=None), 1) == b"\xff\xff\xff\xff"
    with pytest.raises(SchemaError):
        encode(MetadataRequest(topics=None), 0)


def test_trailing_and_missing_bytes_are_schema_errors() -> None:
    raw = encode(HeartbeatRequest(group_id="g", member_id="m"), 4)
    with pytest.raises(SchemaError, match="followed by 1 more"):
        decode(HeartbeatRequest, 4, raw + b"\0")
    for size in range(len(raw)):
        with pytest.raises(SchemaError) as caught:
            decode(HeartbeatRequest, 4, raw[:size])
        assert type(caught.value) is SchemaError


def test_a_prefix_is_decoded_where_it_begins() -> None:
    message = HeartbeatRequest(group_id="g")
    raw = encode(message, 2)
    assert decode_prefix(HeartbeatRequest, 2, b"??" + raw + b"rest", 2) == (message, 2 + len(raw))


def test_a_versioned_message_begins_with_its_version() -> None:
    subscription = ConsumerProtocolSubscription(topics=["a", "b"], user_data=None, generation_id=3)
    raw = encode_versioned(subscription, 2)
    assert raw[:2] == b"\0\x02"
    assert decode_versioned(ConsumerProtocolSubscription, raw) == (2, subscription)
    with pytest.raises(SchemaError):
        decode_versioned(ConsumerProtocolSubscription, b"\0")
    with pytest.raises(SchemaError, match="followed by"):
        decode_versioned(ConsumerProtocolSubscription, raw + b"x")
    with pytest.raises(UnsupportedVersionError):
        decode_versioned(ConsumerProtocolSubscription, b"\0\x09" + raw[2:])


def test_topic_ids_survive_and_zero_is_shared() -> None:
    known = Uuid(bytes(range(16)))
    topics = [MetadataRequestTopic(topic_id=known, name=None), MetadataRequestTopic(name="t")]
    decoded = decode(MetadataRequest, 12, encode(MetadataRequest(topics=topics), 12))
    assert decoded.topics == topics
    assert decoded.topics[1].topic_id is Uuid.ZERO


def test_generated_source_is_in_linecache() -> None:
    encode(HeartbeatRequest(), 1)
    source = "".join(linecache.getlines("<kclient codec HeartbeatRequest v1>"))
    assert "def encode(o1, out, refs):" in source
    assert "def decode(buf, pos, end, budget):" in source


def test_threads_that_need_a_codec_at_once_build_it_once() -> None:
    MetadataRequest.ENCODERS.pop(7, None)
    MetadataRequest.DECODERS.pop(7, None)
    barrier = threading.Barrier(4)
    seen: list[Any] = []

    def work() -> None:
        barrier.wait(10)
        encode(MetadataRequest(), 7)
        seen.append((MetadataRequest.ENCODERS[7], MetadataRequest.DECODERS[7]))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert len(seen) == 4
    assert len(set(seen)) == 1
