"""`spark.readStream.format("kclient")`: every record once, whatever happens on the way.

On the embedded broker; what a restart goes on with, on a real Kafka as well.
"""

from __future__ import annotations

import itertools
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.spark import sessions
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient, NewTopic
from kclient.broker import EmbeddedKafka
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import KafkaConsumer
from kclient.producer import KafkaProducer
from kclient.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.spark,
    pytest.mark.xdist_group("spark-stream"),
    pytest.mark.timeout(300),
]

_topics = itertools.count()
QUICK = {"fetchOffset.retryIntervalMs": "50"}


class QueryHarness:
    """A topic of the test's own on a broker, and queries that read it into files, one folder for each batch."""

    def __init__(self, spark: Any, servers: str, topic: str, folder: Path) -> None:
        self.spark = spark
        self.servers = servers
        self.topic = topic
        self.folder = folder
        self.checkpoint = folder / "checkpoint"
        self.sent: Counter[tuple[int, bytes]] = Counter()
        self.batches: list[int] = []
        self._numbers = itertools.count()
        self.fail_in: int | None = None
        self.before_reading: Callable[[], object] = lambda: None
        with KafkaAdminClient(bootstrap_servers=servers) as admin:
            admin.create_topics([NewTopic(topic, num_partitions=2)])

    def send(self, count: int, partitions: int = 2) -> None:
        with KafkaProducer(bootstrap_servers=self.servers) as producer:
            for number in itertools.islice(self._numbers, count):
                value = b"v%d" % number
                producer.send(self.topic, value, partition=number % partitions)
                self.sent[number % partitions, value] += 1

    def grow(self, partitions: int) -> None:
        from harness.broker.wire import Wire

        topic = CreatePartitionsTopic(name=self.topic, count=partitions, assignments=None)
        with Wire(self.servers) as wire:
            asked = CreatePartitionsRequest(topics=[topic], timeout_ms=10_000, validate_only=False)
            assert wire.ask(asked, 2).results[0].error_code == 0

    def create_again(self, partitions: int = 2) -> list[str]:
        """Delete the topic and create another one of its name; the ids of both."""
        ids = []
        with KafkaAdminClient(bootstrap_servers=self.servers) as admin:
            ids.append(str(admin.describe_topics([self.topic])[self.topic].topic_id))
            admin.delete_topics([self.topic])
            wait_until(lambda: self.topic not in admin.list_topics(), 10, "the topic's end")
            admin.create_topics([NewTopic(self.topic, num_partitions=partitions)])
            wait_until(lambda: self.topic in admin.list_topics(), 10, "the new topic")
            ids.append(str(admin.describe_topics([self.topic])[self.topic].topic_id))
        return ids

    def source(self, **options: str) -> Any:
        reader = self.spark.readStream.format("kclient").option("kafka.bootstrap.servers", self.servers)
        chosen = {"subscribe": self.topic, "startingOffsets": "earliest", **options}
        return reader.options(**chosen).load()

    def start(self, available_now: bool = True, name: str | None = None, **options: str) -> Any:
        def write(frame: Any, batch_id: int) -> None:
            self.batches.append(batch_id)
            self.before_reading()
            if batch_id == self.fail_in:
                raise RuntimeError("the batch fails")
            # The folder of a batch is written anew when the batch is run again, which makes it exactly once.
            frame.select("partition", "value").write.mode("overwrite").parquet(
                str(self.folder / "out" / str(batch_id))
            )

        writer = self.source(**options).writeStream.option("checkpointLocation", str(self.checkpoint))
        if name is not None:
            writer = writer.queryName(name)
        trigger = {"availableNow": True} if available_now else {"processingTime": "0 seconds"}
        return writer.foreachBatch(write).trigger(**trigger).start()

    def run(self, **options: str) -> list[Any]:
        """Read what is there; the progress of each batch."""
        query = self.start(**options)
        assert query.awaitTermination(200)
        return [progress for progress in query.recentProgress if progress["numInputRows"]]

    def run_all(self, **options: str) -> None:
        """Read what is there; before PySpark 4.2 a run is one micro-batch, and may be one that is run again."""
        for _ in range(1 if sessions.HAS_LIMITS else 2):
            self.run(**options)

    def seen(self) -> Counter[tuple[int, bytes]]:
        files = sorted(str(each.parent) for each in (self.folder / "out").glob("*/_SUCCESS"))
        return sessions.rows(self.spark.read.parquet(*files)) if files else Counter()

    def wait_for_all(self, query: Any) -> None:
        """Wait until the running query has read what was sent; a query that has ended tells its error."""
        wait_until(lambda: self.seen() == self.sent or not query.isActive, 100, "all records")
        assert query.isActive, sessions.said(query.exception())

    def forget(self, step: str, batch: int) -> None:
        """Take a file out of the checkpoint, as if the crash had come before it was written."""
        for each in (self.checkpoint / step).glob(f"*{batch}*"):
            each.unlink()


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with EmbeddedKafka() as kafka:
        yield kafka.bootstrap_servers


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with sessions.session() as made:
        yield made


@pytest.fixture
def harness(request: pytest.FixtureRequest, spark: Any, tmp_path: Path) -> QueryHarness:
    servers = request.getfixturevalue(getattr(request, "param", "servers"))
    return QueryHarness(spark, servers, f"stream-{next(_topics)}", tmp_path)


on_both_brokers = pytest.mark.parametrize(
    "harness",
    [
        pytest.param("servers", marks=pytest.mark.old_spark),
        pytest.param("real_servers", marks=pytest.mark.kafka),
    ],
    indirect=True,
    ids=["embedded", "kafka"],
)


@sessions.needs_limits
def test_batches_keep_to_the_limit_and_a_restart_goes_on_where_the_last_run_ended(
    harness: QueryHarness,
) -> None:
    harness.send(100)
    first = harness.run(maxOffsetsPerTrigger="40")
    assert [progress["numInputRows"] for progress in first] == [40, 40, 20]
    assert harness.seen() == harness.sent
    harness.send(50)
    assert [progress["numInputRows"] for progress in harness.run()] == [50]
    assert harness.run() == []
    assert harness.seen() == harness.sent


@pytest.mark.old_spark
def test_where_spark_tells_no_trigger_available_now_reads_everything_in_one_batch(
    harness: QueryHarness,
) -> None:
    harness.send(100)
    found = harness.run(**{"maxOffsetsPerTrigger": "40", "kclient.trigger": "availableNow"})
    expected = [40, 40, 20] if sessions.HAS_LIMITS else [100]
    assert [progress["numInputRows"] for progress in found] == expected
    assert harness.seen() == harness.sent


@on_both_brokers
@pytest.mark.parametrize("lost", ["commit of the first", "commit of a later", "offsets of a later"])
def test_a_crash_between_two_steps_of_a_batch_loses_nothing_and_repeats_nothing(
    harness: QueryHarness, lost: str
) -> None:
    harness.send(30)
    harness.run()
    if lost != "commit of the first":
        harness.send(30)
        harness.run()
    last = harness.batches[-1]
    assert last == (0 if lost == "commit of the first" else 1)
    harness.forget("commits", last)
    if lost == "offsets of a later":
        harness.forget("offsets", last)
        shutil.rmtree(harness.folder / "out" / str(last))
    harness.send(30)
    harness.grow(3)
    harness.send(30, partitions=3)
    harness.batches.clear()
    harness.run_all()
    assert harness.batches[0] == last
    assert harness.seen() == harness.sent


@on_both_brokers
def test_a_batch_that_fails_while_it_runs_is_run_again_with_the_same_records(harness: QueryHarness) -> None:
    harness.send(30)
    harness.run()
    harness.send(30)
    harness.fail_in = 1
    with pytest.raises(Exception, match="the batch fails"):
        harness.run()
    harness.fail_in = None
    harness.send(30)
    harness.run_all()
    assert harness.batches == [0, 1, 1, 2]
    assert harness.seen() == harness.sent


@on_both_brokers
def test_a_stream_from_the_latest_that_dies_in_its_first_batch_misses_nothing(harness: QueryHarness) -> None:
    harness.send(10)
    harness.sent.clear()
    harness.run(startingOffsets="latest")
    assert (harness.checkpoint / "offsets" / "0").exists()
    harness.forget("commits", 0)
    harness.grow(3)
    harness.send(30, partitions=3)
    harness.run_all(startingOffsets="latest")
    assert harness.seen() == harness.sent


@pytest.mark.old_spark
def test_a_running_stream_sees_new_records_and_new_partitions(harness: QueryHarness) -> None:
    query = harness.start(available_now=False)
    try:
        harness.send(10)
        wait_until(lambda: harness.seen() == harness.sent, 100, "the first records")
        harness.grow(4)
        harness.send(20, partitions=4)
        wait_until(lambda: harness.seen() == harness.sent, 100, "the records of new partitions")
        query.stop()
        harness.send(20, partitions=4)
        query = harness.start(available_now=False)
        wait_until(lambda: harness.seen() == harness.sent, 100, "the records that came while it was stopped")
    finally:
        query.stop()


@pytest.mark.old_spark
def test_two_queries_in_one_session_do_not_disturb_each_other(
    spark: Any, servers: str, tmp_path: Path
) -> None:
    beds = [QueryHarness(spark, servers, f"two-{number}", tmp_path / str(number)) for number in range(2)]
    for number, harness in enumerate(beds):
        harness.send(50 + number)
    limit = {"maxOffsetsPerTrigger": "20"} if sessions.HAS_LIMITS else {}
    queries = [harness.start(**limit) for harness in beds]
    for query in queries:
        assert query.awaitTermination(200)
    for harness in beds:
        assert harness.seen() == harness.sent


@pytest.mark.old_spark
def test_a_group_hears_what_was_processed_and_another_query_starts_from_there(
    harness: QueryHarness, tmp_path: Path
) -> None:
    harness.send(20)
    harness.run(commitGroupId="etl")
    harness.run(commitGroupId="etl")
    partitions = [TopicPartition(harness.topic, number) for number in (0, 1)]
    with KafkaConsumer(bootstrap_servers=harness.servers, group_id="etl") as consumer:
        assert [each.offset for each in consumer.committed(partitions).values() if each] == [10, 10]
    harness.sent.clear()
    harness.send(6)
    harness.checkpoint = tmp_path / "another"
    harness.folder = tmp_path / "another-out"
    harness.run_all(startingOffsets="group:etl")
    assert harness.seen() == harness.sent


@sessions.needs_limits
def test_the_listener_knows_how_far_a_query_is_behind(harness: QueryHarness, spark: Any) -> None:
    from kclient.spark import KafkaLagListener

    told: list[tuple[str, int]] = []
    listener = KafkaLagListener(lambda query, behind: told.append((query, sum(behind.values()))))
    spark.streams.addListener(listener)
    try:
        harness.send(100)
        query = harness.start(name="behind", maxOffsetsPerTrigger="40")
        assert query.awaitTermination(200)
        wait_until(lambda: ("behind", 0) in told, 30, "the last progress")
        assert told[:2] == [("behind", 60), ("behind", 20)]
        wait_until(lambda: listener.queries() == [], 30, "the end of the query")
    finally:
        spark.streams.removeListener(listener)


@pytest.mark.old_spark
def test_records_that_are_gone_stop_the_query_or_are_warned_of(harness: QueryHarness) -> None:
    harness.send(20)
    harness.run()
    with KafkaAdminClient(bootstrap_servers=harness.servers) as admin:
        admin.delete_topics([harness.topic])
        wait_until(lambda: harness.topic not in admin.list_topics(), 10, "the topic's end")
        admin.create_topics([NewTopic(harness.topic, num_partitions=1)])
    with pytest.raises(Exception, match="failOnDataLoss") as caught:
        harness.run(**{"fetchOffset.retryIntervalMs": "1"})
    assert "gone since the last batch" in sessions.said(caught.value)
    harness.run(failOnDataLoss="false", **{"fetchOffset.retryIntervalMs": "1"})


@on_both_brokers
def test_a_topic_that_is_created_again_under_a_running_query_is_read_from_its_beginning(
    harness: QueryHarness,
) -> None:
    harness.send(20)
    query = harness.start(available_now=False, failOnDataLoss="false", **QUICK)
    try:
        harness.wait_for_all(query)
        for partitions, count in ((1, 7), (3, 60)):
            harness.create_again(partitions)
            harness.send(count, partitions)
            harness.wait_for_all(query)
    finally:
        query.stop()
    assert query.exception() is None


@on_both_brokers
def test_a_topic_that_is_created_again_between_two_runs_is_known_by_what_the_group_has_noted(
    harness: QueryHarness,
) -> None:
    with KafkaAdminClient(bootstrap_servers=harness.servers) as admin:
        admin.create_topics([NewTopic(f"{harness.topic}-markers")])
    group = {"commitGroupId": harness.topic, "kclient.marker.topic": f"{harness.topic}-markers", **QUICK}
    harness.send(20)
    harness.run(**group)
    harness.run(**group)
    before, now = harness.create_again()
    # More than was read of the first one: by offsets alone this could be the same topic.
    harness.send(50)
    with pytest.raises(Exception, match=r"failOnDataLoss") as caught:
        harness.run(**group)
    assert f"its id was {before} and is {now}" in sessions.said(caught.value)
    harness.run_all(**group, failOnDataLoss="false")
    assert harness.seen() == harness.sent
    harness.send(6)
    harness.run(**group)
    assert harness.seen() == harness.sent


@pytest.mark.parametrize(
    ("harness", "fail"),
    [
        pytest.param("servers", "true"),
        pytest.param("real_servers", "true", marks=pytest.mark.kafka),
        pytest.param("servers", "false", marks=pytest.mark.old_spark),
    ],
    indirect=["harness"],
    ids=["embedded-true", "kafka-true", "embedded-false"],
)
def test_a_topic_that_is_created_again_after_a_batch_was_planned_is_not_read_for_the_old_one(
    harness: QueryHarness, fail: str
) -> None:
    harness.send(20)
    ids: list[str] = []

    def create_again() -> None:
        if not ids:
            ids.extend(harness.create_again())
            harness.sent.clear()
            harness.send(50)

    harness.before_reading = create_again
    query = harness.start(available_now=False, failOnDataLoss=fail, **QUICK)
    try:
        if fail == "false":
            wait_until(lambda: harness.seen() == harness.sent, 100, "the records of the new topic")
            return
        with pytest.raises(Exception, match="failOnDataLoss") as caught:
            query.awaitTermination(100)
        assert f"its id was {ids[0]} and is {ids[1]}" in sessions.said(caught.value)
    finally:
        query.stop()
    assert not harness.seen()


@pytest.mark.parametrize("fail", ["true", "false"])
@pytest.mark.parametrize("where", ["earliest", "latest"])
def test_a_topic_that_is_not_there_is_told_at_the_start_and_is_no_lost_data(
    harness: QueryHarness, where: str, fail: str
) -> None:
    away = {"subscribe": f"{harness.topic},away", "startingOffsets": where, "failOnDataLoss": fail}
    with pytest.raises(Exception, match="There is no topic away") as caught:
        harness.run(**away, **{"fetchOffset.retryIntervalMs": "1"})
    assert f"on {harness.servers} (subscribe {harness.topic}, away)" in sessions.said(caught.value)
    assert "Create it before the query starts" in sessions.said(caught.value)
    assert "lost" not in sessions.said(caught.value)


@pytest.mark.old_spark
def test_a_topic_that_vanished_is_lost_data(harness: QueryHarness) -> None:
    harness.send(20)
    harness.run()
    with KafkaAdminClient(bootstrap_servers=harness.servers) as admin:
        admin.delete_topics([harness.topic])
        wait_until(lambda: harness.topic not in admin.list_topics(), 10, "the topic's end")
    retry = {"fetchOffset.retryIntervalMs": "1"}
    with pytest.raises(Exception, match="failOnDataLoss") as caught:
        harness.run(**retry)
    assert f"topic {harness.topic} was read before and is not there any more" in sessions.said(caught.value)
    harness.run(failOnDataLoss="false", **retry)
    harness.run(failOnDataLoss="false", **retry)
    assert harness.seen() == harness.sent


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"endingOffsets": "latest"}, "endingOffsets is not valid in a streaming query"),
        ({"minOffsetsPerTrigger": "5", "maxOffsetsPerTrigger": "4"}, "must not be greater than"),
        ({"maxTriggerDelay": "x"}, "maxTriggerDelay"),
    ],
)
def test_a_wrong_option_is_told_with_its_name(
    harness: QueryHarness, options: dict[str, str], text: str
) -> None:
    with pytest.raises(Exception, match="PYTHON_") as caught:
        harness.run(**options)
    assert text in sessions.said(caught.value)
