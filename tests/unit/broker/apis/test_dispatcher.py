"""ApiDispatcher: requests that reach no handler, and handlers that fail."""

from __future__ import annotations

import logging
import struct
from typing import Any

import attrs
import pytest

from harness.broker.handlers import CLIENT_HOST, CLIENT_ID, CORRELATION_ID, Exchange, Handlers
from harness.broker.wire import batch
from kclient.broker.apis.dispatcher import ApiDispatcher
from kclient.broker.network.request_channel import Request, ResponseAction
from kclient.broker.security.principal import ANONYMOUS
from kclient.errors import Errors
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.api_versions import ApiVersionsRequest
from kclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kclient.protocol.messages.list_groups import ListGroupsRequest
from kclient.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kclient.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kclient.protocol.schema import Message

ERROR_35 = 35
WARNINGS_MS = 60_000


class Dispatching:
    """A dispatcher, and the frames it is given."""

    def __init__(self, handlers: Handlers) -> None:
        self.handlers = handlers
        self.dispatcher = ApiDispatcher(handlers.broker)

    def take(self, frame: bytes, *, answer_to: Message | None = None, version: int = 0) -> Exchange:
        exchange = Exchange(ListGroupsRequest() if answer_to is None else answer_to, version)
        self.dispatcher.handle(
            Request("0-0", CLIENT_HOST, 0, ANONYMOUS, memoryview(frame), exchange.responses.append)
        )
        return exchange

    def ask(self, request: Message, version: int) -> Exchange:
        call, _ = self.handlers.call(request, version)
        return self.take(bytes(call.request.frame), answer_to=request, version=version)


@pytest.fixture
def dispatching(handlers: Handlers) -> Dispatching:
    return Dispatching(handlers)


def header(api: int, version: int) -> bytes:
    return struct.pack(">hhih", api, version, 77, -1)


def test_a_request_is_answered_by_the_handler_of_its_api(dispatching: Dispatching) -> None:
    assert dispatching.ask(ListGroupsRequest(), 4).message.groups == []


def test_a_request_that_its_handler_parks_is_not_answered_now(dispatching: Dispatching) -> None:
    dispatching.handlers.topics.create()
    wanted = FetchPartition(partition=0, partition_max_bytes=1000)
    request = FetchRequest(
        max_wait_ms=60_000, min_bytes=1, max_bytes=1000, session_epoch=-1,
        topics=[FetchTopic(topic="t", partitions=[wanted])],
    )  # fmt: skip
    exchange = dispatching.ask(request, 12)
    assert exchange.waiting


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        pytest.param(b"", "it has only 0 bytes", id="nothing"),
        pytest.param(bytes(7), "it has only 7 bytes", id="a byte too few"),
        pytest.param(header(-1, 0), "its API -1 is not served", id="a negative API"),
        pytest.param(header(ApiKeys.LIST_GROUPS, -1), "version -1 of LIST_GROUPS", id="a negative version"),
        pytest.param(header(ApiKeys.LIST_GROUPS, 0)[:8], "", id="no client id"),
        pytest.param(header(ApiKeys.OFFSET_DELETE, 0), "", id="no body"),
        pytest.param(header(ApiKeys.DELETE_TOPICS, 1) + b"\xff\xff\xff\xff", "", id="null for an array"),
    ],
)
def test_a_request_that_cannot_be_understood_closes_the_connection_and_says_why(
    dispatching: Dispatching, caplog: pytest.LogCaptureFixture, frame: bytes, why: str
) -> None:
    assert dispatching.take(frame).action is ResponseAction.CLOSE
    (record,) = caplog.records
    assert record.levelno == logging.WARNING
    assert f"Closing a connection from {CLIENT_HOST}" in record.getMessage()
    assert why in record.getMessage()


def test_every_peer_is_named_though_others_were_before(
    dispatching: Dispatching, caplog: pytest.LogCaptureFixture
) -> None:
    for host in ("10.0.0.1", "10.0.0.2", "10.0.0.1"):
        dispatching.dispatcher.handle(Request("0-0", host, 0, ANONYMOUS, memoryview(b""), lambda _: None))
    assert [host in caplog.text for host in ("10.0.0.1", "10.0.0.2")] == [True, True]
    assert len(caplog.records) == 2


def test_many_that_cannot_be_understood_are_warned_of_once_a_minute(
    dispatching: Dispatching, caplog: pytest.LogCaptureFixture
) -> None:
    exchanges = [dispatching.take(b"") for _ in range(5)]
    assert [exchange.action for exchange in exchanges] == [ResponseAction.CLOSE] * 5
    assert len(caplog.records) == 1
    dispatching.handlers.time.advance(WARNINGS_MS)
    dispatching.take(b"")
    assert len(caplog.records) == 2
    assert "4 more times" in caplog.text


@pytest.mark.parametrize("version", [-1, 5, -(2**15)])
def test_api_versions_is_answered_in_any_version_in_version_0(dispatching: Dispatching, version: int) -> None:
    exchange = dispatching.take(header(ApiKeys.API_VERSIONS, version)[:8], answer_to=ApiVersionsRequest())
    assert exchange.message.error_code == ERROR_35


def without_groups(handlers: Handlers) -> Dispatching:
    missing: Any = None
    handlers.broker = attrs.evolve(handlers.broker, groups=missing)
    return Dispatching(handlers)


def test_an_unexpected_error_of_a_handler_is_answered_and_logged_with_its_request(
    handlers: Handlers, caplog: pytest.LogCaptureFixture
) -> None:
    exchange = without_groups(handlers).ask(ListGroupsRequest(), 4)
    assert exchange.message.error_code == int(Errors.UNKNOWN_SERVER_ERROR)
    (record,) = caplog.records
    assert record.getMessage() == (
        f"ListGroups request of version 4 with correlation id {CORRELATION_ID} from client '{CLIENT_ID}' "
        f"at {CLIENT_HOST} failed"
    )
    assert "AttributeError" in caplog.text


def test_every_partition_of_a_failed_request_has_the_error(handlers: Handlers) -> None:
    topics = [
        OffsetCommitRequestTopic(
            name=name, partitions=[OffsetCommitRequestPartition(partition_index=number) for number in numbers]
        )
        for name, numbers in (("a", (3, 1)), ("b", (0,)))
    ]
    handlers.topics.create("a", 4)
    handlers.topics.create("b")
    answer = without_groups(handlers).ask(OffsetCommitRequest(group_id="g", topics=topics), 7).message
    assert [
        (topic.name, [(one.partition_index, one.error_code) for one in topic.partitions])
        for topic in answer.topics
    ] == [("a", [(3, -1), (1, -1)]), ("b", [(0, -1)])]


def test_a_failed_write_that_wants_no_answer_closes_the_connection(handlers: Handlers) -> None:
    missing: Any = None
    handlers.broker = attrs.evolve(handlers.broker, replicas=missing)
    data = [PartitionProduceData(index=0, records=batch(b"1"))]
    request = ProduceRequest(acks=0, topic_data=[TopicProduceData(name="t", partition_data=data)])
    handlers.topics.create()
    assert Dispatching(handlers).ask(request, 7).action is ResponseAction.CLOSE


def test_bytes_behind_the_request_are_no_part_of_it(dispatching: Dispatching) -> None:
    frame = bytes(dispatching.handlers.call(ListGroupsRequest(), 0)[0].request.frame)
    assert dispatching.take(frame + b"\xff" * 100).message.error_code == 0
