"""Topics that are deleted, and created again, under a consumer that reads them."""

from __future__ import annotations

import time
from typing import Any

import pytest

from harness.real_kafka.broker import RealKafka
from harness.topics import new_topic, produce
from kclient.admin import KafkaAdminClient, NewTopic
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import KafkaConsumer
from kclient.errors import UnknownTopicOrPartitionError
from kclient.protocol.api_keys import ApiKeys

DEADLINE_S = 30.0


def delete(kafka: RealKafka, topic: str, *, create_again: bool = False) -> None:
    with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
        admin.delete_topics([topic])
        if create_again:
            admin.create_topics([NewTopic(topic, 1, 1)])


def read(consumer: KafkaConsumer[Any, Any], topic: str, count: int) -> list[int]:
    """The numbers of the next `count` records of `topic`."""
    seen: list[int] = []
    deadline = time.monotonic() + DEADLINE_S
    while len(seen) < count:
        assert time.monotonic() < deadline, f"only {seen} came"
        seen += [int(record.value[1:]) for record in consumer.poll(100) if record.topic == topic]
    return seen


def reader(kafka: RealKafka, group: str, **settings: Any) -> KafkaConsumer[Any, Any]:
    return KafkaConsumer(
        bootstrap_servers=kafka.bootstrap_servers, group_id=group, auto_offset_reset="earliest", **settings
    )


def test_deleting_one_of_several_subscribed_topics_does_not_stop_the_others(kafka: RealKafka) -> None:
    doomed, other = (new_topic(kafka.bootstrap_servers, 1) for _ in range(2))
    with reader(kafka, other, allow_auto_create_topics=False) as consumer:
        consumer.subscribe([doomed, other])
        for topic in (doomed, other):
            produce(kafka.bootstrap_servers, topic, 20)
        deadline = time.monotonic() + DEADLINE_S
        seen = 0
        while seen < 40:
            assert time.monotonic() < deadline
            seen += len(consumer.poll(100))
        delete(kafka, doomed)
        while consumer.assignment() != {TopicPartition(other, 0)}:  # through the rebalance, which commits
            assert time.monotonic() < deadline
            consumer.poll(100)
        produce(kafka.bootstrap_servers, other, 20)
        assert read(consumer, other, 20) == [*range(20)]
        consumer.commit_sync(timeout_ms=5000)


@pytest.mark.parametrize("assigned", [False, True])
def test_a_topic_that_is_created_again_is_read_from_its_beginning(
    kafka: RealKafka, assigned: bool, caplog: pytest.LogCaptureFixture
) -> None:
    topic = new_topic(kafka.bootstrap_servers, 1)
    with reader(kafka, topic, allow_auto_create_topics=False) as consumer:
        if assigned:
            consumer.assign([TopicPartition(topic, 0)])
        else:
            consumer.subscribe([topic])
        produce(kafka.bootstrap_servers, topic, 20)
        assert read(consumer, topic, 20) == [*range(20)]
        before = consumer._core.metadata.topic_id(topic)
        delete(kafka, topic, create_again=True)
        produce(kafka.bootstrap_servers, topic, 30)
        assert read(consumer, topic, 30) == [*range(30)]
        after = consumer._core.metadata.topic_id(topic)
        assert before != after
        if assigned:
            warnings = [each.getMessage() for each in caplog.records if "created again" in each.getMessage()]
            assert len(warnings) == 1
            assert str(before) in warnings[0]
            assert str(after) in warnings[0]


def test_what_was_read_of_a_deleted_topic_is_not_committed_for_the_one_created_again(
    kafka: RealKafka,
) -> None:
    topic = new_topic(kafka.bootstrap_servers, 1)
    partition = TopicPartition(topic, 0)
    produce(kafka.bootstrap_servers, topic, 20)
    settings = {"enable_auto_commit": False, "allow_auto_create_topics": False, "fetch_max_wait_ms": 100}
    with reader(kafka, topic, **settings) as consumer:
        consumer.assign([partition])
        assert read(consumer, topic, 20) == [*range(20)]
        consumer.commit_sync()
        committed = consumer.committed([partition])[partition]
        assert committed is not None
        assert committed.offset == 20
        versions = consumer._core.network._client.api_versions(
            consumer._core.membership._finder.coordinator.id
        )
        assert versions.usable_version(ApiKeys.OFFSET_COMMIT) >= 10
        # Nothing but the commit tells of the new topic: the last fetch is through before.
        consumer.pause([partition])
        consumer.poll(500)
        delete(kafka, topic, create_again=True)
        produce(kafka.bootstrap_servers, topic, 50)
        with pytest.raises(UnknownTopicOrPartitionError, match=f"{partition} .20."):
            consumer.commit_sync()
        assert consumer.committed([partition]) == {partition: None}
        consumer.resume([partition])
        assert read(consumer, topic, 50) == [*range(50)]
        consumer.commit_sync()
        committed = consumer.committed([partition])[partition]
        assert committed is not None
        assert committed.offset == 50
