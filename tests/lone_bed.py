"""Records that go alone: sending them so, and seeing which way they went."""

from __future__ import annotations

import time
from typing import Any

from faults_cluster import Cluster
from kclient.producer import KafkaProducer
from kclient.protocol.api_keys import ApiKeys
from kclient.record import iter_batches


class Seen:
    """What was settled: how many records were answered past the I/O thread, how many went on in the usual way."""

    def __init__(self) -> None:
        self.answered = 0
        self.unanswered = 0

    def reset(self) -> None:
        self.answered = self.unanswered = 0

    @property
    def any(self) -> bool:
        return bool(self.answered or self.unanswered)


def send(cluster: Cluster, producer: KafkaProducer[bytes, bytes], **named: Any) -> Any:
    """Send the next record; without a callback, so that it may go alone."""
    value = b"%06d" % len(cluster.sent)
    future = producer.send("t", value, partition=0, **named)
    cluster.sent.append((value, future))
    cluster.told[value] = 1
    return future


def lane_of(producer: KafkaProducer[bytes, bytes]) -> Any:
    lone = producer._core.lone_records
    assert lone is not None
    return lone._lane


def went_alone(producer: KafkaProducer[bytes, bytes], future: Any) -> bool:
    """Whether the record went through the lane."""
    lane = lane_of(producer)
    return lane is not None and lane.pending is not None and lane.pending.result is future.resolve()[0]


def send_alone(cluster: Cluster, producer: KafkaProducer[bytes, bytes]) -> Any:
    """Send the next record through the lane: a lane opens after a record that went in the usual way."""
    for _ in range(1000):
        future = send(cluster, producer)
        if went_alone(producer, future):
            return future
        future.result(20)
        await_open(producer)
    raise AssertionError("no record went through the lane")


def await_open(producer: KafkaProducer[bytes, bytes]) -> None:
    """Wait for the lane to be open, not for long: one that nobody uses is shut again."""
    deadline = time.monotonic() + 0.05
    while time.monotonic() < deadline and not (lane_of(producer) and lane_of(producer).open):
        time.sleep(0.001)


def sent_sequences(cluster: Cluster) -> list[int]:
    return [
        batch.base_sequence
        for message in cluster.broker.received(ApiKeys.PRODUCE)
        for batch in iter_batches(message.topic_data[0].partition_data[0].records)
    ]
