"""Fetch: what the request asks of the partitions, and what the answer says of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.broker.handlers import Exchange, Handlers
from harness.broker.logs import append_alone
from harness.broker.wire import batch
from kclient.broker.apis.fetch import fetch
from kclient.broker.log.producer_state import AppendOrigin
from kclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic
from kclient.record import ControlRecordType, EndTransactionMarker, iter_batches

OUT_OF_RANGE, UNKNOWN_TOPIC, CLUSTER_AUTHORIZATION, SESSION_NOT_FOUND, BAD_SESSION_EPOCH = 1, 3, 31, 70, 71
FENCED_EPOCH, UNKNOWN_EPOCH, UNKNOWN_TOPIC_ID = 74, 75, 100
COMMITTED = 1
LONG_MS = 60_000


def partition(number: int = 0, offset: int = 0, max_bytes: int = 1 << 20, **fields: Any) -> FetchPartition:
    return FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=max_bytes, **fields)


def send(
    handlers: Handlers, *wanted: tuple[str, FetchPartition], version: int = 12, **fields: Any
) -> Exchange:
    topics = [FetchTopic(topic=name, partitions=[part]) for name, part in wanted]
    given = {
        "max_wait_ms": 0,
        "min_bytes": 1,
        "max_bytes": 1 << 20,
        "session_epoch": -1,
        "topics": topics,
        **fields,
    }
    return handlers.send(fetch, FetchRequest(**given), version)


def ask(handlers: Handlers, *wanted: tuple[str, FetchPartition], **fields: Any) -> list[Any]:
    """The partitions of an answer that comes at once."""
    answer = send(handlers, *wanted, **fields).message
    assert answer.error_code == 0
    return [part for topic in answer.responses for part in topic.partitions]


def values(part: Any) -> list[bytes]:
    return [record.value for found in iter_batches(part.records) for record in found.records()]


@pytest.fixture
def filled(handlers: Handlers) -> Handlers:
    """Topics t and u with a record in partition 0 each, and none in partition 1."""
    for name in ("t", "u"):
        handlers.topics.create(name)
        append_alone(handlers.led(name).log, batch(name.encode()))
    return handlers


def test_partitions_are_answered_in_the_order_of_the_request(filled: Handlers) -> None:
    wanted = [("u", partition(1)), ("t", partition(0)), ("t", partition(1)), ("u", partition(0))]
    answer = send(filled, *wanted).message
    assert [(topic.topic, [part.partition_index for part in topic.partitions]) for topic in answer.responses] == [
        ("u", [1]), ("t", [0, 1]), ("u", [0]),
    ]  # fmt: skip


def test_each_partition_is_read_or_fails_by_itself(filled: Handlers) -> None:
    parts = ask(
        filled,
        ("none", partition()),
        ("t", partition(0)),
        ("t", partition(9)),
        ("u", partition(0, 5)),
        ("u", partition(1, current_leader_epoch=3)),
    )
    assert [part.error_code for part in parts] == [
        UNKNOWN_TOPIC,
        0,
        UNKNOWN_TOPIC,
        OUT_OF_RANGE,
        UNKNOWN_EPOCH,
    ]
    assert values(parts[1]) == [b"t"]
    assert [(part.high_watermark, part.log_start_offset) for part in parts] == [
        (-1, -1), (1, 0), (-1, -1), (1, 0), (-1, -1),
    ]  # fmt: skip


def test_a_follower_is_refused_before_anything_is_read(filled: Handlers) -> None:
    for replica_id in (0, 1, 2**31 - 1):
        answer = send(filled, ("t", partition()), replica_id=replica_id, max_wait_ms=LONG_MS).message
        assert (answer.error_code, answer.responses) == (CLUSTER_AUTHORIZATION, [])


@pytest.fixture
def transactional(filled: Handlers) -> Handlers:
    """Behind the record of partition t-0, one of a transaction that is open."""
    in_transaction = {"producer_id": 7, "producer_epoch": 0, "base_sequence": 0, "is_transactional": True}
    append_alone(filled.led().log, batch(b"open", **in_transaction))
    return filled


def test_a_reader_of_committed_records_gets_none_of_an_open_transaction(transactional: Handlers) -> None:
    (everything,) = ask(transactional, ("t", partition()))
    (committed,) = ask(transactional, ("t", partition()), isolation_level=COMMITTED)
    assert (values(everything), values(committed)) == ([b"t", b"open"], [b"t"])
    assert (committed.high_watermark, committed.last_stable_offset) == (2, 1)


def test_aborted_transactions_are_named_to_readers_of_committed_records_only(transactional: Handlers) -> None:
    (committed,) = ask(transactional, ("t", partition()), isolation_level=COMMITTED)
    assert committed.aborted_transactions == []
    marker = EndTransactionMarker(ControlRecordType.ABORT, 0).batch(0, 1, 0, 7, 0)
    append_alone(transactional.led().log, marker, origin=AppendOrigin.COORDINATOR)
    (committed,) = ask(transactional, ("t", partition()), isolation_level=COMMITTED)
    assert [(aborted.producer_id, aborted.first_offset) for aborted in committed.aborted_transactions] == [
        (7, 1)
    ]
    (everything,) = ask(transactional, ("t", partition()))
    assert everything.aborted_transactions is None


def test_where_logs_part_is_told_and_no_error(filled: Handlers) -> None:
    (part,) = ask(filled, ("t", partition(0, 9, last_fetched_epoch=0)), max_wait_ms=LONG_MS)
    assert (part.error_code, part.diverging_epoch.epoch, part.diverging_epoch.end_offset) == (0, 0, 1)
    assert values(part) == []


def test_records_come_in_every_version(filled: Handlers) -> None:
    for version in range(4, 13):
        session = {} if version < 7 else {"session_epoch": -1}
        wanted = [FetchTopic(topic="t", partitions=[partition()])]
        request = FetchRequest(max_bytes=1000, topics=wanted, max_wait_ms=0, **session)
        (topic,) = filled.send(fetch, request, version).message.responses
        assert values(topic.partitions[0]) == [b"t"]


def test_no_more_bytes_are_waited_for_than_the_answer_may_have(filled: Handlers) -> None:
    exchange = send(filled, ("t", partition()), min_bytes=2**31 - 1, max_bytes=10, max_wait_ms=LONG_MS)
    assert values(exchange.message.responses[0].partitions[0]) == [b"t"]


def test_the_broker_limits_what_a_request_may_ask_for(make_handlers: Callable[..., Handlers]) -> None:
    handlers = make_handlers(fetch_max_bytes=1024)
    handlers.topics.create()
    for _ in range(3):
        append_alone(handlers.led().log, batch(bytes(900)))
    (part,) = ask(handlers, ("t", partition(0, max_bytes=2**31 - 1)), max_bytes=2**31 - 1)
    assert len(part.records) <= 1024


def test_limits_that_make_no_sense_are_answered_at_once_with_a_batch(filled: Handlers) -> None:
    for limits in ({"max_bytes": -1}, {"max_bytes": 0}, {"min_bytes": -(2**31)}, {"max_wait_ms": -1}):
        (part,) = ask(filled, ("t", partition(0, max_bytes=-5)), **limits)
        assert values(part) == [b"t"]


def test_a_request_without_bytes_to_read_is_parked(filled: Handlers) -> None:
    exchange = send(filled, ("t", partition(1)), max_wait_ms=LONG_MS)
    assert exchange.waiting


@pytest.mark.parametrize(
    ("session", "error"),
    [
        ({"session_id": 99, "session_epoch": 1}, SESSION_NOT_FOUND),
        ({"session_id": 0, "session_epoch": 7}, SESSION_NOT_FOUND),
    ],
)
def test_a_session_that_is_not_there_is_told_of_and_nothing_is_read(
    filled: Handlers, session: dict[str, int], error: int
) -> None:
    answer = send(filled, ("t", partition()), max_wait_ms=LONG_MS, **session).message
    assert (answer.error_code, answer.session_id, answer.responses) == (error, 0, [])


def test_a_partition_that_is_forgotten_is_read_no_more(filled: Handlers) -> None:
    opened = send(filled, ("t", partition()), ("u", partition()), session_epoch=0).message
    assert len(opened.responses) == 2
    for name in ("t", "u"):
        append_alone(filled.led(name).log, batch(b"more"))
    forgotten = [ForgottenTopic(topic="t", partitions=[0])]
    again = send(
        filled, session_id=opened.session_id, session_epoch=1, forgotten_topics_data=forgotten
    ).message
    assert [topic.topic for topic in again.responses] == ["u"]
    wrong = send(filled, session_id=opened.session_id, session_epoch=1).message
    assert (wrong.error_code, wrong.responses) == (BAD_SESSION_EPOCH, [])


def test_a_topic_that_the_broker_hears_of_later_is_read_in_the_same_session(
    filled: Handlers, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = filled.broker.controller.cache
    topic = cache.existing_topic("t")
    wanted = FetchTopic(topic_id=topic.id, partitions=[partition()])
    with monkeypatch.context() as patch:
        patch.setattr(type(cache), "topic_by_id", lambda *_: None)
        opened = send(filled, version=13, session_epoch=0, topics=[wanted]).message
    assert [part.error_code for part in opened.responses[0].partitions] == [UNKNOWN_TOPIC_ID]
    later = send(filled, version=13, session_id=opened.session_id, session_epoch=1).message
    assert [(each.topic_id, values(each.partitions[0])) for each in later.responses] == [(topic.id, [b"t"])]
