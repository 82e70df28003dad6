"""PartitionMetrics: what a consumer's metrics tell of each topic and partition, under Java's names."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.assigned_partitions import AssignedPartitions
from kclient.metrics import Avg, Max, MetricGroup, Metrics, Min, Rate, Total

_GROUP = "consumer-fetch-manager-metrics"


@attrs.define(eq=False)
class TopicSeen:
    """Sums and largest values over some fetches of one topic, or of all."""

    fetches: int = 0
    bytes: int = 0
    largest_bytes: int = 0
    records: int = 0

    def fetched(self, size: int) -> None:
        """One fetch had so many bytes of it."""
        self.fetches += 1
        self.bytes += size
        self.largest_bytes = max(self.largest_bytes, size)


class ConsumedSensors:
    """The sensors of the data of one topic, or of all."""

    def __init__(self, group: MetricGroup) -> None:
        self.group = group
        self._bytes = group.sensor("bytes-consumed", "bytes fetched", Rate, Total)
        self._size = group.sensor("fetch-size", "bytes of a fetch", Avg, Max)
        self._records = group.sensor("records-consumed", "number of records consumed", Rate, Total)
        self._per_request = group.sensor("records-per-request", "number of records of a fetch", Avg)

    def record(self, seen: TopicSeen) -> None:
        """Take in what was seen since the last time."""
        if seen.fetches:
            self._bytes.record(seen.bytes)
            self._size.record(seen.bytes, seen.fetches, seen.largest_bytes)
        if seen.records:
            self._records.record(seen.records)
        if seen.fetches or seen.records:
            self._per_request.record(seen.records, seen.fetches)


class _Partition:
    """The metrics of one partition: as it is now, and as it was when records of it were consumed."""

    def __init__(
        self, group: MetricGroup, tp: TopicPartition, assigned: AssignedPartitions, read_committed: bool
    ) -> None:
        self.group = group
        self._tp = tp
        self._assigned = assigned
        self._read_committed = read_committed
        self._lags = group.sensor("records-lag", "number of records behind the end of the log", Avg, Max)
        self._leads = group.sensor("records-lead", "number of records ahead of the log's start", Avg, Min)
        group.gauge("records-lag", "Records behind the end of the log", lambda: _known(self._lag()))
        group.gauge("records-lead", "Records ahead of the log's start", lambda: _known(self._lead()))
        group.gauge(
            "preferred-read-replica", "The follower that is read from, -1 for the leader", self._replica
        )

    def record(self) -> None:
        """Records of it were consumed."""
        lag, lead = self._lag(), self._lead()
        if lag is not None:
            self._lags.record(lag)
        if lead is not None:
            self._leads.record(lead)

    def _lag(self) -> int | None:
        state = self._assigned.by_partition.get(self._tp)
        return None if state is None else state.lag(self._read_committed)

    def _lead(self) -> int | None:
        state = self._assigned.by_partition.get(self._tp)
        return None if state is None else state.lead()

    def _replica(self) -> float:
        state = self._assigned.by_partition.get(self._tp)
        replica = None if state is None else state.preferred_replica
        return -1 if replica is None else replica


class PartitionMetrics:
    """The metrics of the topics and partitions that are assigned. Its user's lock guards it."""

    def __init__(self, metrics: Metrics, assigned: AssignedPartitions, read_committed: bool) -> None:
        self._metrics = metrics
        self._assigned = assigned
        self._read_committed = read_committed
        self._topics: dict[str, ConsumedSensors] = {}
        self._partitions: dict[TopicPartition, _Partition] = {}

    def consumed(self, topics: dict[str, TopicSeen], partitions: Iterable[TopicPartition]) -> None:
        """Data of `topics` was fetched or consumed, and records of `partitions`."""
        assigned = self._assigned.by_partition
        for tp in partitions:
            if tp in assigned:
                self._of(tp).record()
        for name, seen in topics.items():
            found = self._topics.get(name)
            if found is None:
                found = self._topics[name] = ConsumedSensors(self._metrics.in_group(_GROUP, {"topic": name}))
            found.record(seen)

    def add_assigned(self) -> None:
        """Have metrics of all that is assigned, for somebody who asks: those that nobody reads cost memory."""
        for tp in list(self._assigned.by_partition):
            self._of(tp)

    def remove_gone(self) -> None:
        """Drop what is not assigned any more."""
        assigned = self._assigned.by_partition
        gone = [tp for tp in self._partitions if tp not in assigned]
        for tp in gone:
            self._metrics.remove(self._partitions.pop(tp).group)
        for name in self._topics.keys() - {tp.topic for tp in list(assigned)}:
            self._metrics.remove(self._topics.pop(name).group)

    def _of(self, tp: TopicPartition) -> _Partition:
        found = self._partitions.get(tp)
        if found is None:
            group = self._metrics.in_group(_GROUP, {"topic": tp.topic, "partition": str(tp.partition)})
            found = self._partitions[tp] = _Partition(group, tp, self._assigned, self._read_committed)
        return found


def _known(value: int | None) -> float:
    return float("nan") if value is None else value
