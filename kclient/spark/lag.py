"""The lag of a query, from its progress."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql.streaming import StreamingQueryListener
from pyspark.sql.streaming.listener import (
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
)

from kclient.common.topic_partition import TopicPartition
from kclient.spark.offsets import from_json, is_initial

OnLag = Callable[[str, "dict[TopicPartition, int]"], object]


class KafkaLagListener(StreamingQueryListener):
    """Knows, for every running query that reads Kafka, how many records each partition is behind. Thread-safe.

        lag = KafkaLagListener()
        spark.streams.addListener(lag)
        lag.behind("my-query")        # {TopicPartition("orders", 0): 1250, ...}
        lag.total_behind("my-query")  # 1250

    A query goes by its name, or by its id if it has none. The numbers are those of its last progress: the ends of the
    partitions when the micro-batch was planned, less what it read up to, in offsets. `on_lag(query, behind)` is called
    with every progress, on Spark's listener thread.
    """

    def __init__(self, on_lag: OnLag | None = None) -> None:
        super().__init__()
        self._on_lag = on_lag
        self._lock = threading.Lock()
        self._behind: dict[str, dict[TopicPartition, int]] = {}
        self._names: dict[str, str] = {}

    def behind(self, query: str) -> dict[TopicPartition, int]:
        """Offsets behind per partition; empty before the first progress and after the end."""
        with self._lock:
            return dict(self._behind.get(query, {}))

    def total_behind(self, query: str) -> int:
        """Offsets behind over all partitions."""
        return sum(self.behind(query).values())

    def queries(self) -> list[str]:
        """The queries that something is known of."""
        with self._lock:
            return sorted(self._behind)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing is known yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """A micro-batch is done."""
        progress = event.progress
        sources = [(_offsets(each.latestOffset), _offsets(each.endOffset)) for each in progress.sources]
        known = [(latest, end) for latest, end in sources if latest is not None and end is not None]
        if not known:
            return
        behind: dict[TopicPartition, int] = {}
        for latest, end in known:
            for tp, offset in latest.items():
                # Several sources may read one partition: the one that is furthest behind counts.
                behind[tp] = max(offset - end.get(tp, 0), behind.get(tp, 0))
        query = progress.name or str(progress.id)
        with self._lock:
            self._behind[query] = behind
            self._names[str(progress.id)] = query
        if self._on_lag is not None:
            self._on_lag(query, dict(behind))

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """Forget the query."""
        with self._lock:
            self._behind.pop(self._names.pop(str(event.id), ""), None)


def _offsets(text: str | Mapping[str, Any] | None) -> dict[TopicPartition, int] | None:
    """The offsets of a source of Kafka's; None for those of another."""
    try:
        value = json.loads(text) if isinstance(text, str) else text
        if not isinstance(value, Mapping) or not value or is_initial(value):
            return None
        return from_json(value)
    except ValueError:
        return None
