"""Topics are created, changed and deleted: in the metadata log, on disk, and in what clients see."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from harness.broker.topics import NODE, Topics
from harness.broker.wire import batch
from kclient.broker.log.config import LogConfig
from kclient.broker.log.log_manager import LogManager
from kclient.broker.metadata.controller import (
    MAX_PARTITIONS_PER_REQUEST,
    PRODUCER_ID_BLOCK,
    Controller,
    NewTopic,
    TopicPlan,
)
from kclient.broker.metadata.image.configurations import ResourceType
from kclient.broker.metadata.image.features import MAX_PRODUCER_ID
from kclient.broker.metadata.image.metadata_delta import MetadataDelta
from kclient.broker.metadata.image.metadata_image import MetadataImage
from kclient.broker.metadata.image.partition import NO_LEADER
from kclient.broker.metadata.recovered_topic import RecoveredTopic
from kclient.broker.metadata.registration import remembered_directories, starting_records
from kclient.broker.metadata.topic_names import OFFSETS_TOPIC
from kclient.broker.network.listener import Endpoint, Listener
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import (
    InvalidConfigurationError,
    InvalidPartitionsError,
    InvalidReplicaAssignmentError,
    InvalidReplicationFactorError,
    InvalidRequestError,
    InvalidTopicError,
    KafkaError,
    KafkaStorageError,
    PolicyViolationError,
    TopicDeletionDisabledError,
    TopicExistsError,
    UnknownTopicOrPartitionError,
)
from kclient.protocol.messages.metadata_records import ProducerIdsRecord

T0 = TopicPartition("t", 0)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Topics]]:
    with ExitStack() as stack:
        yield lambda **settings: Topics(tmp_path, stack, **settings)


@pytest.fixture
def topics(make: Callable[..., Topics]) -> Topics:
    return make()


class TestCreating:
    def test_a_new_topic_is_in_the_log_on_disk_and_seen(self, topics: Topics) -> None:
        made = topics.create(configs={"retention.ms": "5", "segment.ms": None})
        assert made.partition_count == 2
        assert topics.cache.topic_configs("t") == {"retention.ms": "5"}
        assert topics.logged == topics.cache.image
        assert topics.led() == {T0, TopicPartition("t", 1)}
        assert topics.replicas.partition(T0).log.config.retention_ms == 5

    def test_the_default_number_of_partitions_is_the_brokers(self, topics: Topics) -> None:
        assert topics.create(count=-1).partition_count == 3

    def test_an_assignment_says_the_number_of_partitions(self, topics: Topics) -> None:
        assert topics.create(count=-1, assignments={1: [NODE], 0: [NODE]}).partition_count == 2

    @pytest.mark.parametrize(
        ("fields", "error"),
        [
            ({"name": "a/b"}, InvalidTopicError),
            ({"name": "__cluster_metadata"}, InvalidTopicError),
            ({"count": 0}, InvalidPartitionsError),
            ({"count": MAX_PARTITIONS_PER_REQUEST + 1}, PolicyViolationError),
            ({"replication_factor": 2}, InvalidReplicationFactorError),
            ({"configs": {"retention.ms": "soon"}}, InvalidConfigurationError),
            ({"assignments": {0: [NODE]}}, InvalidRequestError),
            ({"count": -1, "assignments": {1: [NODE]}}, InvalidReplicaAssignmentError),
            ({"count": -1, "assignments": {0: [NODE, 2]}}, InvalidReplicaAssignmentError),
        ],
    )
    def test_what_cannot_be_leaves_nothing_behind(
        self, topics: Topics, fields: dict[str, Any], error: type[KafkaError]
    ) -> None:
        with pytest.raises(error):
            topics.create(**fields)
        assert (topics.cache.topics(), topics.logged.topics.by_name, topics.led()) == ([], {}, set())

    def test_validating_says_what_it_would_be_and_makes_nothing(self, topics: Topics) -> None:
        made = topics.controller.create_topic(NewTopic("t"), validate_only=True)
        assert made.partition_count == 3
        assert (topics.cache.topics(), topics.logged.topics.by_name, topics.led()) == ([], {}, set())

    def test_a_topic_whose_files_cannot_be_made_is_undone_and_can_be_made_later(
        self, topics: Topics, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        usual = LogManager.get_or_create_log

        def full(self: LogManager, tp: TopicPartition, *rest: Any) -> Any:
            if tp.partition == 1:
                raise KafkaStorageError("the disk is full")
            return usual(self, tp, *rest)

        with monkeypatch.context() as patch:
            patch.setattr(LogManager, "get_or_create_log", full)
            with pytest.raises(KafkaStorageError, match="full"):
                topics.create()
        assert (topics.cache.topics(), topics.logged.topics.by_name, topics.led()) == ([], {}, set())
        assert set(topics.store.image.topics.deleted) == set(topics.logged.topics.deleted)
        assert len(topics.logged.topics.deleted) == 1, (
            "there may be files of the partition that was not finished"
        )
        assert topics.create().partition_count == 2


class TestCreatingByItself:
    def test_a_topic_that_is_there_is_taken_as_it_is(self, topics: Topics) -> None:
        made = topics.create()
        assert topics.controller.create_automatically("t") == made

    def test_the_topic_of_offsets_has_partitions_and_settings_of_its_own(
        self, make: Callable[..., Topics]
    ) -> None:
        topics = make(offsets_topic_num_partitions=4)
        made = topics.controller.create_automatically(OFFSETS_TOPIC)
        assert made.partition_count == 4
        assert topics.cache.topic_configs(OFFSETS_TOPIC)["cleanup.policy"] == "compact"

    def test_who_comes_second_gets_the_topic_of_who_was_faster(
        self, topics: Topics, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        usual, made = Controller.create_topic, []

        def slow(self: Controller, new: NewTopic, **options: Any) -> TopicPlan:
            if not made:
                made.append(usual(self, new))  # another thread
            return usual(self, new, **options)

        monkeypatch.setattr(Controller, "create_topic", slow)
        assert topics.controller.create_automatically("t").id == made[0].id

    def test_a_name_that_collides_is_refused_and_not_taken_for_the_other_topic(self, topics: Topics) -> None:
        topics.create("a.b")
        with pytest.raises(InvalidTopicError, match=r"a_b differs from a\.b"):
            topics.controller.create_automatically("a_b")

    def test_a_name_is_given_once(self, topics: Topics) -> None:
        topics.create()
        with pytest.raises(TopicExistsError):
            topics.create()


class TestDeleting:
    def test_a_deleted_topic_is_nowhere_any_more_and_those_who_listen_hear_of_it_afterwards(
        self, topics: Topics
    ) -> None:
        heard: list[list[TopicPartition]] = []

        def listener(delta: MetadataDelta, image: MetadataImage) -> None:
            if delta.topics is None or not delta.topics.deleted:
                return
            assert topics.cache.topic("t") is None
            assert "t" not in image.topics.by_name
            topics.create("in-the-listener")  # no lock is held
            heard.extend(topic.topic_partitions() for topic in delta.topics.deleted.values())

        made = topics.create()
        topics.controller.add_listener(listener)
        topics.controller.delete_topic(made)
        assert heard == [[T0, TopicPartition("t", 1)]]
        assert set(topics.logged.topics.by_name) == {"in-the-listener"}
        assert T0 not in topics.led()

    def test_a_deleted_topic_takes_no_memory_when_its_files_are_gone(self, topics: Topics) -> None:
        topics.controller.delete_topic(topics.create())
        assert topics.store.image.topics.deleted == {}
        assert len(topics.logged.topics.deleted) == 1, "the log does not know of it before the next start"
        topics.start()
        assert topics.logged.topics.deleted == {}

    def test_a_deleted_topic_whose_files_could_not_be_removed_is_remembered(
        self, topics: Topics, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def stuck(self: LogManager, tp: TopicPartition) -> None:
            raise KafkaStorageError("Input/output error")

        made = topics.create()
        monkeypatch.setattr(LogManager, "delete_log", stuck)
        topics.controller.delete_topic(made)
        assert set(topics.store.image.topics.deleted) == {made.id}

    def test_another_topic_of_the_same_name_is_not_deleted_in_its_place(self, topics: Topics) -> None:
        old = topics.create()
        topics.controller.delete_topic(old)
        new = topics.create()
        with pytest.raises(UnknownTopicOrPartitionError):
            topics.controller.delete_topic(old)
        assert topics.cache.topic("t") == new

    def test_the_brokers_own_topics_stay(self, topics: Topics) -> None:
        own = topics.controller.create_automatically(OFFSETS_TOPIC)
        with pytest.raises(InvalidRequestError, match="own state"):
            topics.controller.delete_topic(own)
        assert topics.cache.topic(OFFSETS_TOPIC) == own

    def test_deleting_can_be_forbidden(self, make: Callable[..., Topics]) -> None:
        topics = make(delete_topic_enable="false")
        made = topics.create()
        with pytest.raises(TopicDeletionDisabledError):
            topics.controller.delete_topic(made)
        assert T0 in topics.led()


class TestGrowing:
    def test_new_partitions_are_led_and_those_that_were_there_stay(self, topics: Topics) -> None:
        before = topics.create()
        log = topics.replicas.partition(T0).log
        topics.controller.create_partitions("t", 4)
        grown = topics.cache.existing_topic("t")
        assert grown == topics.logged.topics.by_name["t"]
        assert (grown.id, grown.partition_count) == (before.id, 4)
        assert {tp.partition for tp in topics.led()} == {0, 1, 2, 3}
        assert topics.replicas.partition(T0).log is log

    @pytest.mark.parametrize(
        ("count", "assignments", "error"),
        [
            (2, None, InvalidPartitionsError),
            (1, None, InvalidPartitionsError),
            (3 + MAX_PARTITIONS_PER_REQUEST, None, PolicyViolationError),
            (4, [[NODE]], InvalidReplicaAssignmentError),
            (4, [[NODE], [2]], InvalidReplicaAssignmentError),
        ],
    )
    def test_what_cannot_be_changes_nothing(
        self, topics: Topics, count: int, assignments: Any, error: type[KafkaError]
    ) -> None:
        before = topics.create()
        with pytest.raises(error):
            topics.controller.create_partitions("t", count, assignments)
        assert topics.cache.topic("t") == topics.logged.topics.by_name["t"] == before

    def test_partitions_that_cannot_be_made_are_offline_and_the_others_are_led(
        self, topics: Topics, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        usual = LogManager.get_or_create_log

        def full(self: LogManager, tp: TopicPartition, *rest: Any) -> Any:
            if tp.partition == 2:
                raise KafkaStorageError("the disk is full")
            return usual(self, tp, *rest)

        topics.create()
        monkeypatch.setattr(LogManager, "get_or_create_log", full)
        with pytest.raises(KafkaStorageError, match="t-2 cannot be led: the disk is full"):
            topics.controller.create_partitions("t", 4)
        assert topics.cache.image == topics.logged
        assert {tp.partition for tp in topics.led()} == {0, 1, 3}
        with pytest.raises(KafkaStorageError, match="t-2 is offline: the disk is full"):
            topics.replicas.partition(TopicPartition("t", 2))

    def test_validating_makes_none(self, topics: Topics) -> None:
        before = topics.create()
        topics.controller.create_partitions("t", 4, [[NODE], [NODE]], validate_only=True)
        assert topics.cache.topic("t") == before
        assert len(topics.led()) == 2


class TestSettings:
    def test_new_settings_take_the_place_of_all_old_ones_at_once(self, topics: Topics) -> None:
        topics.create(configs={"retention.ms": "5"})
        topics.controller.alter_configs("t", lambda _: {"segment.ms": "7"})
        config = topics.replicas.partition(T0).log.config
        assert (config.segment_ms, config.retention_ms) == (7, topics.controller.log_config({}).retention_ms)
        assert topics.logged.configs.of(ResourceType.TOPIC, "t") == {"segment.ms": "7"}

    def test_of_two_changes_at_once_neither_is_lost(self, topics: Topics) -> None:
        topics.create()

        def second() -> None:
            topics.controller.alter_configs("t", lambda configs: {**configs, "retention.ms": "5"})

        thread = threading.Thread(target=second)

        def first(configs: Mapping[str, str]) -> Mapping[str, str]:
            thread.start()
            return {**configs, "segment.ms": "7"}

        topics.controller.alter_configs("t", first)
        thread.join()
        assert topics.logged.configs.of(ResourceType.TOPIC, "t") == {"segment.ms": "7", "retention.ms": "5"}

    @pytest.mark.parametrize("validate_only", [True, False])
    def test_settings_that_cannot_be_change_nothing(self, topics: Topics, validate_only: bool) -> None:
        topics.create()
        before = topics.logged
        with pytest.raises(InvalidConfigurationError):
            topics.controller.alter_configs(
                "t", lambda _: {"segment.ms": "soon"}, validate_only=validate_only
            )
        topics.controller.alter_configs("t", lambda _: {"segment.ms": "7"}, validate_only=True)
        assert topics.cache.image == topics.logged == before


class TestStarting:
    def test_a_partition_whose_directory_is_missing_is_offline_and_the_others_are_led(
        self, topics: Topics, caplog: pytest.LogCaptureFixture
    ) -> None:
        made = topics.create()
        topics.replicas.delete_partition(TopicPartition("t", 1))
        topics.start({"t": (made.partitions[0].directory_of(NODE), Uuid.random())})
        assert topics.replicas.partition(T0)
        with pytest.raises(KafkaStorageError, match="offline"):
            topics.replicas.partition(TopicPartition("t", 1))
        assert "1 partitions are offline, t-1 the first of them" in caplog.text
        assert [each.leader for each in topics.logged.topics.by_name["t"].partitions] == [NODE, NO_LEADER]

    def test_every_start_is_a_new_leader_epoch_for_every_partition_and_one_change(
        self, topics: Topics
    ) -> None:
        topics.create()
        for epoch in (1, 2):
            before = topics.store.end_offset
            topics.start()
            assert [each.leader_epoch for each in topics.logged.topics.by_name["t"].partitions] == [epoch] * 2
            assert topics.replicas.partition(T0).leader_epoch == epoch
            assert topics.store.end_offset == before + 3, "the broker and two partitions"

    def test_a_partition_that_was_offline_for_long_has_changed_its_epoch_once(self, topics: Topics) -> None:
        made = topics.create(count=1)
        topics.replicas.delete_partition(T0)
        for _ in range(3):
            topics.start({"t": (Uuid.random(),)})
        assert topics.logged.topics.by_name["t"].partitions[0].leader_epoch == 1
        topics.start({"t": (made.partitions[0].directory_of(NODE),)})
        assert topics.replicas.partition(T0).leader_epoch == 2

    def test_epochs_that_the_log_knows_are_not_given_out_again(self, topics: Topics) -> None:
        topics.create(count=1)
        topics.replicas.make_leader(T0, Uuid.ZERO, LogConfig(), leader_epoch=7)
        assert topics.replicas.append_locally(T0, batch(b"v")).error is None
        topics.start()
        assert topics.replicas.partition(T0).leader_epoch == 8

    def test_an_adopted_topic_is_there_with_its_settings_and_led(self, topics: Topics) -> None:
        (directory,) = topics.logs.directory_places()
        adopted = RecoveredTopic("a", Uuid.random(), 1, {"retention.ms": "-1"}, (directory,))
        topics.controller.start([adopted], [])
        assert topics.cache.existing_topic("a").id == adopted.id
        assert topics.cache.topic_configs("a") == {"retention.ms": "-1"}
        assert topics.logged == topics.cache.image
        assert topics.replicas.partition(TopicPartition("a", 0)).log.config.retention_ms == -1

    def test_the_broker_registers_with_its_directories_and_where_they_are(self, topics: Topics) -> None:
        listeners = [
            Listener(protocol, Endpoint("h", 9092 + number), protocol)
            for number, protocol in enumerate(("PLAINTEXT", "SASL_SSL", "PLAINTEXT"))
        ]
        topics.controller.start([], listeners)
        broker = topics.logged.cluster.brokers[NODE]
        assert [(each.name, each.port, each.security_protocol) for each in broker.endpoints] == [
            ("PLAINTEXT", 9092, 0),
            ("SASL_SSL", 9093, 3),
            ("PLAINTEXT-2", 9094, 0),
        ]
        assert not broker.fenced
        places = topics.logs.directory_places()
        assert set(broker.directories) == set(places)
        assert remembered_directories(topics.logged, NODE) == places


class TestProducerIds:
    def test_a_block_is_in_the_log_before_it_is_given_out_and_never_given_out_again(
        self, topics: Topics
    ) -> None:
        assert topics.controller.allocate_producer_ids() == range(PRODUCER_ID_BLOCK)
        assert topics.logged.producer_ids.next_producer_id == PRODUCER_ID_BLOCK
        topics.start()
        assert topics.controller.allocate_producer_ids() == range(PRODUCER_ID_BLOCK, 2 * PRODUCER_ID_BLOCK)

    def test_a_block_that_cannot_be_written_is_not_given_out(
        self, topics: Topics, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def full(descriptor: int) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as failing:
            failing.setattr(os, "fdatasync", full)
            with pytest.raises(KafkaStorageError, match="No space left"):
                topics.controller.allocate_producer_ids()
        assert topics.controller.allocate_producer_ids() == range(PRODUCER_ID_BLOCK)

    def test_there_is_an_end_of_them(self, topics: Topics) -> None:
        topics.store.commit([ProducerIdsRecord(next_producer_id=MAX_PRODUCER_ID - 5)])
        with pytest.raises(KafkaStorageError, match="All producer ids have been given out"):
            topics.controller.allocate_producer_ids()

    def test_ids_of_producers_that_an_adopted_log_knows_are_nobody_elses(self, topics: Topics) -> None:
        topics.create(count=1)
        records = batch(b"v", producer_id=4711, producer_epoch=0, base_sequence=0)
        assert topics.replicas.append_locally(T0, records).error is None
        first = starting_records(MetadataImage(), NODE, 0, [], [], topics.logs)
        assert ProducerIdsRecord(broker_id=NODE, broker_epoch=0, next_producer_id=4712) in list(first)
