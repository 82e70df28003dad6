"""Topics are created, changed and deleted: in the journal, on disk, and in what clients see."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import attrs
import pytest

from harness.broker.topics import NODE, Topics
from kclient.broker.log.log_manager import LogManager
from kclient.broker.metadata.cache import OFFSETS_TOPIC, TopicImage
from kclient.broker.metadata.controller import MAX_PARTITIONS_PER_REQUEST, Controller, NewTopic
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

T0 = TopicPartition("t", 0)


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Callable[..., Topics]]:
    with ExitStack() as stack:
        yield lambda **settings: Topics(tmp_path, stack, **settings)


@pytest.fixture
def topics(make: Callable[..., Topics]) -> Topics:
    return make()


class TestCreating:
    def test_a_new_topic_is_in_the_journal_on_disk_and_seen(self, topics: Topics) -> None:
        made = topics.create(configs={"retention.ms": "5", "segment.ms": None})
        assert (made.partition_count, dict(made.configs)) == (2, {"retention.ms": "5"})
        assert topics.cache.topic("t") == topics.journal["t"] == made
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
        assert (topics.cache.topics(), topics.journal, topics.led()) == ([], {}, set())

    def test_validating_says_what_it_would_be_and_makes_nothing(self, topics: Topics) -> None:
        made = topics.controller.create_topic(NewTopic("t"), validate_only=True)
        assert made.partition_count == 3
        assert (topics.cache.topics(), topics.journal, topics.led()) == ([], {}, set())

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
        assert (topics.cache.topics(), topics.journal, topics.led()) == ([], {}, set())
        assert topics.create().partition_count == 2


class TestCreatingByItself:
    def test_a_topic_that_is_there_is_taken_as_it_is(self, topics: Topics) -> None:
        made = topics.create()
        assert topics.controller.create_automatically("t") == made

    def test_the_topic_of_offsets_has_partitions_and_settings_of_its_own(
        self, make: Callable[..., Topics]
    ) -> None:
        made = make(offsets_topic_num_partitions=4).controller.create_automatically(OFFSETS_TOPIC)
        assert made.partition_count == 4
        assert made.configs["cleanup.policy"] == "compact"

    def test_who_comes_second_gets_the_topic_of_who_was_faster(
        self, topics: Topics, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        usual, made = Controller.create_topic, []

        def slow(self: Controller, new: NewTopic, **options: Any) -> TopicImage:
            if not made:
                made.append(usual(self, new))  # another thread
            return usual(self, new, **options)

        monkeypatch.setattr(Controller, "create_topic", slow)
        assert [topics.controller.create_automatically("t")] == made

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
        heard: list[Sequence[TopicPartition]] = []

        def listener(partitions: Sequence[TopicPartition]) -> None:
            assert topics.cache.topic("t") is None
            topics.create("in the listener".replace(" ", "-"))  # no lock is held
            heard.append(partitions)

        topics.controller.add_deletion_listener(listener)
        topics.controller.delete_topic(topics.create())
        assert heard == [[T0, TopicPartition("t", 1)]]
        assert set(topics.journal) == {"in-the-listener"}
        assert T0 not in topics.led()

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
        assert grown == topics.journal["t"]
        assert (grown.id, grown.partition_count, len(grown.directories)) == (before.id, 4, 4)
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
        assert topics.cache.topic("t") == topics.journal["t"] == before

    def test_validating_makes_none(self, topics: Topics) -> None:
        before = topics.create()
        topics.controller.create_partitions("t", 4, [[NODE], [NODE]], validate_only=True)
        assert topics.cache.topic("t") == before
        assert len(topics.led()) == 2


class TestSettings:
    def test_new_settings_take_the_place_of_all_old_ones_at_once(self, topics: Topics) -> None:
        topics.create(configs={"retention.ms": "5"})
        topics.controller.alter_configs("t", {"segment.ms": "7"})
        config = topics.replicas.partition(T0).log.config
        assert (config.segment_ms, config.retention_ms) == (7, topics.controller.log_config({}).retention_ms)
        assert dict(topics.journal["t"].configs) == {"segment.ms": "7"}

    @pytest.mark.parametrize("validate_only", [True, False])
    def test_settings_that_cannot_be_change_nothing(self, topics: Topics, validate_only: bool) -> None:
        before = topics.create()
        with pytest.raises(InvalidConfigurationError):
            topics.controller.alter_configs("t", {"segment.ms": "soon"}, validate_only=validate_only)
        topics.controller.alter_configs("t", {"segment.ms": "7"}, validate_only=True)
        assert topics.cache.topic("t") == before


class TestStarting:
    def test_a_partition_whose_directory_is_missing_is_offline_and_the_others_are_led(
        self, topics: Topics, caplog: pytest.LogCaptureFixture
    ) -> None:
        made = topics.create()
        topics.replicas.delete_partition(TopicPartition("t", 1))
        gone = Uuid.random()
        topics.cache.put(attrs.evolve(made, directories=(made.directories[0], gone)))
        topics.controller.lead_all()
        assert topics.replicas.partition(T0)
        with pytest.raises(KafkaStorageError, match="offline"):
            topics.replicas.partition(TopicPartition("t", 1))
        assert "1 partitions are offline, t-1 the first of them" in caplog.text
