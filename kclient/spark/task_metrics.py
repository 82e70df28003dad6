"""Numbers of the tasks that read and write Kafka, added up on the driver.

Spark's progress has none of a source in Python. The way from a task to the driver is an accumulator, of which Spark
counts every task once, whatever attempts it took.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias

import attrs
from pyspark.accumulators import AccumulatorParam

from kclient.common.topic_partition import TopicPartition

if TYPE_CHECKING:
    from pyspark import Accumulator
    from pyspark.sql import SparkSession


@attrs.frozen
class TaskNumbers:
    """Numbers of tasks that have ended well. Immutable, can be pickled."""

    tasks: int = 0
    records: int = 0
    most_records: int = 0
    """Records of the largest task."""
    bytes: int = 0
    """Size of keys, values and headers that were read; 0 for what was written."""
    fetch_ms: int = 0
    """Time that tasks waited for records; 0 for what was written."""
    task_ms: int = 0
    """Time from the beginning of tasks to their end, with what Spark did with their rows meanwhile."""

    def also(self, other: TaskNumbers) -> TaskNumbers:
        """Both together."""
        return TaskNumbers(
            self.tasks + other.tasks,
            self.records + other.records,
            max(self.most_records, other.most_records),
            self.bytes + other.bytes,
            self.fetch_ms + other.fetch_ms,
            self.task_ms + other.task_ms,
        )


@attrs.frozen
class Counted:
    """The key of numbers: the query, None for a batch, reading or writing, and the partition. Can be pickled."""

    query_id: str | None
    reads: bool
    tp: TopicPartition


Numbers: TypeAlias = dict[Counted, TaskNumbers]
Counter: TypeAlias = "Accumulator[Numbers]"


class _Sum(AccumulatorParam[Numbers]):
    def zero(self, value: Numbers) -> Numbers:  # noqa: ARG002 - Spark's signature
        return {}

    def addInPlace(self, value1: Numbers, value2: Numbers) -> Numbers:  # noqa: N802 - Spark's name
        for key, numbers in value2.items():
            value1[key] = value1.get(key, TaskNumbers()).also(numbers)
        return value1


class KafkaTaskMetrics:
    """Numbers of the tasks of a session's queries, by partition: records, bytes, time. Thread-safe.

        metrics = KafkaTaskMetrics(spark)
        register(spark, metrics)
        metrics.read(query.id)     # {TopicPartition("orders", 0): TaskNumbers(tasks=3, records=1250, ...), ...}
        metrics.written(query.id)

    Of queries that begin after `register`. A query goes by its id; None stands for all batches. Needs a session with a
    SparkContext of its own, which Spark Connect has not.
    """

    def __init__(self, spark: SparkSession) -> None:
        self.counter: Counter = spark.sparkContext.accumulator({}, _Sum())
        """The accumulator that tasks add to."""

    def read(self, query_id: str | None = None) -> Mapping[TopicPartition, TaskNumbers]:
        """Return the numbers of the tasks that have read for the query so far, by partition."""
        return self._of(query_id, reads=True)

    def written(self, query_id: str | None = None) -> Mapping[TopicPartition, TaskNumbers]:
        """Return the numbers of the tasks that have written for the query so far, by partition."""
        return self._of(query_id, reads=False)

    def _of(self, query_id: str | None, *, reads: bool) -> Mapping[TopicPartition, TaskNumbers]:
        wanted = None if query_id is None else str(query_id)
        # A copy first: Spark adds to it on a thread of its own.
        numbers = dict(self.counter.value).items()
        return {key.tp: each for key, each in numbers if key.query_id == wanted and key.reads is reads}
