"""Requests and connections that planning and reading cost the brokers, however many partitions there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import attrs
import pytest

from kclient.admin import KafkaAdminClient, NewTopic
from kclient.broker import EmbeddedKafka
from kclient.common.topic_partition import TopicPartition
from kclient.producer import KafkaProducer
from kclient.spark import clients
from kclient.spark.batch_planner import plan_batch
from kclient.spark.option_names import Use
from kclient.spark.options import SourceOptions, parse_source
from kclient.spark.output import OutputColumn
from kclient.spark.range_reader import read_range
from kclient.spark.ranges import OffsetRange
from kclient.spark.resolver import OffsetResolver
from kclient.spark.stream_planner import StreamPlanner
from kclient.spark.topic_ids import TopicIds
from kclient.spark.watcher import RecordWatcher

MANY = 1000
FILLED = 25
"""Those of them that have something to read, as a broker takes its time to close what was written to."""

VALUE = [OutputColumn("value", "value", True)]


@attrs.frozen
class Cost:
    """A broker, and how many requests and connections it has had."""

    kafka: EmbeddedKafka

    @property
    def servers(self) -> str:
        return self.kafka.bootstrap_servers

    def of(self, work: Callable[[], object]) -> Counter[str]:
        """The requests by API, and new connections, while `work` ran."""
        before = self._so_far()
        work()
        return self._so_far() - before

    def _so_far(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for each in self.kafka.measurements():
            if each.name.name == "RequestsPerSec-Count":
                found[dict(each.name.tags)["request"]] += int(each.value)
            elif each.name.name == "connection-creation-total":
                found["connections"] += int(each.value)
        return found


@pytest.fixture(scope="module")
def cost() -> Iterator[Cost]:
    """A broker with records in the only partition of `one` and in some of the many of `many`."""
    with EmbeddedKafka() as kafka:
        with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
            admin.create_topics([NewTopic("one", 1), NewTopic("many", MANY)])
        write(kafka.bootstrap_servers)
        yield Cost(kafka)
        clients.close_all()


def write(servers: str) -> None:
    with KafkaProducer(bootstrap_servers=servers, linger_ms=100) as producer:
        producer.send("one", b"v")
        for number in range(FILLED):
            producer.send("many", b"v", partition=number)


def options(servers: str, topic: str, use: Use) -> SourceOptions:
    given = {"kafka.bootstrap.servers": servers, "subscribe": topic, "startingoffsets": "earliest"}
    return parse_source(given, use)


def of_a_batch(cost: Cost, topic: str, tasks: int) -> Counter[str]:
    """The cost of planning one with so many tasks, by a process that is connected."""
    given = options(cost.servers, topic, Use.BATCH_READ)
    assert len(plan_batch(given, OffsetResolver(given))) == tasks
    return cost.of(lambda: plan_batch(given, OffsetResolver(given)))


def of_a_micro_batch(cost: Cost, topic: str, tasks: int) -> Counter[str]:
    """The cost of planning the one after the first."""
    given = options(cost.servers, topic, Use.STREAM_READ)
    resolver = OffsetResolver(given)
    planner = StreamPlanner(given, resolver, TopicIds(given, resolver), RecordWatcher(given.settings), None)
    start = planner.initial_offset()
    end = planner.latest_offset(start, all_available=False)
    assert len(planner.plan(start, end)) == tasks
    write(cost.servers)
    found: list[OffsetRange] = []

    def plan() -> None:
        found.extend(planner.plan(end, planner.latest_offset(end, all_available=False)))

    asked = cost.of(plan)
    assert len(found) == tasks
    return asked


def test_a_batch_of_many_partitions_is_planned_with_as_many_requests_as_one_of_one(cost: Cost) -> None:
    many = of_a_batch(cost, "many", FILLED)
    assert many == of_a_batch(cost, "one", 1)
    assert many <= Counter(ListOffsets=2, Metadata=3)


def test_a_micro_batch_of_many_partitions_is_planned_with_as_many_requests_as_one_of_one(cost: Cost) -> None:
    many = of_a_micro_batch(cost, "many", FILLED)
    assert many == of_a_micro_batch(cost, "one", 1)
    assert many <= Counter(ListOffsets=1, Metadata=2)


def test_the_next_task_of_a_worker_has_the_connections_and_the_metadata_of_the_one_before(cost: Cost) -> None:
    given = options(cost.servers, "many", Use.BATCH_READ)

    def read(numbers: range) -> None:
        for number in numbers:
            wanted = OffsetRange(TopicPartition("many", number), 0, 1)
            assert sum(batch.num_rows for batch in read_range(given, VALUE, wanted)) == 1

    clients.close_all()
    first, others = cost.of(lambda: read(range(1))), cost.of(lambda: read(range(1, 21)))
    assert first["connections"] == 2  # to find the brokers, and to the leader
    assert others["connections"] == others["Metadata"] == others["ApiVersions"] == 0
    # One for the records, and one or a few for what may come after them until the range has ended.
    assert 20 <= others["Fetch"] < 5 * 20


def test_nothing_is_fetched_while_the_last_records_of_a_task_are_in_use(cost: Cost) -> None:
    given = options(cost.servers, "many", Use.BATCH_READ)

    def use(batches: Iterator[Any]) -> None:
        assert next(batches).num_rows == 1
        with KafkaAdminClient(bootstrap_servers=cost.servers) as admin:
            for _ in range(20):
                admin.describe_topics(["many"])
        assert list(batches) == []

    asked = cost.of(lambda: use(read_range(given, VALUE, OffsetRange(TopicPartition("many", 0), 0, 1))))
    assert 1 <= asked["Fetch"] < 10
