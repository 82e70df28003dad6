"""Subscriptions that change while something that was asked or begun for the one before is under way."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection
from typing import Any

import pytest

from harness.network.proxy import FaultProxy
from harness.real_kafka.broker import RealKafka
from harness.topics import new_topic, produce
from harness.waiting import wait_until
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRebalanceListener, KafkaConsumer
from kclient.protocol.api_keys import ApiKeys

PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "consumer"])


class _Noting(ConsumerRebalanceListener):
    def __init__(self) -> None:
        self.assigned: list[set[TopicPartition]] = []
        self.revoked: list[set[TopicPartition]] = []

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self.assigned.append(set(partitions))

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self.revoked.append(set(partitions))


class _Held:
    """Answers about topics that are held up by the proxy until `release`."""

    def __init__(self, proxy: FaultProxy) -> None:
        self._asked, self._released = threading.Event(), threading.Event()
        proxy.edit(ApiKeys.METADATA, self._hold, times=-1)

    def _hold(self, _: object) -> None:
        self._asked.set()
        self._released.wait()

    def wait(self) -> None:
        assert self._asked.wait(10), "no broker was asked about topics"

    def release(self) -> None:
        self._released.set()


def new_consumer(proxy: FaultProxy, group: str, protocol: str) -> KafkaConsumer[bytes, bytes]:
    return KafkaConsumer(
        bootstrap_servers=proxy.bootstrap,
        group_id=group,
        group_protocol=protocol,
        auto_offset_reset="earliest",
        reconnect_backoff_ms=10,
    )


def filled_topic(kafka: RealKafka) -> str:
    topic = new_topic(kafka.bootstrap_servers, 2)
    produce(kafka.bootstrap_servers, topic, 20)
    return topic


def of(topic: str) -> set[TopicPartition]:
    return {TopicPartition(topic, 0), TopicPartition(topic, 1)}


def read(consumer: KafkaConsumer[bytes, bytes], count: int = 20) -> None:
    """Poll until so many records have come, and no more."""
    got: list[Any] = []

    def has_all() -> bool:
        got.extend(consumer.poll(100))
        return len(got) >= count

    wait_until(has_all, what="all records")
    assert len(got) == count


@PROTOCOLS
def test_a_pattern_is_matched_with_an_answer_about_all_topics_alone(
    kafka: RealKafka, kafka_proxy: FaultProxy, protocol: str
) -> None:
    topic = filled_topic(kafka)
    held = _Held(kafka_proxy)
    listener = _Noting()
    with new_consumer(kafka_proxy, f"g-{topic}", protocol) as consumer:
        held.wait()
        consumer.subscribe(re.compile(f"{topic[:-1]}."), listener)
        consumer.poll(100)  # its other thread has heard of the pattern by then
        held.release()
        read(consumer)
    assert listener.assigned == [of(topic)]


@PROTOCOLS
def test_topics_that_an_answer_on_its_way_does_not_tell_of_are_asked_for(
    kafka: RealKafka, kafka_proxy: FaultProxy, protocol: str
) -> None:
    topic = filled_topic(kafka)
    listener = _Noting()
    with new_consumer(kafka_proxy, f"g-{topic}", protocol) as consumer:
        consumer.subscribe([topic])
        read(consumer)
        consumer.unsubscribe()
        held = _Held(kafka_proxy)
        kafka_proxy.drop_connections()  # after which brokers may have moved, and it asks
        held.wait()
        consumer.subscribe([topic], listener)
        consumer.poll(100)
        held.release()
        produce(kafka.bootstrap_servers, topic, 20)
        read(consumer)
    # A topic whose name is not known yet is not assigned yet.
    assert [each for each in listener.assigned if each] == [of(topic)]


@PROTOCOLS
@pytest.mark.parametrize("assigns", [False, True])
def test_a_revocation_that_has_begun_is_over_with_the_subscription(
    kafka: RealKafka, kafka_proxy: FaultProxy, protocol: str, assigns: bool
) -> None:
    topic, other = filled_topic(kafka), new_topic(kafka.bootstrap_servers, 2)
    listener = _Noting()
    with new_consumer(kafka_proxy, f"g-{topic}", protocol) as consumer:
        consumer.subscribe([topic], listener)
        read(consumer)
        commit = kafka_proxy.delay(ApiKeys.OFFSET_COMMIT, 300)
        consumer.subscribe([other], listener)

        def has_begun() -> bool:
            consumer.poll(1)
            return commit.hits > 0

        wait_until(has_begun, what="a commit before the revocation")
        consumer.unsubscribe()
        if assigns:
            consumer.assign(of(topic))
        else:
            consumer.subscribe([topic], listener)
        produce(kafka.bootstrap_servers, topic, 20)
        read(consumer)
        assert listener.revoked == [of(topic)]
