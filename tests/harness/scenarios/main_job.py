"""Tests of the main job. A module that imports them gives a `servers` fixture: the cluster to run them on."""

from __future__ import annotations

import uuid
from collections import Counter

import pytest

from harness.consumer.member import Member
from harness.topics import assert_read_back, end_offsets, new_topic, partitions_of, produce, read_all
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient, NewTopic, OffsetSpec
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import KafkaConsumer
from kclient.errors import (
    AdminError,
    GroupNotEmptyError,
    KafkaTimeoutError,
    NoOffsetForPartitionError,
    RecordTooLargeError,
    TopicExistsError,
    UnknownTopicOrPartitionError,
)
from kclient.producer import KafkaProducer


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_records_come_back_once_and_in_order_with_every_codec(servers: str, codec: str) -> None:
    topic = new_topic(servers)
    metadata = produce(servers, topic, 3000, **{"compression.type": codec})
    assert {entry.partition for entry in metadata} == {0, 1, 2}
    assert_read_back(read_all(servers, topic), 3000)


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_records_come_back_with_every_acks(servers: str, acks: str) -> None:
    topic = new_topic(servers)
    # Asked at the leaders, so they lead: what they are not ready for yet would be lost without acks.
    assert sum(end_offsets(servers, topic).values()) == 0
    metadata = produce(servers, topic, 500, acks=acks, **{"enable.idempotence": acks == "all"})
    if acks == "0":
        assert {entry.offset for entry in metadata} == {-1}
        wait_until(lambda: sum(end_offsets(servers, topic).values()) == 500, what="500 records in the log")
    else:
        seen = {(entry.partition, entry.offset) for entry in metadata}
        assert len(seen) == 500
    assert_read_back(read_all(servers, topic), 500)


def test_the_offset_that_was_acknowledged_holds_the_record(servers: str) -> None:
    topic = new_topic(servers)
    metadata = produce(servers, topic, 300)
    by_place = {(r.partition, r.offset): r.value for r in read_all(servers, topic)}
    assert [by_place[entry.partition, entry.offset] for entry in metadata] == [b"v%d" % i for i in range(300)]


def test_null_and_empty_keys_and_values_stay_what_they_are(servers: str) -> None:
    topic = new_topic(servers, 1)
    pairs: list[tuple[bytes | None, bytes | None]] = [(None, None), (b"", b""), (b"k", None), (None, b"v")]
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for key, value in pairs:
            producer.send(topic, value, key=key, timestamp_ms=1_700_000_000_000)
    records = read_all(servers, topic)
    assert [(record.key, record.value) for record in records] == pairs
    assert {record.timestamp_ms for record in records} == {1_700_000_000_000}


@pytest.fixture
def protocol() -> str:
    """The value of group.protocol; a broker that has both has a fixture of its own."""
    return "classic"


def test_members_that_join_and_leave_share_the_partitions_and_read_everything(
    servers: str, protocol: str
) -> None:
    topic = new_topic(servers, 6)
    group = f"g-{uuid.uuid4().hex[:8]}"
    everything = set(partitions_of(servers, topic))

    def join() -> Member:
        return Member(servers, topic, group, **{"group.protocol": protocol})

    first = join()
    wait_until(lambda: first.assignment == everything, 30, "the first member owning everything")
    produce(servers, topic, 1000)
    wait_until(lambda: len(first.records) == 1000, 30, "the first member reading everything")
    second, third = join(), join()
    members = [first, second, third]
    wait_until(lambda: all(len(member.assignment) == 2 for member in members), 30, "two partitions each")
    assert set().union(*(member.assignment for member in members)) == everything
    produce(servers, topic, 1000)
    wait_until(lambda: sum(len(member.records) for member in members) == 2000, 30, "the second thousand")
    first.stop()
    wait_until(
        lambda: len(second.assignment) + len(third.assignment) == 6, 30, "the leaver's partitions taken over"
    )
    produce(servers, topic, 1000)
    wait_until(lambda: sum(len(member.records) for member in members) == 3000, 30, "the third thousand")
    second.stop()
    third.stop()
    places = Counter((r.partition, r.offset) for member in members for r in member.records)
    assert len(places) == 3000
    assert set(places.values()) == {1}, "a clean rebalance neither repeats nor skips"


def test_a_group_goes_on_where_it_committed(servers: str, protocol: str) -> None:
    topic = new_topic(servers, 1)
    produce(servers, topic, 100)
    settings = {
        "bootstrap.servers": servers,
        "group.id": f"g-{uuid.uuid4().hex[:8]}",
        "group.protocol": protocol,
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
    }
    with KafkaConsumer(settings) as consumer:
        consumer.subscribe([topic])
        for count, _record in enumerate(consumer, 1):
            if count == 40:
                consumer.commit_sync()
                break
        tp = TopicPartition(topic, 0)
        assert consumer.position(tp) == 40
        committed = consumer.committed([tp])[tp]
        assert committed is not None
        assert committed.offset == 40
    with KafkaConsumer(settings) as consumer:
        consumer.subscribe([topic])
        assert next(iter(consumer)).offset == 40


def test_seeking_to_a_time_finds_the_first_record_at_or_after_it(servers: str) -> None:
    topic = new_topic(servers, 1)
    base_ms = 1_700_000_000_000
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for i in range(100):
            producer.send(topic, b"%d" % i, timestamp_ms=base_ms + i * 1000)
    tp = TopicPartition(topic, 0)
    with KafkaConsumer(bootstrap_servers=servers) as consumer:
        consumer.assign([tp])
        found = consumer.offsets_for_times({tp: base_ms + 49_500})[tp]
        assert found is not None
        assert (found.offset, found.timestamp_ms) == (50, base_ms + 50_000)
        assert consumer.offsets_for_times({tp: base_ms + 10**9})[tp] is None
        assert consumer.beginning_offsets([tp]) == {tp: 0}
        assert consumer.end_offsets([tp]) == {tp: 100}
        consumer.seek(tp, found.offset)
        assert next(iter(consumer)).value == b"50"


def test_a_group_without_a_committed_offset_and_without_a_reset_policy_says_so(servers: str) -> None:
    topic = new_topic(servers, 1)
    with KafkaConsumer(bootstrap_servers=servers, group_id="none-yet", auto_offset_reset="none") as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        with pytest.raises(NoOffsetForPartitionError, match=topic):
            consumer.poll(20_000)


def test_a_record_above_the_topics_limit_fails_and_the_others_of_its_batch_arrive(servers: str) -> None:
    topic = new_topic(servers, 1, max_message_bytes="20000")
    with KafkaProducer(bootstrap_servers=servers, linger_ms=200, batch_size=200_000) as producer:
        futures = [producer.send(topic, bytes([i]) * (30_000 if i == 5 else 3000)) for i in range(10)]
        producer.flush()
        assert isinstance(futures[5].exception(10), RecordTooLargeError)
        assert [f.exception(10) for i, f in enumerate(futures) if i != 5] == [None] * 9
    assert [record.value[0] for record in read_all(servers, topic) if record.value] == [
        0,
        1,
        2,
        3,
        4,
        6,
        7,
        8,
        9,
    ]


def test_topics_are_created_described_listed_and_deleted(servers: str) -> None:
    name = f"t-{uuid.uuid4().hex[:8]}"
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        created = admin.create_topics([NewTopic(name, 4, 1, configs={"retention.ms": "3600000"})])
        assert created[name].num_partitions == 4
        # The controller has it; a real broker hears of it a moment later.
        wait_until(lambda: name in admin.list_topics(), what="the topic")
        assert len(admin.describe_topics([name])[name].partitions) == 4
        with pytest.raises(TopicExistsError, match=name):
            admin.create_topics([name])
        with pytest.raises(AdminError) as failed:
            admin.create_topics([NewTopic(name, 4, 1), NewTopic(name + "-2", 1, 1)])
        assert isinstance(failed.value.errors[name], TopicExistsError)
        assert list(failed.value.results) == [name + "-2"]
        admin.delete_topics([name, name + "-2"])
        wait_until(lambda: name not in admin.list_topics(), what="the topic gone")
        with pytest.raises(UnknownTopicOrPartitionError, match=name):
            admin.describe_topics([name])


def test_groups_are_listed_described_and_deleted(servers: str) -> None:
    topic = new_topic(servers, 2)
    group = f"g-{uuid.uuid4().hex[:8]}"
    member = Member(servers, topic, group, **{"client.id": "reader"})
    wait_until(lambda: len(member.assignment) == 2, 30, "the member's assignment")
    produce(servers, topic, 100)
    wait_until(lambda: len(member.records) == 100, 30, "the records")
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        assert admin.list_groups()[group].protocol_type == "consumer"
        described = admin.describe_groups([group])[group]
        assert described.state == "Stable"
        assert [(m.client_id, len(m.assignment)) for m in described.members] == [("reader", 2)]
        with pytest.raises(GroupNotEmptyError, match=group):
            admin.delete_groups([group])
        member.stop()
        committed = admin.list_consumer_group_offsets(group)
        assert sum(entry.offset for entry in committed.values() if entry is not None) == 100
        admin.delete_groups([group])
        assert group not in admin.list_groups()


def test_the_cluster_and_its_offsets_are_described(servers: str) -> None:
    topic = new_topic(servers, 1)
    produce(servers, topic, 10)
    tp = TopicPartition(topic, 0)
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        cluster = admin.describe_cluster()
        assert cluster.cluster_id
        assert f"{cluster.nodes[0].host}:{cluster.nodes[0].port}" == servers
        assert admin.list_offsets({tp: OffsetSpec.EARLIEST})[tp].offset == 0
        assert admin.list_offsets({tp: OffsetSpec.LATEST})[tp].offset == 10
        assert admin.list_offsets({tp: OffsetSpec.MAX_TIMESTAMP})[tp].timestamp_ms > 0
        with pytest.raises(UnknownTopicOrPartitionError, match="99"):
            admin.list_offsets({TopicPartition(topic, 99): OffsetSpec.LATEST})


def test_sending_to_a_partition_that_does_not_exist_is_refused_by_number(servers: str) -> None:
    topic = new_topic(servers, 1)
    with (
        KafkaProducer(bootstrap_servers=servers, max_block_ms=500) as producer,
        pytest.raises(KafkaTimeoutError, match="Partition 7"),
    ):
        producer.send(topic, b"x", partition=7)
