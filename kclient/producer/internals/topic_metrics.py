"""TopicMetrics: what a producer's metrics tell of each topic, under Java's names."""

from __future__ import annotations

import attrs

from kclient.metrics import Avg, MetricGroup, Metrics, Rate, Total


class _PlainRate(Avg):
    """An average that is called a rate, as Java calls that of compression."""

    __slots__ = ()
    suffix, wording = "rate", "The average {}"


@attrs.define(eq=False)
class TopicSeen:
    """Sums over some batches of a topic."""

    batches: int = 0
    records: int = 0
    bytes: int = 0
    compression: float = 0.0


class _Topic:
    """The sensors of one topic."""

    def __init__(self, group: MetricGroup, now_ms: int) -> None:
        self.group = group
        self.changed_ms = now_ms
        self.records = group.sensor("record-send", "number of records sent", Rate, Total)
        self.bytes = group.sensor("byte", "bytes of batches sent", Rate, Total)
        self.compression = group.sensor(
            "compression", "size of a batch when compressed, as a part of its size before", _PlainRate
        )
        self.retries = group.sensor("record-retry", "number of records sent again", Rate, Total)
        self.errors = group.sensor("record-error", "number of records that failed", Rate, Total)


class TopicMetrics:
    """The metrics of the topics that a producer has sent to in the last `idle_ms`. Its user's lock guards it."""

    def __init__(self, metrics: Metrics, idle_ms: int) -> None:
        self._metrics = metrics
        self._idle_ms = idle_ms
        self._topics: dict[str, _Topic] = {}

    def sent(self, topic: str, seen: TopicSeen, now_ms: int) -> None:
        """Batches of the topic went out."""
        sensors = self._of(topic, now_ms)
        sensors.records.record(seen.records)
        sensors.bytes.record(seen.bytes)
        sensors.compression.record(seen.compression, seen.batches)

    def retried(self, topic: str, records: int, now_ms: int) -> None:
        """Records will be sent again."""
        self._of(topic, now_ms).retries.record(records)

    def failed(self, topic: str, records: int, now_ms: int) -> None:
        """Records were given up."""
        self._of(topic, now_ms).errors.record(records)

    def remove_idle(self, now_ms: int) -> None:
        """Drop the topics that nothing was sent to for so long."""
        idle = [name for name, each in self._topics.items() if now_ms - each.changed_ms >= self._idle_ms]
        for name in idle:
            self._metrics.remove(self._topics.pop(name).group)

    def _of(self, topic: str, now_ms: int) -> _Topic:
        found = self._topics.get(topic)
        if found is None:
            group = self._metrics.in_group("producer-topic-metrics", {"topic": topic})
            found = self._topics[topic] = _Topic(group, now_ms)
        found.changed_ms = now_ms
        return found
