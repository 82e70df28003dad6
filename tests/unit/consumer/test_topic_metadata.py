"""Partitions of any topic on request: asked of any broker, and nothing is created or remembered by the way."""

from __future__ import annotations

from typing import Any

import pytest

from kclient.client.request_sender import NEVER, RequestSender
from kclient.common.node import Node
from kclient.common.topic_partition import PartitionInfo
from kclient.consumer.internals.requests import Request
from kclient.consumer.internals.topic_metadata import TopicMetadataManager
from kclient.errors import Errors, InvalidTopicError, KafkaTimeoutError, TopicAuthorizationError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kclient.testing.mock_client import MockClient
from kclient.testing.mock_time import MockTime
from kclient.utils.backoff import ExponentialBackoff

NODE = Node(1, "host", 9092)
Found = dict[str, list[PartitionInfo]]


def answer(*topics: MetadataResponseTopic) -> MetadataResponse:
    return MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1, host="host", port=9092)], topics=list(topics)
    )


def topic(name: str, partitions: int = 0, error: Errors = Errors.NONE) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=name,
        error_code=int(error),
        partitions=[MetadataResponsePartition(partition_index=n, leader_id=1) for n in range(partitions)],
    )


class Rig:
    """The manager with rounds of an I/O loop around it."""

    def __init__(self, *, creates: bool = True) -> None:
        self.time = MockTime()
        self.client = MockClient(self.time)
        self.client.least_loaded_node = lambda now_ms: NODE  # type: ignore[method-assign,assignment]
        self.sender = RequestSender(self.client, 30_000)
        self.manager = TopicMetadataManager(
            self.sender, ExponentialBackoff(100, 1000), allow_auto_topic_creation=creates
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

    def reply(self, response: MetadataResponse | None) -> None:
        """Answer the oldest request, or cut its connection for None."""
        self.client.respond(response, disconnected=response is None)
        self.sender.poll(0, self.time.monotonic_ms())

    @property
    def sent(self) -> list[Any]:
        return [each.message for each in self.client.sent if each.request.api_key is ApiKeys.METADATA]


@pytest.fixture
def rig() -> Rig:
    return Rig()


def test_partitions_are_those_of_the_answer(rig: Rig) -> None:
    request = rig.ask("t", "u")
    rig.reply(answer(topic("u", 1), topic("t", 2)))
    found = request.result(0)
    assert {name: [info.partition for info in infos] for name, infos in found.items()} == {
        "t": [0, 1],
        "u": [0],
    }
    assert found["t"][0].leader == NODE


def test_a_topic_that_does_not_exist_is_left_out(rig: Rig) -> None:
    request = rig.ask("t", "gone")
    rig.reply(answer(topic("t", 1), topic("gone", error=Errors.UNKNOWN_TOPIC_OR_PARTITION)))
    assert list(request.result(0)) == ["t"]


def test_all_topics_are_asked_for_without_a_list(rig: Rig) -> None:
    request = rig.ask()
    assert rig.sent[0].topics is None
    rig.reply(answer(topic("t", 1)))
    assert list(request.result(0)) == ["t"]


@pytest.mark.parametrize("creates", [True, False])
def test_topics_are_created_only_where_the_setting_says_so(creates: bool) -> None:
    rig = Rig(creates=creates)
    rig.ask("t")
    assert rig.sent[0].allow_auto_topic_creation is creates


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (Errors.TOPIC_AUTHORIZATION_FAILED, TopicAuthorizationError),
        (Errors.INVALID_TOPIC_EXCEPTION, InvalidTopicError),
    ],
)
def test_what_will_not_pass_is_raised_with_the_topic_and_not_repeated(
    rig: Rig, error: Errors, expected: type[Exception]
) -> None:
    request = rig.ask("t", "secret")
    rig.reply(answer(topic("t", 1), topic("secret", error=error)))
    with pytest.raises(expected, match="'secret'"):
        request.result(0)
    rig.round(after_ms=2000)
    assert len(rig.sent) == 1


@pytest.mark.parametrize("cut_off", [True, False])
def test_what_passes_is_asked_again_after_a_backoff_that_grows(rig: Rig, cut_off: bool) -> None:
    request = rig.ask("t")
    waits = []
    for _ in range(3):
        rig.reply(None if cut_off else answer(topic("t", error=Errors.LEADER_NOT_AVAILABLE)))
        waits.append(rig.round())
        before = len(rig.sent)
        rig.round(after_ms=waits[-1] - 1)
        assert len(rig.sent) == before, "too early"
        rig.round(after_ms=1)
        assert len(rig.sent) == before + 1
    for wait_ms, middle_ms in zip(waits, (100, 200, 400), strict=True):
        assert middle_ms * 0.8 <= wait_ms <= middle_ms * 1.2
    rig.reply(answer(topic("t", 1)))
    assert list(request.result(0)) == ["t"]


def test_what_is_not_answered_in_time_fails_with_the_last_reason(rig: Rig) -> None:
    request = rig.ask("t", timeout_ms=1000)
    rig.reply(answer(topic("t", error=Errors.LEADER_NOT_AVAILABLE)))
    rig.round(after_ms=1000)
    with pytest.raises(KafkaTimeoutError, match=r"No broker answered.*LEADER_NOT_AVAILABLE"):
        request.result(0)


def test_a_late_answer_to_a_request_that_is_over_changes_nothing(rig: Rig) -> None:
    request = rig.ask("t", timeout_ms=1000)
    rig.round(after_ms=1000)
    rig.reply(answer(topic("t", 1)))
    assert isinstance(request.exception(0), KafkaTimeoutError)


def test_the_loop_is_woken_at_the_deadline_and_not_at_all_without_requests(rig: Rig) -> None:
    assert rig.round() == NEVER
    request = rig.ask("t", timeout_ms=1000)
    assert rig.round(after_ms=300) == 700
    rig.reply(answer(topic("t", 1)))
    assert request.done()
    assert rig.round() == NEVER


def test_requests_are_answered_each_for_itself(rig: Rig) -> None:
    first, second = rig.ask("t"), rig.ask("u")
    rig.reply(answer(topic("t", 1)))
    assert (first.done(), second.done()) == (True, False)
    rig.reply(answer(topic("u", 1)))
    assert list(second.result(0)) == ["u"]
