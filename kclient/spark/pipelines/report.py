"""Progress reports of running queries."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from datetime import datetime

import attrs
from pyspark.sql.streaming import StreamingQuery
from pyspark.sql.streaming.listener import QueryProgressEvent, QueryTerminatedEvent

from kclient.spark.lag import KafkaLagListener
from kclient.spark.pipelines.late import late_rows
from kclient.utils.text import counted

_LISTENER_S = 30.0


@attrs.frozen
class Progress:
    """One micro-batch: how many rows it read, how many of them were too late for their window, how far behind the
    query then was, and when the micro-batch began.
    """

    query: str
    batch_id: int
    rows: int
    late_rows: int
    behind: int
    time_ms: int

    def __str__(self) -> str:
        late = f", {self.late_rows:,} too late for their window" if self.late_rows else ""
        return f"{self.query}: micro-batch {self.batch_id}, {self.rows:,} rows{late}, {self.behind:,} behind"


class ProgressListener(KafkaLagListener):
    """Calls `on_progress` after every micro-batch, on Spark's listener thread."""

    def __init__(self, on_progress: Callable[[Progress], object]) -> None:
        super().__init__()
        self._on_progress = on_progress
        self._ended: set[str] = set()
        self._heard = threading.Condition()

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """A micro-batch is done, or has been waited for in vain for ten seconds."""
        super().onQueryProgress(event)
        progress = event.progress
        query = progress.name or str(progress.id)
        watermark = progress.eventTime.get("watermark")
        late = late_rows(
            progress.observedMetrics, progress.batchId, 0 if watermark is None else _ms(watermark)
        )
        if late is None:
            # A query that is no pipeline's; what Spark counts are groups.
            late = sum(operator.numRowsDroppedByWatermark for operator in progress.stateOperators)
        self._on_progress(
            Progress(
                query,
                progress.batchId,
                progress.numInputRows,
                late,
                self.total_behind(query),
                _ms(progress.timestamp),
            )
        )

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """A query has ended, and all of its progress was told."""
        super().onQueryTerminated(event)
        with self._heard:
            self._ended.add(str(event.runId))
            self._heard.notify_all()

    def wait_for(self, queries: Iterable[StreamingQuery]) -> bool:
        """Wait until all is told of queries that have ended, which is a little later; False after half a minute."""
        runs = {str(query.runId) for query in queries}
        with self._heard:
            return self._heard.wait_for(lambda: runs <= self._ended, _LISTENER_S)


@attrs.define
class Totals:
    """The sums of all micro-batches of a query."""

    rows: int = 0
    late_rows: int = 0

    def add(self, progress: Progress) -> None:
        """Count one micro-batch."""
        self.rows += progress.rows
        self.late_rows += progress.late_rows

    def __str__(self) -> str:
        return f"{counted(self.rows, 'row')}, {self.late_rows:,} too late for their window"


def _ms(iso: str) -> int:
    return round(datetime.fromisoformat(iso).timestamp() * 1000)
