"""`spark.readStream.format("kclient")`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from kclient.spark.limits import limits_without_triggers
from kclient.spark.options import SourceOptions
from kclient.spark.output import OutputColumn
from kclient.spark.remarks import warn_once

if TYPE_CHECKING:
    from pyspark.sql.streaming.datasource import ReadLimit

    from kclient.spark.stream_planner import StreamPlanner
    from kclient.spark.task_metrics import Counter

_NO_LIMIT = 2**63 - 1


class KafkaStreamReader(DataSourceStreamReader):
    """Plans in one process of the driver's, and is pickled into the tasks, which only read.

    The one class serves PySpark 4.0 and 4.1 as well, which call `latestOffset()` without arguments and know no
    limits: AvailableNow is one batch there, and only the option `kclient.trigger` tells it from any other. Planning
    and reading each import what they need alone. Raises ConfigError where that option is missing.
    """

    def __init__(
        self, options: SourceOptions, output: Sequence[OutputColumn], counter: Counter | None = None
    ) -> None:
        limits = options.limits
        if not SPARK_HAS_LIMITS:
            limits = limits_without_triggers(limits, options.trigger)
        self._options = attrs.evolve(options, limits=limits)
        self._output = tuple(output)
        self._counter = counter
        self._made: StreamPlanner | None = None

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_made": None}

    @property
    def _planner(self) -> StreamPlanner:
        if self._made is None:
            from kclient.spark.committer import GroupCommitter
            from kclient.spark.resolver import OffsetResolver
            from kclient.spark.stream_planner import StreamPlanner
            from kclient.spark.topic_ids import TopicIds
            from kclient.spark.watcher import RecordWatcher

            options = self._options
            warn_once(options.remarks, options.settings)  # here, as another process makes the tasks' reader
            group_id = options.commit_group_id
            resolver = OffsetResolver(options)
            committer = None
            if group_id is not None:
                committer = GroupCommitter(options.settings, group_id, options.marker_topic)
            self._made = StreamPlanner(
                options, resolver, TopicIds(options, resolver), RecordWatcher(options.settings), committer
            )
        return self._made

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Return the start offsets of a new query."""
        return dict(self._planner.initial_offset())

    def latestOffset(  # noqa: N802 - Spark's name
        self, start: Mapping[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        """The end of the next batch."""
        # By name: a Spark without limits has no such class.
        everything = type(limit).__name__ == "ReadAllAvailable"
        return dict(self._planner.latest_offset(start, all_available=everything))

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """The limit unless the trigger asks for everything. The options' other limits are kept by the planner."""
        from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

        limits = self._options.limits
        if not limits.any:
            return ReadAllAvailable()
        return ReadMaxRows(limits.max_offsets or _NO_LIMIT)

    def reportLatestOffset(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """The ends of the partitions, for the query's progress."""
        latest = self._planner.report_latest()
        return None if latest is None else dict(latest)

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """Read up to where the partitions end now."""
        self._planner.prepare_for_available_now()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        """One for each task of the batch."""
        return [InputPartition(each) for each in self._planner.plan(start, end)]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The records of one task as Arrow record batches."""
        from kclient.spark.read_task import read_task

        return read_task(self._options, self._output, partition.value, self._counter)

    def commit(self, end: dict[str, Any]) -> None:
        """The batch that ends here is done."""
        self._planner.commit(end)


try:
    from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
except ImportError:
    SPARK_HAS_LIMITS = False  # PySpark 4.0 and 4.1
else:
    SPARK_HAS_LIMITS = True
    SupportsTriggerAvailableNow.register(KafkaStreamReader)
