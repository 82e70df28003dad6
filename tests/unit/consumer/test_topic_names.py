"""Names of topics that are known by their ids alone."""

from __future__ import annotations

import pytest

from harness.mock_client import MockClient
from harness.mock_time import MockTime
from kclient.client.request_sender import NEVER, RequestSender
from kclient.common.node import Node
from kclient.common.uuid import Uuid
from kclient.consumer.internals.coordinator.topic_names import TopicNames
from kclient.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from kclient.utils.backoff import ExponentialBackoff

NODE = Node(1, "host", 9092)
A, B = Uuid(b"a" * 16), Uuid(b"b" * 16)


class Rig:
    def __init__(self) -> None:
        self.time = MockTime()
        self.client = MockClient(self.time)
        self.client.least_loaded_node = lambda now_ms: NODE  # type: ignore[method-assign,assignment]
        self.sender = RequestSender(self.client, 30_000)
        self.found: list[frozenset[str]] = []
        self.names = TopicNames(self.sender, ExponentialBackoff(100, 1000, jitter=0), self.found.append)

    def poll(self, *wanted: Uuid) -> int:
        now_ms = self.time.monotonic_ms()
        wait_ms = self.names.poll(frozenset(wanted), now_ms)
        self.sender.poll(0, now_ms)
        self.sender.poll(0, now_ms)
        return wait_ms


@pytest.fixture
def rig() -> Rig:
    return Rig()


def answer(*topics: tuple[Uuid, str | None, int]) -> MetadataResponse:
    return MetadataResponse(
        topics=[
            MetadataResponseTopic(topic_id=topic_id, name=name, error_code=code)
            for topic_id, name, code in topics
        ]
    )


def test_topics_are_asked_for_by_id_and_never_created(rig: Rig) -> None:
    rig.client.prepare_response(answer((A, "a", 0), (B, None, 100)))
    rig.poll(A, B)
    (sent,) = rig.client.sent
    assert sent.version >= 12
    assert not sent.message.allow_auto_topic_creation
    assert [(topic.topic_id, topic.name) for topic in sent.message.topics] == [(A, None), (B, None)]
    assert rig.found == [{"a"}]


def test_one_that_is_not_found_is_asked_for_again_later(rig: Rig) -> None:
    rig.client.prepare_response(answer((A, None, 100)))
    assert rig.poll(A) == NEVER
    assert rig.poll(A) == 100
    rig.time.advance(100)
    rig.client.prepare_response(answer((A, None, 100)))
    rig.poll(A)
    assert rig.poll(A) == 200
    assert len(rig.client.sent) == 2
    assert rig.found == []


def test_a_new_one_does_not_wait_for_the_old_ones(rig: Rig) -> None:
    rig.client.prepare_response(answer((A, None, 100)))
    rig.poll(A)
    rig.client.prepare_response(answer((A, None, 100), (B, "b", 0)))
    rig.poll(A, B)
    assert rig.found == [{"b"}]


def test_a_broken_connection_is_no_answer(rig: Rig) -> None:
    rig.client.prepare_response(None, disconnected=True)
    rig.poll(A)
    assert rig.found == []
    assert rig.poll(A) == 100
