"""A fetch that was filled in is, in every version, what the codec would have written."""

from __future__ import annotations

import pytest

from fetched_batches import batch
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.consumer.internals.fetch_session import SessionFetch, WantedPartition
from kclient.consumer.internals.fetch_template import MAX_PARTITIONS, FetchTemplate
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.header import request_buffers, response_buffers
from kclient.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData

SESSION = 77
IDS = {"a": Uuid(b"a" * 16), "b": Uuid(b"b" * 16)}


def wanted_of(offsets: dict[TopicPartition, int]) -> dict[TopicPartition, WantedPartition]:
    return {
        tp: WantedPartition(offset, IDS[tp.topic], 1000 + tp.partition, 5 if tp.partition else None)
        for tp, offset in offsets.items()
    }


def frame(
    wanted: dict[TopicPartition, WantedPartition],
    epoch: int,
    number: int,
    version: int,
    client_id: str | None,
) -> bytes:
    request = FetchRequest(max_wait_ms=500, min_bytes=1, max_bytes=99, isolation_level=1, rack_id="rack")
    SessionFetch(SESSION, epoch, wanted, (), True).fill(request, version)
    return b"".join(request_buffers(request, version, number, client_id))


@pytest.mark.parametrize("client_id", [None, "", "a-client-\u00fc"])
@pytest.mark.parametrize("version", FetchTemplate.VERSIONS)
def test_it_is_what_the_codec_would_have_written(version: int, client_id: str | None) -> None:
    partitions = [TopicPartition("a", 3), TopicPartition("b", 0), TopicPartition("a", 0)]
    asked = wanted_of(dict.fromkeys(partitions, 10))
    template = FetchTemplate(frame(asked, 1, 1, version, client_id), version, SESSION, asked, bytearray(1))
    template.arm(8, asked, 9, 2)
    data = PartitionData(partition_index=0, records=batch(10, 4))
    answer = FetchResponse(
        session_id=SESSION, responses=[FetchableTopicResponse(topic_id=IDS["a"], partitions=[data])]
    )
    assert template.prepared.follow(b"".join(response_buffers(answer, ApiKeys.FETCH, version, 8))[4:])
    filled = wanted_of({partitions[0]: 10, partitions[1]: 10, partitions[2]: 14})
    assert template.filled_in(asked) == filled
    assert template.prepared.unwritten() == frame(filled, 2, 9, version, client_id)


def test_it_holds_as_many_partitions_as_it_says() -> None:
    asked = wanted_of({TopicPartition("a", number): number for number in range(MAX_PARTITIONS)})
    template = FetchTemplate(frame(asked, 1, 1, 18, "c"), 18, SESSION, asked, bytearray(1))
    template.arm(8, asked, 9, 2)
    assert template.filled_in(asked) == asked
    assert template.prepared.unwritten() == frame(asked, 2, 9, 18, "c")


def test_it_suits_what_differs_by_offsets_alone() -> None:
    tp, other = TopicPartition("a", 0), TopicPartition("a", 1)
    asked = wanted_of({tp: 1})
    template = FetchTemplate(frame(asked, 1, 1, 18, "c"), 18, SESSION, asked, bytearray(1))
    assert template.suits(SESSION, wanted_of({tp: 2}))
    assert not template.suits(SESSION + 1, asked)
    assert not template.suits(SESSION, wanted_of({tp: 1, other: 1}))
    assert not template.suits(SESSION, wanted_of({other: 1}))
    assert not template.suits(SESSION, {})
    assert not template.suits(SESSION, {tp: asked[tp]._replace(leader_epoch=6)})
    assert not template.suits(SESSION, {tp: asked[tp]._replace(topic_id=IDS["b"])})
