"""`spark.read.format("kclient")`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, InputPartition

from kclient.spark.options import SourceOptions
from kclient.spark.output import OutputColumn

if TYPE_CHECKING:
    from kclient.spark.condition import Condition
    from kclient.spark.task_metrics import Counter


class KafkaBatchReader(DataSourceReader):
    """Plans on the driver, reads on the executors. Holds no client, so that it can be pickled.

    Each of the two imports what it needs alone, as they take place in different processes.
    """

    def __init__(
        self, options: SourceOptions, output: Sequence[OutputColumn], counter: Counter | None = None
    ) -> None:
        self._options = options
        self._output = tuple(output)
        self._counter = counter
        self.condition: Condition | None = None
        """The condition that the query puts on records, None while it is not known."""

    def partitions(self) -> list[InputPartition]:
        """One for each task."""
        from kclient.spark.batch_planner import plan_batch
        from kclient.spark.resolver import OffsetResolver

        ranges = plan_batch(self._options, OffsetResolver(self._options), self.condition)
        return [InputPartition(each) for each in ranges]

    def read(self, partition: InputPartition | None) -> Iterator[Any]:
        """The records of one task as Arrow record batches."""
        # Out of no task at all Spark makes one: PySpark 4.0 with None, later ones with a partition of None.
        wanted = None if partition is None else partition.value
        if wanted is None:
            return iter(())
        from kclient.spark.read_task import read_task

        return read_task(self._options, self._output, wanted, self._counter)
