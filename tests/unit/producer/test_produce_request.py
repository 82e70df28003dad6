"""ProduceRequestPlan: versions, names or ids of topics, and batches found again in answers."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.compress.codec import CompressionType
from kclient.producer.internals.partition_queue import PartitionQueue
from kclient.producer.internals.produce_request import TOPIC_ID_VERSION, ProduceRequestPlan, versions_for
from kclient.producer.internals.producer_batch import ProducerBatch
from kclient.protocol import encode
from kclient.record import BatchBuilder, BatchResult

IDS = {"a": Uuid(b"a" * 16), "b": Uuid(b"b" * 16)}
BY_NAME = TOPIC_ID_VERSION - 1


def batch(topic: str, partition: int) -> ProducerBatch:
    builder = BatchBuilder(topic, partition, 1000, BatchResult(topic, partition), 0)
    builder.append(0, None, f"{topic}{partition}".encode(), None)
    queue = PartitionQueue(TopicPartition(topic, partition))
    made = ProducerBatch(builder, queue, number=0, created_ms=0, charge=0, queued_ms=0)
    made.seal(0, None)
    return made


def plan(
    *batches: ProducerBatch,
    ids: Mapping[str, Uuid] = IDS,
    codec: CompressionType = CompressionType.NONE,
) -> ProduceRequestPlan:
    return ProduceRequestPlan(batches, ids.get, acks=-1, timeout_ms=500, codec=codec)


@pytest.mark.parametrize(
    ("codec", "by_id", "versions"),
    [
        (CompressionType.NONE, True, (3, None)),
        (CompressionType.LZ4, False, (3, 12)),
        (CompressionType.ZSTD, True, (7, None)),
        (CompressionType.ZSTD, False, (7, 12)),
    ],
)
def test_codecs_and_missing_ids_narrow_the_versions(
    codec: CompressionType, by_id: bool, versions: tuple[int, int | None]
) -> None:
    assert versions_for(codec, by_id=by_id) == versions


def test_one_topic_without_an_id_keeps_the_whole_request_from_using_them() -> None:
    assert plan(batch("a", 0), batch("b", 0)).max_version is None
    mixed = plan(batch("a", 0), batch("unknown", 0), batch("b", 0))
    assert mixed.max_version == BY_NAME
    assert [topic.name for topic in mixed.build(BY_NAME).topic_data] == ["a", "unknown", "b"]


def test_a_topic_is_asked_for_its_id_once() -> None:
    asked: list[str] = []

    def topic_id(topic: str) -> Uuid | None:
        asked.append(topic)
        return None

    batches = [batch("a", 0), batch("b", 0), batch("a", 1)]
    ProduceRequestPlan(batches, topic_id, acks=1, timeout_ms=1, codec=CompressionType.NONE)
    assert asked == ["a", "b"]


def test_batches_of_a_topic_are_together_however_they_came() -> None:
    request = plan(batch("a", 1), batch("b", 0), batch("a", 0)).build(TOPIC_ID_VERSION)
    assert [
        (topic.topic_id, topic.name, [data.index for data in topic.partition_data])
        for topic in request.topic_data
    ] == [(IDS["a"], "", [1, 0]), (IDS["b"], "", [0])]
    assert (request.acks, request.timeout_ms, request.transactional_id) == (-1, 500, None)


@pytest.mark.parametrize("version", [3, BY_NAME, TOPIC_ID_VERSION])
def test_the_request_can_be_written_in_every_version_and_has_the_batches_own_bytes(version: int) -> None:
    made = batch("a", 0)
    request = plan(made).build(version)
    assert bytes(made.wire_bytes()) in encode(request, version)
    records = request.topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records.obj is made.wire_bytes().obj


@pytest.mark.parametrize("others", [0, 1])
def test_a_batch_is_found_by_name_or_id_alone_or_among_others(others: int) -> None:
    wanted = batch("a", 1)
    made = plan(wanted, *(batch("b", i) for i in range(others)))
    assert made.find("a", Uuid.ZERO, 1) is wanted
    assert made.find("", IDS["a"], 1) is wanted


@pytest.mark.parametrize("others", [0, 1])
def test_what_was_not_sent_is_not_found_in_an_answer(others: int) -> None:
    made = plan(batch("a", 1), *(batch("b", i) for i in range(others)))
    for name, topic_id, partition in (
        ("a", Uuid.ZERO, 0),
        ("c", Uuid.ZERO, 1),
        ("", IDS["a"], 2),
        ("", Uuid(b"c" * 16), 1),
        ("", Uuid.ZERO, 1),
        ("", IDS["b"], 1),
    ):
        assert made.find(name, topic_id, partition) is None


def test_an_answer_by_id_finds_no_topic_whose_id_was_not_known() -> None:
    made = plan(batch("a", 0), batch("b", 0), ids={})
    assert made.find("", IDS["a"], 0) is None
    assert made.find("b", Uuid.ZERO, 0) is made.batches[1]
