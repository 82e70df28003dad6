"""Tasks of the sink for Spark that write exactly once, without Spark: attempts, markers, replays, on a real broker."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from harness.mock_time import MockTime
from harness.real_kafka.broker import RealKafka
from harness.topics import new_topic, read_all
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient, NewTopic
from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    ApplicationRecoverableError,
    IllegalStateError,
    InvalidTopicError,
    KafkaTimeoutError,
    UnknownTopicOrPartitionError,
)
from kclient.spark import clients
from kclient.spark.delivery import Written
from kclient.spark.exactly_once import replay
from kclient.spark.exactly_once.delivery import ExactlyOnceDelivery, Finding, TaskOutcome
from kclient.spark.exactly_once.sink_task import SinkTask
from kclient.spark.option_names import Use
from kclient.spark.output import SinkColumns
from kclient.spark.sink_options import SinkOptions, parse_sink
from kclient.utils.time import SYSTEM_TIME, Time

pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed (pip install '.[arrow]')")

DEADLINE_S = 60.0


@pytest.fixture(autouse=True)
def _clients_end() -> Iterator[None]:
    yield
    clients.close_all()


@pytest.fixture
def topic(kafka: RealKafka) -> str:
    return new_topic(kafka.bootstrap_servers, 2)


@pytest.fixture
def query() -> str:
    return f"q-{uuid.uuid4().hex[:8]}"


def options(kafka: RealKafka, topic: str | None, **more: str) -> SinkOptions:
    given = {"kafka.bootstrap.servers": kafka.bootstrap_servers, "kclient.delivery": "exactly_once"}
    if topic is not None:
        given["topic"] = topic
    given |= {name.replace("__", "."): value for name, value in more.items()}
    return parse_sink(given, Use.STREAM_WRITE)


def sink(options: SinkOptions, time: Time = SYSTEM_TIME, *names: str) -> ExactlyOnceDelivery:
    assert options.exactly_once is not None
    columns = SinkColumns(names or ("value",), options.topic)
    return ExactlyOnceDelivery(options.settings, options.exactly_once, columns, time)


def batch(*values: bytes) -> Any:
    return pa.record_batch({"value": list(values)})


def committed(kafka: RealKafka, topic: str) -> list[bytes | None]:
    records = read_all(kafka.bootstrap_servers, topic, isolation_level="read_committed")
    return sorted(record.value or b"" for record in records)


def test_rows_and_marker_are_committed_together(kafka: RealKafka, topic: str, query: str) -> None:
    task = SinkTask(query, 7, 3)
    outcome = sink(options(kafka, topic, kclient__missing__markers="accept")).deliver(
        task, [batch(b"a", b"b"), batch(), batch(b"c")]
    )
    assert outcome.finding is Finding.WRITTEN
    assert sum(written.count for written in outcome.written.values()) == 3
    assert committed(kafka, topic) == [b"a", b"b", b"c"]
    with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
        offsets = admin.list_consumer_group_offsets(f"kclient-sink-{query}-3", require_stable=True)
    marker = offsets[TopicPartition(topic, 0)]
    assert marker is not None
    assert (marker.offset, marker.metadata) == (8, '{"rows": 3}')


def test_an_epoch_that_is_marked_is_not_written_again_and_the_next_one_is(
    kafka: RealKafka, topic: str, query: str
) -> None:
    delivery = sink(options(kafka, topic))
    for epoch in (0, 0, 1, 1, 1, 2):
        found = delivery.deliver(SinkTask(query, epoch, 1), [batch(b"%d" % epoch)]).finding
        repeated = committed(kafka, topic).count(b"%d" % epoch)
        assert (found in {Finding.WRITTEN, Finding.ALREADY_WRITTEN}, repeated) == (True, 1)
        # The first partition has its marker in every epoch, also without rows.
        delivery.deliver(SinkTask(query, epoch, 0), [])
    assert committed(kafka, topic) == [b"0", b"1", b"2"]


def test_a_task_without_rows_leaves_a_marker_in_the_first_partition_alone(
    kafka: RealKafka, topic: str, query: str
) -> None:
    delivery = sink(options(kafka, topic))
    outcomes = [delivery.deliver(SinkTask(query, 0, number), [batch()]) for number in (0, 1)]
    assert [outcome.finding for outcome in outcomes] == [Finding.WRITTEN, Finding.NO_ROWS]
    with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
        assert {group for group in admin.list_groups() if query in group} == {f"kclient-sink-{query}-0"}


class Blocked:
    """Batches of which the second one is not there before it is let through."""

    def __init__(self, *batches: Any) -> None:
        self._batches = batches
        self.waits = threading.Event()
        self.go_on = threading.Event()

    def __iter__(self) -> Iterator[Any]:
        yield self._batches[0]
        self.waits.set()
        assert self.go_on.wait(DEADLINE_S)
        yield from self._batches[1:]


def run(outcomes: list[Any], delivery: ExactlyOnceDelivery, task: SinkTask, batches: Any) -> threading.Thread:
    def deliver() -> None:
        try:
            outcomes.append(delivery.deliver(task, batches))
        except Exception as error:
            outcomes.append(error)

    thread = threading.Thread(target=deliver)
    thread.start()
    return thread


def test_of_two_attempts_the_later_one_writes_and_the_other_finds_its_marker(
    kafka: RealKafka, topic: str, query: str
) -> None:
    delivery, task = sink(options(kafka, topic)), SinkTask(query, 0, 0)
    zombie, outcomes = Blocked(batch(b"a"), batch(b"b")), list[Any]()
    thread = run(outcomes, delivery, task, zombie)
    assert zombie.waits.wait(DEADLINE_S)
    assert delivery.deliver(task, [batch(b"a"), batch(b"b")]).finding is Finding.WRITTEN
    zombie.go_on.set()
    thread.join(DEADLINE_S)
    assert [outcome.finding for outcome in outcomes] == [Finding.ALREADY_WRITTEN]
    assert committed(kafka, topic) == [b"a", b"b"]


def test_an_attempt_that_was_fenced_fails_while_nobody_has_written(
    kafka: RealKafka, topic: str, query: str
) -> None:
    delivery, task = sink(options(kafka, topic)), SinkTask(query, 0, 0)
    first, second, outcomes = Blocked(batch(b"a")), Blocked(batch(b"a"), batch(b"b")), list[Any]()
    threads = [run(outcomes, delivery, task, first)]
    assert first.waits.wait(DEADLINE_S)
    threads.append(run(outcomes, delivery, task, second))
    assert second.waits.wait(DEADLINE_S)
    first.go_on.set()
    threads[0].join(DEADLINE_S)
    assert isinstance(outcomes[0], ApplicationRecoverableError)
    second.go_on.set()
    threads[1].join(DEADLINE_S)
    assert outcomes[1].finding is Finding.WRITTEN
    assert committed(kafka, topic) == [b"a", b"b"]


def test_rows_that_cannot_be_had_abort_the_transaction(kafka: RealKafka, topic: str, query: str) -> None:
    delivery, task = sink(options(kafka, topic)), SinkTask(query, 0, 0)

    def rows() -> Iterator[Any]:
        yield batch(b"lost")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        delivery.deliver(task, rows())
    assert delivery.deliver(task, [batch(b"a")]).finding is Finding.WRITTEN
    assert committed(kafka, topic) == [b"a"]


def test_a_task_that_takes_longer_than_a_transaction_may_fails_and_names_the_setting(
    kafka: RealKafka, topic: str, query: str
) -> None:
    time, task = MockTime(), SinkTask(query, 0, 0)

    def rows() -> Iterator[Any]:
        yield batch(b"early")
        time.advance(5000)
        yield batch(b"late")

    given = options(kafka, topic, kafka__transaction__timeout__ms="5000")
    with pytest.raises(
        KafkaTimeoutError, match=r"open for 5000 ms.* kafka\.transaction\.timeout\.ms=5000"
    ) as caught:
        sink(given, time).deliver(task, rows())
    assert str(caught.value).startswith(f"Sink partition 0 of {query}, epoch 0: ")
    assert committed(kafka, topic) == []


def test_a_row_for_a_partition_that_does_not_exist_fails_before_the_transaction_is_too_old(
    kafka: RealKafka, topic: str, query: str
) -> None:
    time = MockTime()
    rows = pa.record_batch({"value": [b"a", b"b"], "partition": pa.array([1, 2], pa.int32())})
    with pytest.raises(
        UnknownTopicOrPartitionError, match=f"^Partition 2 of topic {topic}, which has 2 partitions, does not"
    ):
        sink(options(kafka, topic), time, "value", "partition").deliver(SinkTask(query, 0, 0), [rows])
    assert committed(kafka, topic) == []


def test_a_task_that_waited_for_its_topic_until_the_transaction_was_too_old_names_both(
    kafka: RealKafka, topic: str, query: str
) -> None:
    time = MockTime()

    def rows() -> Iterator[Any]:
        yield pa.record_batch({"value": [b"a"], "topic": [topic]})
        time.advance(5000)
        raise KafkaTimeoutError("Topic of-nobody was not found")

    given = options(kafka, None, kclient__marker__topic=topic, kafka__transaction__timeout__ms="5000")
    with pytest.raises(
        KafkaTimeoutError,
        match=r"transaction\.timeout\.ms=5000.* The error was: Topic of-nobody was not found$",
    ):
        sink(given, time, "value", "topic").deliver(SinkTask(query, 0, 0), rows())


def test_an_epoch_without_any_marker_before_it_is_refused_unless_that_is_accepted(
    kafka: RealKafka, topic: str, query: str
) -> None:
    for partition in (0, 2):
        with pytest.raises(
            IllegalStateError, match=r"no marker of an epoch.* kclient\.missing\.markers=accept"
        ):
            sink(options(kafka, topic)).deliver(SinkTask(query, 5, partition), [batch(b"a")])
    assert committed(kafka, topic) == []
    accepting = sink(options(kafka, topic, kclient__missing__markers="accept"))
    assert accepting.deliver(SinkTask(query, 5, 0), [batch(b"a")]).finding is Finding.WRITTEN


def test_an_epoch_after_the_marker_topic_was_created_again_is_refused_unless_that_is_accepted(
    kafka: RealKafka, topic: str, query: str
) -> None:
    sink(options(kafka, topic)).deliver(SinkTask(query, 0, 0), [batch(b"of the old one")])
    with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
        admin.delete_topics([topic])
        wait_until(lambda: topic not in admin.list_topics(), 10, "the topic's end")
        admin.create_topics([NewTopic(topic, 2, 1)])
        wait_until(lambda: topic in admin.list_topics(), 10, "the new topic")
    for partition in (0, 1):
        with pytest.raises(
            IllegalStateError, match=f"no marker of an epoch.*if {topic} was deleted and created"
        ):
            sink(options(kafka, topic)).deliver(SinkTask(query, 1, partition), [batch(b"b")])
    accepting = sink(options(kafka, topic, kclient__missing__markers="accept"))
    for partition in (0, 1):
        accepting.deliver(SinkTask(query, 1, partition), [batch(b"b%d" % partition)])
    assert sorted(committed(kafka, topic)) == [b"b0", b"b1"]
    again = sink(options(kafka, topic)).deliver(SinkTask(query, 1, 1), [batch(b"b1")])
    assert again.finding is Finding.ALREADY_WRITTEN


def test_a_partition_that_is_new_needs_no_marker_if_the_first_one_has(
    kafka: RealKafka, topic: str, query: str
) -> None:
    delivery = sink(options(kafka, topic))
    delivery.deliver(SinkTask(query, 0, 0), [])
    assert delivery.deliver(SinkTask(query, 1, 2), [batch(b"a")]).finding is Finding.WRITTEN


def test_an_epoch_before_the_marker_is_refused(kafka: RealKafka, topic: str, query: str) -> None:
    delivery = sink(options(kafka, topic))
    for epoch in (0, 1):
        delivery.deliver(SinkTask(query, epoch, 0), [batch(b"%d" % epoch)])
    with pytest.raises(IllegalStateError, match=r"marker of epoch 1, a later one.*checkpoint was taken back"):
        delivery.deliver(SinkTask(query, 0, 0), [batch(b"0")])
    assert committed(kafka, topic) == [b"0", b"1"]


def test_another_number_of_rows_in_a_replay_is_refused(kafka: RealKafka, topic: str, query: str) -> None:
    delivery, task = sink(options(kafka, topic)), SinkTask(query, 0, 0)
    delivery.deliver(task, [batch(b"a", b"b")])
    for rows, count in (([batch(b"a")], 1), ([batch(b"a", b"b"), batch(b"c")], 3), ([], 0)):
        with pytest.raises(IllegalStateError, match=f"2 rows were written, and this time there are {count}"):
            delivery.deliver(task, rows)
    assert committed(kafka, topic) == [b"a", b"b"]


def test_rows_that_choose_their_topics_have_markers_in_a_topic_of_the_option(
    kafka: RealKafka, topic: str, query: str
) -> None:
    markers = new_topic(kafka.bootstrap_servers, 1)
    delivery = sink(options(kafka, None, kclient__marker__topic=markers), SYSTEM_TIME, "value", "topic")
    rows = pa.record_batch({"value": [b"a"], "topic": [topic]})
    findings = [delivery.deliver(SinkTask(query, 0, 0), [rows]).finding for _ in range(2)]
    assert findings == [Finding.WRITTEN, Finding.ALREADY_WRITTEN]
    assert (committed(kafka, topic), committed(kafka, markers)) == ([b"a"], [])


class TestTheDriver:
    """It looks for sink partitions that had rows in the epoch, and have none now."""

    def check(self, kafka: RealKafka, topic: str, *outcomes: TaskOutcome) -> None:
        given = options(kafka, topic)
        replay.check_replay(given.settings, TopicPartition(topic, 0), outcomes)

    def test_the_same_partitions_are_fine_and_more_of_them_too(
        self, kafka: RealKafka, topic: str, query: str
    ) -> None:
        delivery = sink(options(kafka, topic))
        for _ in range(2):
            self.check(
                kafka,
                topic,
                *(
                    delivery.deliver(SinkTask(query, 0, number), [batch(b"%d" % number)])
                    for number in range(3)
                ),
            )

    @pytest.mark.parametrize("now", ["fewer partitions", "fewer partitions with rows"])
    def test_partitions_that_a_replay_lacks_are_named(
        self, kafka: RealKafka, topic: str, query: str, now: str
    ) -> None:
        delivery = sink(options(kafka, topic))
        for number in (0, 1, 12):
            delivery.deliver(SinkTask(query, 0, number), [batch(b"%d" % number)])
        outcomes = [
            delivery.deliver(SinkTask(query, 0, number), [batch(b"%d" % number)]) for number in (0, 1)
        ]
        if now != "fewer partitions":
            outcomes.append(TaskOutcome(SinkTask(query, 0, 12), Finding.NO_ROWS))
        with pytest.raises(
            IllegalStateError, match=rf"1 more sink partitions.*delete --group kclient-sink-{query}-12"
        ):
            self.check(kafka, topic, *outcomes)

    def test_markers_of_epochs_before_are_no_difference(
        self, kafka: RealKafka, topic: str, query: str
    ) -> None:
        delivery = sink(options(kafka, topic))
        for number in range(3):
            delivery.deliver(SinkTask(query, 0, number), [batch(b"0")])
        self.check(kafka, topic, delivery.deliver(SinkTask(query, 1, 0), [batch(b"1")]))

    def test_only_the_first_epoch_of_a_run_is_looked_at(
        self, kafka: RealKafka, topic: str, query: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(replay, "_looked_at", set())
        looked: list[str] = []
        monkeypatch.setattr(
            replay.Markers, "others", lambda self, write_id, known: looked.append(write_id) or {}
        )
        for run_id in ("first", "first", "second", None, None):
            self.check(kafka, topic, TaskOutcome(SinkTask(query, 3, 0, run_id), Finding.WRITTEN))
        assert len(looked) == 4


def test_a_topic_that_is_not_there_is_created_for_the_marker_or_named(kafka: RealKafka, query: str) -> None:
    created = f"created-{query}"
    assert sink(options(kafka, created)).deliver(SinkTask(query, 0, 0), []).finding is Finding.WRITTEN
    with pytest.raises(InvalidTopicError, match="no topic"):
        sink(options(kafka, "no topic")).deliver(SinkTask(query, 1, 0), [])


def test_offsets_that_a_task_wrote_are_told(kafka: RealKafka, query: str) -> None:
    topic = new_topic(kafka.bootstrap_servers, 1)
    delivery = sink(options(kafka, topic))
    tp = TopicPartition(topic, 0)
    written = [delivery.deliver(SinkTask(query, epoch, 0), [batch(b"a", b"b")]).written for epoch in (0, 1)]
    assert written == [{tp: Written(2, 0, 1)}, {tp: Written(2, 3, 4)}]
