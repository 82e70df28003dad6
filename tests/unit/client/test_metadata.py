from __future__ import annotations

import logging
import threading
from typing import Any

import attrs
import pytest

from harness.mock_time import MockTime
from harness.waiting import wait_until
from kclient.client.metadata import Metadata
from kclient.client.metadata_response import EpochMemory, read_response
from kclient.client.metadata_schedule import MetadataSchedule
from kclient.client.metadata_snapshot import LeaderAndEpoch, MetadataSnapshot
from kclient.common.cluster import Cluster
from kclient.common.node import Node
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import (
    AuthenticationError,
    ClientClosedError,
    InvalidTopicError,
    KafkaTimeoutError,
    TopicAuthorizationError,
    UnsupportedVersionError,
)
from kclient.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.steps import run

TP = TopicPartition("t", 0)
ID_1, ID_2 = Uuid(b"1" * 16), Uuid(b"2" * 16)


class Chosen(Metadata):
    """Wants the topics it is told of."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(MetadataSchedule(ExponentialBackoff(100, 1000), 300_000), **kwargs)
        self.wanted = {"t"}
        self.new: set[str] = set()

    def topics_to_request(self) -> list[str] | None:
        return sorted(self.wanted)

    def new_topics_to_request(self) -> list[str] | None:
        return sorted(self.new)

    def retain_topic(self, topic: str, is_internal: bool, now_ms: int) -> bool:
        return topic in self.wanted


@pytest.fixture
def metadata() -> Chosen:
    made = Chosen()
    made.bootstrap([("boot", 9092)])
    return made


def topic(
    name: str = "t",
    *,
    leader: int = 1,
    epoch: int = 1,
    topic_id: Uuid = Uuid.ZERO,
    error: int = 0,
    partitions: int = 1,
) -> MetadataResponseTopic:
    return MetadataResponseTopic(
        name=name,
        error_code=error,
        topic_id=topic_id,
        partitions=[
            MetadataResponsePartition(
                partition_index=i,
                leader_id=leader,
                leader_epoch=epoch,
                replica_nodes=[1, 2, 3],
                isr_nodes=[1, 2],
            )
            for i in range(0 if error else partitions)
        ],
    )


def answer(
    *topics: MetadataResponseTopic, cluster: str = "c", nodes: tuple[int, ...] = (1, 2)
) -> MetadataResponse:
    return MetadataResponse(
        cluster_id=cluster,
        controller_id=2,
        brokers=[MetadataResponseBroker(node_id=i, host=f"host-{i}", port=9092) for i in nodes],
        topics=list(topics),
    )


def leader(metadata: Metadata) -> int | None:
    node = metadata.fetch().leader_for(TP)
    return None if node is None else node.id


def test_bootstrap_addresses_are_brokers_with_negative_ids(metadata: Chosen) -> None:
    assert metadata.fetch().nodes == (Node(-1, "boot", 9092),)
    assert metadata.is_bootstrapping
    assert metadata.time_to_next_update_ms(0) == 0


def test_an_update_replaces_the_picture(metadata: Chosen) -> None:
    version = metadata.update_version
    metadata.update(answer(topic(topic_id=ID_1)), 0)
    cluster = metadata.fetch()
    assert metadata.update_version == version + 1
    assert [node.id for node in cluster.nodes] == [1, 2]
    assert cluster.controller == Node(2, "host-2", 9092)
    assert cluster.leader_for(TP) == Node(1, "host-1", 9092)
    assert cluster.partition(TP).leader_epoch == 1  # type: ignore[union-attr]
    assert metadata.topic_id("t") == ID_1
    assert metadata.topic_name(ID_1) == "t"
    assert not metadata.update_requested
    assert not metadata.is_bootstrapping


def test_the_picture_expires_with_its_age(metadata: Chosen) -> None:
    metadata.update(answer(topic()), 1000)
    assert metadata.time_to_next_update_ms(1000) == 300_000
    assert metadata.time_to_next_update_ms(301_000) == 0


def test_a_requested_update_waits_for_the_backoff_only(metadata: Chosen) -> None:
    metadata.update(answer(topic()), 1000)
    metadata.request_update()
    assert 80 <= metadata.time_to_next_update_ms(1000) <= 120
    assert metadata.time_to_next_update_ms(1120) == 0


def test_failures_and_answers_without_news_make_the_backoff_grow(metadata: Chosen) -> None:
    for expected in (100, 200, 400, 800, 1000, 1000):
        metadata.failed_update(0)
        assert 0.8 * expected <= metadata.time_to_next_update_ms(0) <= min(1.2 * expected, 1000)
    metadata.update(answer(topic()), 0)
    for _ in range(6):
        metadata.update(answer(topic()), 0)
        metadata.request_update()
    assert metadata.time_to_next_update_ms(0) >= 800
    metadata.request_update(reset_backoff=True)
    assert metadata.time_to_next_update_ms(0) <= 120
    metadata.request_update_for_new_topics()
    assert metadata.time_to_next_update_ms(0) == 0


def test_an_answer_without_brokers_leaves_the_known_ones(metadata: Chosen) -> None:
    metadata.update(answer(topic()), 0)
    before, version = metadata.fetch(), metadata.update_version
    metadata.update(answer(nodes=()), 10)
    assert metadata.fetch() is before
    assert metadata.update_version == version


def test_an_older_leader_epoch_changes_nothing(metadata: Chosen) -> None:
    metadata.update(answer(topic(leader=1, epoch=5)), 0)
    metadata.update(answer(topic(leader=2, epoch=4)), 0)
    assert leader(metadata) == 1
    metadata.update(answer(topic(leader=2, epoch=6)), 0)
    assert leader(metadata) == 2
    assert metadata.leader_epoch(TP) == 6


def test_a_topic_that_was_missing_once_does_not_return_with_an_older_leader(metadata: Chosen) -> None:
    metadata.update(answer(topic(leader=1, epoch=5)), 0)
    metadata.update(answer(), 0)
    assert metadata.fetch().partition(TP) is None
    metadata.update(answer(topic(leader=2, epoch=4)), 0)
    assert metadata.fetch().partition(TP) is None
    metadata.update(answer(topic(leader=2, epoch=5)), 0)
    assert leader(metadata) == 2


def test_a_topic_created_anew_begins_with_new_epochs(metadata: Chosen) -> None:
    metadata.update(answer(topic(leader=1, epoch=5, topic_id=ID_1)), 0)
    metadata.update(answer(topic(leader=2, epoch=0, topic_id=ID_2)), 0)
    assert leader(metadata) == 2
    assert metadata.leader_epoch(TP) == 0
    assert metadata.topic_id("t") == ID_2
    assert metadata.topic_name(ID_1) is None


def test_a_broker_without_epochs_is_believed(metadata: Chosen) -> None:
    metadata.update(answer(topic(leader=1, epoch=5)), 0)
    metadata.update(answer(topic(leader=2, epoch=-1)), 0)
    assert leader(metadata) == 2
    assert metadata.leader_epoch(TP) is None


def test_a_newer_epoch_seen_elsewhere_hides_the_leader_and_asks_for_an_update(metadata: Chosen) -> None:
    metadata.update(answer(topic(leader=1, epoch=5)), 0)
    assert not metadata.update_last_seen_epoch_if_newer(TP, 5)
    assert metadata.update_last_seen_epoch_if_newer(TP, 6)
    assert metadata.update_requested
    assert metadata.leader_and_epoch(TP).leader is None
    assert metadata.leader_and_epoch(TP).epoch == 6


def test_a_topic_whose_leader_is_being_elected_stays_known_and_is_asked_for_again(metadata: Chosen) -> None:
    metadata.update(answer(topic(topic_id=ID_1)), 0)
    metadata.update(answer(topic(error=5)), 0)
    assert leader(metadata) == 1
    assert metadata.topic_id("t") == ID_1
    assert metadata.update_requested
    metadata.update(answer(topic(error=3)), 0)
    assert metadata.fetch().partition(TP) is None


class Watched(dict[Any, Any]):
    """Counts how often it is gone through."""

    walks = 0

    def items(self) -> Any:
        self.walks += 1
        return super().items()

    def __iter__(self) -> Any:
        self.walks += 1
        return super().__iter__()


@pytest.mark.parametrize("error", [5, 0], ids=["without leaders", "created anew"])
def test_an_answer_about_many_topics_goes_through_what_is_known_only_once(error: int) -> None:
    names = [f"t{number}" for number in range(50)]
    first = answer(*(topic(name, topic_id=ID_1, epoch=7) for name in names))
    memory = EpochMemory(epochs=Watched())
    before = read_response(first, MetadataSnapshot.bootstrap(()), memory).snapshot
    known = Watched(before.partitions)
    before = attrs.evolve(before, partitions=known)
    walks = known.walks + memory.epochs.walks  # type: ignore[attr-defined]  # it is watched
    again = answer(*(topic(name, topic_id=ID_2, epoch=3, error=error) for name in names))
    after = read_response(again, before, memory).snapshot
    assert {p.leader_epoch for p in after.partitions.values()} == {7 if error else 3}
    assert len(after.partitions) == 50
    assert known.walks + memory.epochs.walks == walks + 1  # type: ignore[attr-defined]


def test_a_partition_without_leader_is_known_without_one(metadata: Chosen) -> None:
    metadata.update(answer(topic(leader=-1)), 0)
    info = metadata.fetch().partition(TP)
    assert info is not None
    assert info.leader is None
    assert [node.id for node in info.replicas] == [1, 2, 3]
    assert info.replicas[2].port == -1


def test_topics_nobody_wants_are_not_kept(metadata: Chosen) -> None:
    metadata.update(answer(topic(), topic("other")), 0)
    assert metadata.fetch().topics == {"t"}


def test_a_partial_update_adds_to_the_picture(metadata: Chosen) -> None:
    metadata.update(answer(topic(topic_id=ID_1)), 0)
    metadata.wanted.add("u")
    metadata.new = {"u"}
    metadata.request_update_for_new_topics()
    plan = metadata.plan_request()
    assert plan.partial
    assert [t.name for t in plan.build(12).topics or []] == ["u"]
    metadata.update(answer(topic("u", topic_id=ID_2)), 10, partial=True, request_version=plan.request_version)
    assert metadata.fetch().topics == {"t", "u"}
    assert metadata.topic_id("t") == ID_1
    assert not metadata.update_requested
    metadata.update(answer(topic("t", error=3)), 20, partial=True)
    assert metadata.fetch().topics == {"u"}


def test_a_topic_asked_for_while_an_answer_was_under_way_is_still_wanted_after_it(metadata: Chosen) -> None:
    metadata.update(answer(topic()), 0)
    metadata.request_update_for_new_topics()
    plan = metadata.plan_request()
    metadata.request_update_for_new_topics()
    metadata.update(answer(topic()), 10, partial=True, request_version=plan.request_version)
    assert metadata.update_requested


def test_a_full_answer_leaves_topics_as_they_are_that_are_wanted_since_it_was_asked_for(
    metadata: Chosen,
) -> None:
    metadata.update(answer(topic(), topic("u")), 0)
    metadata.wanted.clear()
    plan = metadata.plan_request()
    metadata.wanted.add("t")
    metadata.request_update_for_new_topics()
    metadata.update(answer(), 10, request_version=plan.request_version)
    assert metadata.fetch().topics == {"t"}
    assert metadata.update_requested


def test_a_first_or_a_full_update_is_never_partial(metadata: Chosen) -> None:
    metadata.request_update_for_new_topics()
    assert not metadata.plan_request().partial
    metadata.update(answer(topic()), 0)
    metadata.request_update_for_new_topics()
    metadata.request_update()
    assert not metadata.plan_request().partial


def test_all_topics_are_asked_for_as_each_version_says_it() -> None:
    everything = Metadata(MetadataSchedule(ExponentialBackoff(1, 1), 1))
    build = everything.plan_request().build
    assert build(0).topics == []
    assert build(1).topics is None


def test_brokers_that_cannot_be_told_not_to_create_topics_are_not_asked_for_any(metadata: Chosen) -> None:
    assert metadata.plan_request().min_version == 4
    metadata.wanted.clear()
    assert metadata.plan_request().min_version is None
    creating = Chosen(allow_auto_topic_creation=True)
    assert creating.plan_request().min_version is None
    assert creating.plan_request().build(4).allow_auto_topic_creation


def test_a_hint_of_a_newer_leader_is_taken_over(metadata: Chosen) -> None:
    told: list[Cluster] = []
    metadata.update(answer(topic(leader=1, epoch=0)), 0)
    metadata.add_listener(told.append)
    assert metadata.update_partition_leadership({TP: (7, 1)}, [Node(7, "host-7", 1)]) == {TP}
    assert metadata.fetch().leader_for(TP) == Node(7, "host-7", 1)
    assert metadata.leader_epoch(TP) == 1
    assert told == [metadata.fetch()]


@pytest.mark.parametrize("hint", [(2, 3), (2, 2), (9, 8), (2, -1)])
def test_a_hint_that_is_no_news_or_names_an_unknown_broker_is_ignored(
    metadata: Chosen, hint: tuple[int, int]
) -> None:
    metadata.update(answer(topic(leader=1, epoch=3)), 0)
    assert metadata.update_partition_leadership({TP: hint, TopicPartition("x", 0): (2, 9)}) == set()
    assert leader(metadata) == 1


def test_a_first_epoch_is_news_to_a_picture_without_epochs(metadata: Chosen) -> None:
    metadata.update(answer(topic(leader=1, epoch=-1)), 0)
    assert metadata.update_partition_leadership({TP: (2, 0)}) == {TP}


def test_rebootstrapping_forgets_brokers_and_keeps_topics(metadata: Chosen) -> None:
    metadata.update(answer(topic(topic_id=ID_1)), 0)
    metadata.rebootstrap([("new", 1)])
    assert metadata.fetch().nodes == (Node(-1, "new", 1),)
    assert metadata.fetch().partition_count("t") == 1
    assert leader(metadata) is None
    assert metadata.topic_id("t") == ID_1
    assert metadata.time_to_next_update_ms(0) == 0
    assert metadata.is_bootstrapping


def test_a_bootstrap_server_is_never_the_leader_of_a_partition_without_one(metadata: Chosen) -> None:
    metadata.update(answer(topic(leader=-1)), 0)
    metadata.rebootstrap([("new", 1)])
    assert metadata.fetch().nodes == (Node(-1, "new", 1),)
    assert leader(metadata) is None
    assert metadata.leader_and_epoch(TP) == LeaderAndEpoch(None, 1)


def test_a_changed_cluster_id_is_warned_of(metadata: Chosen, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        metadata.update(answer(topic(), cluster="a"), 0)
        assert not caplog.records
        metadata.update(answer(topic(), cluster="b"), 0)
    assert "changed from a to b" in caplog.text


def test_errors_of_topics_are_raised_to_those_they_concern(metadata: Chosen) -> None:
    metadata.update(answer(topic(), topic("secret", error=29), topic("b@d", error=17)), 0)
    metadata.raise_error_for_topic("t")
    with pytest.raises(TopicAuthorizationError, match="secret"):
        metadata.raise_error_for_topic("secret")
    with pytest.raises(InvalidTopicError, match="b@d"):
        metadata.raise_error_for_topic("b@d")
    with pytest.raises(TopicAuthorizationError):
        metadata.raise_any_error()
    metadata.raise_any_error()


def start_waiting(
    metadata: Metadata, time: MockTime, version: int
) -> tuple[threading.Thread, list[BaseException]]:
    raised: list[BaseException] = []

    def wait() -> None:
        try:
            run(metadata.await_update(version, time.timer(1000)), time)
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    return thread, raised


@pytest.fixture
def time() -> MockTime:
    return MockTime()


@pytest.fixture
def waiting(time: MockTime) -> Chosen:
    made = Chosen(time=time)
    made.bootstrap([("boot", 9092)])
    return made


def test_a_waiter_is_woken_by_the_next_update(waiting: Chosen, time: MockTime) -> None:
    thread, raised = start_waiting(waiting, time, waiting.request_update())
    waiting.update(answer(topic(error=29)), 0)  # errors of topics do not concern everybody
    thread.join(10)
    assert not thread.is_alive()
    assert raised == []


def test_a_waiter_whose_time_is_over_learns_the_last_failure(waiting: Chosen, time: MockTime) -> None:
    thread, raised = start_waiting(waiting, time, waiting.request_update())
    cause = KafkaTimeoutError("nobody home")
    waiting.failed_update(0, cause)
    time.advance(1000)
    thread.join(10)
    assert isinstance(raised[0], KafkaTimeoutError)
    assert "nobody home" in str(raised[0])
    assert raised[0].__cause__ is cause


def test_a_final_failure_wakes_one_waiter_and_a_fatal_one_all_of_them(
    waiting: Chosen, time: MockTime
) -> None:
    thread, raised = start_waiting(waiting, time, waiting.request_update())
    waiting.failed_update(0, UnsupportedVersionError("too old"))
    thread.join(10)
    assert isinstance(raised[0], UnsupportedVersionError)
    waiting.raise_any_error()
    error = AuthenticationError("who are you")
    waiting.fatal_error(error)
    for _ in range(2):
        with pytest.raises(AuthenticationError):
            run(waiting.await_update(99, time.timer(0)), time)
        with pytest.raises(AuthenticationError):
            waiting.raise_error_for_topic("t")


def test_closing_ends_the_wait_and_later_answers_change_nothing(waiting: Chosen, time: MockTime) -> None:
    thread, raised = start_waiting(waiting, time, waiting.request_update())
    waiting.close()
    waiting.close()
    wait_until(lambda: not thread.is_alive())
    assert isinstance(raised[0], ClientClosedError)
    waiting.update(answer(topic()), 0)
    assert waiting.is_bootstrapping
