"""OffsetForLeaderEpoch: where each epoch ended, and what a client hears whose idea of the epoch is another one."""

from __future__ import annotations

import pytest

from harness.broker.handlers import Handlers
from harness.broker.wire import batch
from kclient.broker.apis.offset_for_leader_epoch import offset_for_leader_epoch
from kclient.broker.log.producer_state import AppendOrigin
from kclient.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

UNKNOWN_TOPIC, FENCED, UNKNOWN_EPOCH = 3, 74, 75
NOWHERE = (-1, -1)


def ask(
    handlers: Handlers, *epochs: int, current: int = -1, topic: str = "t", number: int = 0, version: int = 4
) -> list[tuple[int, int, int]]:
    """Ask where each of `epochs` ended; error code, epoch and end of each answer."""
    wanted = [
        OffsetForLeaderPartition(partition=number, current_leader_epoch=current, leader_epoch=epoch)
        for epoch in epochs
    ]
    request = OffsetForLeaderEpochRequest(topics=[OffsetForLeaderTopic(topic=topic, partitions=wanted)])
    (answer,) = handlers.ask(offset_for_leader_epoch, request, version).topics
    assert answer.topic == topic
    assert [part.partition for part in answer.partitions] == [number] * len(epochs)
    return [(part.error_code, part.leader_epoch, part.end_offset) for part in answer.partitions]


def append(handlers: Handlers, epoch: int, count: int) -> None:
    """Append records as the leader of an epoch does."""
    partition = handlers.led()
    partition.leader_epoch = epoch
    partition.append(batch(*[b"v"] * count), AppendOrigin.CLIENT, 1)


@pytest.fixture
def topic(handlers: Handlers) -> Handlers:
    """Topic t: epochs 1, 3 and 4, the last of them without records."""
    handlers.topics.create("t", 1)
    append(handlers, 1, 3)
    append(handlers, 3, 4)
    handlers.led().leader_epoch = 4
    return handlers


@pytest.mark.parametrize("version", [2, 3, 4])
def test_the_largest_epoch_not_above_the_one_asked_for_is_told_with_its_end(
    topic: Handlers, version: int
) -> None:
    assert ask(topic, 1, 2, 3, version=version) == [(0, 1, 3), (0, 1, 3), (0, 3, 7)]


def test_the_epoch_that_goes_on_ends_where_the_log_ends(topic: Handlers) -> None:
    assert ask(topic, 4) == [(0, 4, 7)]
    append(topic, 4, 2)
    assert ask(topic, 4, 3) == [(0, 4, 9), (0, 3, 7)]


@pytest.mark.parametrize("epoch", [-1, 5, 2**31 - 1])
def test_of_an_epoch_that_never_was_nothing_is_known(topic: Handlers, epoch: int) -> None:
    assert ask(topic, epoch) == [(0, *NOWHERE)]


@pytest.mark.parametrize(
    ("current", "error"), [(-1, 0), (4, 0), (3, FENCED), (5, UNKNOWN_EPOCH), (2**31 - 1, UNKNOWN_EPOCH)]
)
def test_a_client_with_another_epoch_than_the_leaders_is_told_nothing_else(
    topic: Handlers, current: int, error: int
) -> None:
    expected = (error, *NOWHERE) if error else (0, 3, 7)
    assert ask(topic, 3, current=current) == [expected]


@pytest.mark.parametrize(("name", "number"), [("none", 0), ("t", 1), ("t", -1)])
def test_a_partition_that_there_is_not_is_said_not_to_be(topic: Handlers, name: str, number: int) -> None:
    assert ask(topic, 3, topic=name, number=number) == [(UNKNOWN_TOPIC, *NOWHERE)]


def test_one_that_fails_leaves_the_others_of_its_request_alone(topic: Handlers) -> None:
    request = OffsetForLeaderEpochRequest(
        topics=[
            OffsetForLeaderTopic(topic="none", partitions=[OffsetForLeaderPartition(leader_epoch=3)]),
            OffsetForLeaderTopic(topic="t", partitions=[]),
            OffsetForLeaderTopic(
                topic="t",
                partitions=[
                    OffsetForLeaderPartition(partition=9, leader_epoch=3),
                    OffsetForLeaderPartition(leader_epoch=3),
                ],
            ),
        ]
    )
    answers = topic.ask(offset_for_leader_epoch, request, 4).topics
    found = [(one.topic, [part.error_code for part in one.partitions]) for one in answers]
    assert found == [("none", [UNKNOWN_TOPIC]), ("t", []), ("t", [UNKNOWN_TOPIC, 0])]


def test_a_log_without_records_knows_its_own_epoch_alone(handlers: Handlers) -> None:
    handlers.topics.create("t", 1)
    assert ask(handlers, 0, 1) == [(0, 0, 0), (0, *NOWHERE)]
