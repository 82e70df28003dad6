"""Questions about topics, subscribed to or not: answers, errors, and what is asked again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.mock_client import MockClient
from harness.mock_time import MockTime
from kclient.client.request_sender import NEVER, RequestSender
from kclient.common.node import Node
from kclient.common.topic_partition import PartitionInfo
from kclient.consumer.internals.requests import Request
from kclient.consumer.internals.topic_metadata import TopicMetadataManager
from kclient.errors import Errors, InvalidTopicError, KafkaError, KafkaTimeoutError, TopicAuthorizationError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import metadata
from kclient.utils.backoff import ExponentialBackoff

NODE = Node(1, "host", 9092)
Found = dict[str, list[PartitionInfo]]


def refuse(code: int) -> Callable[[Any, int], Any]:
    def handler(request: Any, version: int) -> Any:
        topics = [
            metadata.MetadataResponseTopic(name=topic.name, error_code=code) for topic in request.topics
        ]
        return metadata.MetadataResponse(topics=topics)

    return handler


def asked(rig: Any) -> list[Any]:
    """The names of each request; None for all topics."""
    return [
        None if request.topics is None else [topic.name for topic in request.topics]
        for request in rig.sent(ApiKeys.METADATA)
    ]


def test_one_topic_is_asked_for_by_name_and_all_without_one(rig: Any) -> None:
    assert [info.partition for info in rig.consumer.partitions_for("t")] == [0, 1]
    assert {topic: len(infos) for topic, infos in rig.consumer.list_topics().items()} == {"t": 2, "u": 2}
    assert asked(rig) == [["t"], None]


@pytest.mark.parametrize("allowed", [True, False])
def test_brokers_may_make_a_topic_that_is_asked_for_only_if_that_is_allowed(
    make_rig: Callable[..., Any], allowed: bool
) -> None:
    rig = make_rig(allow_auto_create_topics=allowed)
    rig.consumer.partitions_for("t")
    (request,) = rig.sent(ApiKeys.METADATA)
    assert request.allow_auto_topic_creation is allowed


def test_a_topic_that_does_not_exist_has_no_partitions(rig: Any) -> None:
    assert rig.consumer.partitions_for("missing") == []


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (Errors.TOPIC_AUTHORIZATION_FAILED, TopicAuthorizationError),
        (Errors.INVALID_TOPIC_EXCEPTION, InvalidTopicError),
        (Errors.UNKNOWN_SERVER_ERROR, KafkaError),
    ],
)
def test_an_error_that_stays_is_raised_and_not_asked_for_again(
    rig: Any, code: int, error: type[KafkaError]
) -> None:
    rig.on(ApiKeys.METADATA, refuse(code))
    with pytest.raises(error):
        rig.consumer.partitions_for("t")
    assert len(asked(rig)) == 1


@pytest.mark.parametrize("reply", [refuse(Errors.LEADER_NOT_AVAILABLE), ConnectionError()])
def test_a_passing_error_is_asked_for_again_after_a_pause(rig: Any, reply: Any) -> None:
    rig.on(ApiKeys.METADATA, reply, reply)
    started_ms = rig.time.monotonic_ms()
    assert len(rig.consumer.partitions_for("t")) == 2
    assert len(asked(rig)) == 3
    assert rig.time.monotonic_ms() - started_ms >= 100


def test_when_the_time_is_over_the_last_error_says_why(rig: Any) -> None:
    rig.on(ApiKeys.METADATA, *[refuse(Errors.LEADER_NOT_AVAILABLE)] * 1000)
    with pytest.raises(KafkaTimeoutError, match="No broker answered for topic metadata in time: "):
        rig.consumer.partitions_for("t", timeout_ms=1000)
    assert 2 < len(asked(rig)) < 20


def answer(*topics: metadata.MetadataResponseTopic) -> metadata.MetadataResponse:
    return metadata.MetadataResponse(
        brokers=[metadata.MetadataResponseBroker(node_id=1, host="host", port=9092)], topics=list(topics)
    )


def topic(name: str, partitions: int = 0, error: Errors = Errors.NONE) -> metadata.MetadataResponseTopic:
    return metadata.MetadataResponseTopic(
        name=name,
        error_code=int(error),
        partitions=[
            metadata.MetadataResponsePartition(partition_index=n, leader_id=1) for n in range(partitions)
        ],
    )


class Rounds:
    """The manager alone, with rounds of an I/O loop around it."""

    def __init__(self) -> None:
        self.time = MockTime()
        self.client = MockClient(self.time)
        self.client.least_loaded_node = lambda now_ms: NODE  # type: ignore[method-assign,assignment]
        self.sender = RequestSender(self.client, 30_000)
        self.manager = TopicMetadataManager(
            self.sender, ExponentialBackoff(100, 1000), allow_auto_topic_creation=True
        )

    def ask(self, *topics: str, timeout_ms: int = 5000) -> Request[Found]:
        """Ask for topics, for all of them without any."""
        request = Request[Found](self.time.monotonic_ms() + timeout_ms)
        self.manager.fetch(topics or None, request)
        self.round()
        return request

    def round(self, after_ms: int = 0) -> int:
        """One round; returns for how long the manager wants no other."""
        self.time.advance(after_ms)
        now_ms = self.time.monotonic_ms()
        wait_ms = self.manager.poll(now_ms)
        for _ in range(3):
            self.sender.poll(0, now_ms)
        return wait_ms

    def reply(self, response: metadata.MetadataResponse | None) -> None:
        """Answer the oldest request, or cut its connection for None."""
        self.client.respond(response, disconnected=response is None)
        self.sender.poll(0, self.time.monotonic_ms())

    @property
    def sent(self) -> list[Any]:
        return [each.message for each in self.client.sent if each.request.api_key is ApiKeys.METADATA]


@pytest.fixture
def rounds() -> Rounds:
    return Rounds()


@pytest.mark.parametrize("cut_off", [True, False])
def test_what_passes_is_asked_again_after_a_backoff_that_grows(rounds: Rounds, cut_off: bool) -> None:
    request = rounds.ask("t")
    waits = []
    for _ in range(3):
        rounds.reply(None if cut_off else answer(topic("t", error=Errors.LEADER_NOT_AVAILABLE)))
        waits.append(rounds.round())
        before = len(rounds.sent)
        rounds.round(after_ms=waits[-1] - 1)
        assert len(rounds.sent) == before, "too early"
        rounds.round(after_ms=1)
        assert len(rounds.sent) == before + 1
    for wait_ms, middle_ms in zip(waits, (100, 200, 400), strict=True):
        assert middle_ms * 0.8 <= wait_ms <= middle_ms * 1.2
    rounds.reply(answer(topic("t", 1)))
    assert list(request.result(0)) == ["t"]


def test_a_late_answer_to_a_request_that_is_over_changes_nothing(rounds: Rounds) -> None:
    request = rounds.ask("t", timeout_ms=1000)
    rounds.round(after_ms=1000)
    rounds.reply(answer(topic("t", 1)))
    assert isinstance(request.exception(0), KafkaTimeoutError)


def test_the_loop_is_woken_at_the_deadline_and_not_at_all_without_requests(rounds: Rounds) -> None:
    assert rounds.round() == NEVER
    request = rounds.ask("t", timeout_ms=1000)
    assert rounds.round(after_ms=300) == 700
    rounds.reply(answer(topic("t", 1)))
    assert request.done()
    assert rounds.round() == NEVER


def test_requests_are_answered_each_for_itself(rounds: Rounds) -> None:
    first, second = rounds.ask("t"), rounds.ask("u")
    rounds.reply(answer(topic("t", 1)))
    assert (first.done(), second.done()) == (True, False)
    rounds.reply(answer(topic("u", 1)))
    assert list(second.result(0)) == ["u"]
