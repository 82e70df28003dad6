"""Produce: what of a request is appended, and in which words each partition is answered."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.handlers import Exchange, Handlers
from harness.broker.logs import append_alone
from harness.broker.wire import batch
from kclient.broker.apis.produce import produce
from kclient.broker.metadata.topic_names import INTERNAL_TOPICS
from kclient.broker.network.request_channel import ResponseAction
from kclient.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kclient.record import constants as c

UNKNOWN_TOPIC, INVALID_TOPIC, INVALID_ACKS, UNSUPPORTED_VERSION, NO_TRANSACTIONAL_ID = 3, 17, 21, 35, 53
INVALID_RECORD = 87

Entry = tuple[str, int, bytes | None]


def send(handlers: Handlers, *entries: Entry, version: int = 9, acks: int = -1, **fields: Any) -> Exchange:
    """Send (topic, partition, records)s, a topic's partitions in one entry of the request if they stand together."""
    topics: list[TopicProduceData] = []
    for name, number, records in entries:
        if not topics or topics[-1].name != name:
            topics.append(TopicProduceData(name=name, partition_data=[]))
        topics[-1].partition_data.append(PartitionProduceData(index=number, records=records))
    request = ProduceRequest(**{"acks": acks, "timeout_ms": 1000, "topic_data": topics, **fields})
    return handlers.send(produce, request, version)


def ask(handlers: Handlers, *entries: Entry, **fields: Any) -> list[tuple[str, int, int, int]]:
    """Topic, partition, code and base offset of each part of the answer."""
    answer = send(handlers, *entries, **fields).message
    return [
        (topic.name, part.index, part.error_code, part.base_offset)
        for topic in answer.responses
        for part in topic.partition_responses
    ]


def end(handlers: Handlers, number: int = 0) -> int:
    return handlers.led(number=number).log.log_end_offset


@pytest.fixture
def topic(handlers: Handlers) -> Handlers:
    handlers.topics.create()
    return handlers


def test_partitions_are_answered_in_the_order_of_the_request(topic: Handlers) -> None:
    topic.topics.create("u")
    entries: list[Entry] = [
        (name, number, batch(b"v")) for name, number in (("u", 1), ("t", 0), ("t", 1), ("u", 0))
    ]
    assert ask(topic, *entries) == [("u", 1, 0, 0), ("t", 0, 0, 0), ("t", 1, 0, 0), ("u", 0, 0, 0)]


def test_each_partition_is_appended_to_or_fails_by_itself(topic: Handlers) -> None:
    assert ask(
        topic, ("none", 0, batch(b"v")), ("t", 0, batch(b"v")), ("t", 1, None), ("t", 7, batch(b"v"))
    ) == [
        ("none", 0, UNKNOWN_TOPIC, -1), ("t", 0, 0, 0), ("t", 1, INVALID_RECORD, -1), ("t", 7, UNKNOWN_TOPIC, -1),
    ]  # fmt: skip
    assert (end(topic), end(topic, 1)) == (1, 0)


def test_of_a_partition_that_comes_more_than_once_nothing_is_appended(topic: Handlers) -> None:
    for times in (2, 3, 4):
        entries: list[Entry] = [("t", 0, batch(b"v"))] * times
        answers = ask(topic, *entries, ("t", 1, batch(b"v")))
        assert [code for _, _, code, _ in answers] == [*[INVALID_RECORD] * times, 0]
    assert (end(topic), end(topic, 1)) == (0, 3)


def test_the_brokers_own_topics_are_written_to_by_the_broker_only(topic: Handlers) -> None:
    topic.groups.coordinator_partition("g")
    names = sorted(INTERNAL_TOPICS)
    answers = ask(topic, *[(name, 0, batch(b"v")) for name in names], ("t", 0, batch(b"v")))
    assert answers == [*[(name, 0, INVALID_TOPIC, -1) for name in names], ("t", 0, 0, 0)]


def test_other_acks_than_there_are_refuse_the_whole_request(topic: Handlers) -> None:
    for acks in (-2, 2, 32767, -(2**15)):
        answers = ask(topic, ("t", 0, batch(b"v")), ("none", 0, None), acks=acks)
        assert answers == [("t", 0, INVALID_ACKS, -1), ("none", 0, INVALID_ACKS, -1)]
    assert end(topic) == 0


IN_TRANSACTION = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}


def test_one_batch_of_a_transaction_without_an_id_refuses_the_whole_request(topic: Handlers) -> None:
    answers = ask(topic, ("t", 0, batch(b"v")), ("t", 1, batch(b"v", **IN_TRANSACTION)))
    assert answers == [("t", 0, NO_TRANSACTIONAL_ID, -1), ("t", 1, NO_TRANSACTIONAL_ID, -1)]
    assert (end(topic), end(topic, 1)) == (0, 0)


def test_a_batch_of_a_transaction_behind_another_batch_is_not_appended_either(topic: Handlers) -> None:
    assert ask(topic, ("t", 0, batch(b"v") + batch(b"w", **IN_TRANSACTION)))[0][2] != 0
    assert end(topic) == 0


def test_a_transaction_with_an_id_is_not_served(topic: Handlers) -> None:
    answers = ask(topic, ("t", 0, batch(b"v", **IN_TRANSACTION)), transactional_id="x")
    assert answers == [("t", 0, UNSUPPORTED_VERSION, -1)]


def test_records_that_end_too_soon_are_refused_for_that(topic: Handlers) -> None:
    whole = batch(b"v", **IN_TRANSACTION)
    for length in (0, 1, c.MAGIC_AT, c.MAGIC_AT + 1, c.ATTRIBUTES_AT + 1, c.ATTRIBUTES_AT + 2):
        ((_, _, code, _),) = ask(topic, ("t", 0, whole[:length]))
        assert code != 0
        assert (code == NO_TRANSACTIONAL_ID) == (length > c.ATTRIBUTES_AT + 1), "as far as the bit, it counts"
    assert end(topic) == 0


@pytest.mark.parametrize(
    ("entries", "action"),
    [
        pytest.param([("t", 0, batch(b"v"))], ResponseAction.NOTHING, id="all is appended"),
        pytest.param(
            [("t", 0, batch(b"v")), ("none", 0, batch(b"v"))], ResponseAction.CLOSE, id="one is unknown"
        ),
        pytest.param([("t", 0, batch(b"v")), ("t", 1, None)], ResponseAction.CLOSE, id="one has no records"),
        pytest.param([("t", 0, None)], ResponseAction.CLOSE, id="nothing can be appended"),
        pytest.param([], ResponseAction.NOTHING, id="nothing is asked for"),
    ],
)
def test_without_acks_an_error_can_only_be_told_by_closing(
    topic: Handlers, entries: list[Entry], action: ResponseAction
) -> None:
    assert send(topic, *entries, acks=0).action is action


def test_a_request_for_nothing_is_answered_with_nothing(topic: Handlers) -> None:
    assert ask(topic) == []


def test_records_are_taken_in_every_version(topic: Handlers) -> None:
    versions = range(3, 10)
    answers = [ask(topic, ("t", 0, batch(b"v")), version=version) for version in versions]
    assert answers == [[("t", 0, 0, offset)] for offset in range(len(versions))]


def test_the_brokers_time_and_the_start_of_the_log_are_told(handlers: Handlers) -> None:
    handlers.topics.create(configs={"message.timestamp.type": "LogAppendTime"})
    append_alone(handlers.led().log, batch(b"a", b"b"))
    handlers.led().delete_records(1)
    (answer,) = send(handlers, ("t", 0, batch(b"v"))).message.responses
    (part,) = answer.partition_responses
    assert (part.base_offset, part.log_start_offset) == (2, 1)
    assert part.log_append_time_ms > 0


def test_records_at_fault_are_named_with_the_reason(handlers: Handlers) -> None:
    handlers.topics.create(configs={"message.timestamp.before.max.ms": "1000"})
    (answer,) = send(handlers, ("t", 0, batch(b"a", b"b", first_ms=1))).message.responses
    (part,) = answer.partition_responses
    assert [error.batch_index for error in part.record_errors] == [0, 1]
    assert all(error.batch_index_error_message for error in part.record_errors)
    assert part.error_message
