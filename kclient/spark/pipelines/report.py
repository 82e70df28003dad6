"""Progress reports of running queries."""

from __future__ import annotations

from collections.abc import Callable

import attrs
from pyspark.sql.streaming.listener import QueryProgressEvent

from kclient.spark.lag import KafkaLagListener


@attrs.frozen
class Progress:
    """One micro-batch: how many rows it read, how many the watermark left out, how far behind the query then was."""

    query: str
    batch_id: int
    rows: int
    late_rows: int
    behind: int

    def __str__(self) -> str:
        late = f", {self.late_rows:,} too late for their window" if self.late_rows else ""
        return f"{self.query}: micro-batch {self.batch_id}, {self.rows:,} rows{late}, {self.behind:,} behind"


class ProgressListener(KafkaLagListener):
    """Calls `on_progress` after every micro-batch, on Spark's listener thread."""

    def __init__(self, on_progress: Callable[[Progress], object]) -> None:
        super().__init__()
        self._on_progress = on_progress

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """A micro-batch is done, or has been waited for in vain for ten seconds."""
        super().onQueryProgress(event)
        progress = event.progress
        query = progress.name or str(progress.id)
        late = sum(operator.numRowsDroppedByWatermark for operator in progress.stateOperators)
        self._on_progress(
            Progress(query, progress.batchId, progress.numInputRows, late, self.total_behind(query))
        )
