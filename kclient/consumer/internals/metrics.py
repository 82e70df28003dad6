"""The metrics of a consumer, under Java's names. Recorded per fetch and per poll, never per record."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterable
from typing import TYPE_CHECKING

import attrs

from kclient.client.client_metrics import ClientMetrics
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.config import ConsumerConfig
from kclient.consumer.internals.assigned_partitions import AssignedPartitions
from kclient.consumer.internals.partition_metrics import ConsumedSensors, PartitionMetrics, TopicSeen
from kclient.metrics import Avg, Max, Rate, Sensor, Total
from kclient.utils.time import Time

if TYPE_CHECKING:
    from kclient.consumer.internals.group_metrics import GroupMetrics

# How often what was seen is handed to the sensors; a reader of the metrics gets the rest.
_FOLD_MS = 1000


@attrs.define
class _Seen:
    """Sums and largest values over some fetches and polls."""

    fetches: int = 0
    latency_ms: int = 0
    longest_latency_ms: int = 0
    throttle_ms: int = 0
    longest_throttle_ms: int = 0
    data: TopicSeen = attrs.field(factory=TopicSeen)
    topics: defaultdict[str, TopicSeen] = attrs.field(factory=lambda: defaultdict(TopicSeen))
    consumed: set[TopicPartition] = attrs.field(factory=set)
    left_out: int = 0
    waited_ms: int = 0
    polls: int = 0
    between_polls_ms: int = 0
    longest_between_polls_ms: int = 0


class ConsumerMetrics(ClientMetrics):
    """The sensors of one consumer. Thread-safe.

    A sensor costs as much as reading a hundred records, so fetches and polls are summed up first.
    """

    def __init__(self, config: ConsumerConfig, time: Time) -> None:
        super().__init__(config, time, "consumer-metrics")
        self._lock = threading.Lock()
        # Reentrant: a signal handler or a __del__ that interrupts its holder may need it.
        self._fold_lock = threading.RLock()
        self._time = time
        self._partitions: PartitionMetrics | None = None
        self.group: GroupMetrics | None = None
        """The metrics of the group, if there is one."""
        self._seen = _Seen()
        self._folded_ms = 0
        consumer = self._metrics
        self._fetch = fetch = consumer.in_group("consumer-fetch-manager-metrics")
        self._requests = fetch.sensor("fetch", "number of fetch requests", Rate, Total)
        self._latency = fetch.sensor("fetch-latency", "ms until a fetch was answered", Avg, Max)
        self._throttle = fetch.sensor("fetch-throttle-time", "ms a fetch was throttled by a broker", Avg, Max)
        self._data = ConsumedSensors(fetch)
        self._left_out: Sensor | None = None
        self._between_polls = consumer.sensor("time-between-poll", "ms between two calls of poll()", Avg, Max)
        self._idle = consumer.sensor(
            "poll-idle-ratio", "part of the time that the application waits in poll()", Avg
        )
        self.commit_sync = consumer.sensor("commit-sync-time-ns", "ns spent in commit_sync()", Total)
        self.committed = consumer.sensor("committed-time-ns", "ns spent in committed()", Total)
        consumer.gauge(
            "last-poll-seconds-ago",
            "Seconds since the last call of poll(), -1 before the first",
            lambda: -1 if self._polled_ms is None else (time.monotonic_ms() - self._polled_ms) / 1000,
        )
        self._polled_ms: int | None = None

    def fetched(self, latency_ms: int, throttle_ms: int, sizes: Iterable[tuple[str, int]]) -> None:
        """A fetch was answered, and had data of so many bytes of partitions of these topics."""
        with self._lock:
            seen = self._seen
            seen.fetches += 1
            seen.latency_ms += latency_ms
            seen.throttle_ms += throttle_ms
            seen.longest_latency_ms = max(seen.longest_latency_ms, latency_ms)
            seen.longest_throttle_ms = max(seen.longest_throttle_ms, throttle_ms)
            of_topics: dict[str, int] = {}
            for topic, size in sizes:
                of_topics[topic] = of_topics.get(topic, 0) + size
            for topic, size in of_topics.items():
                seen.topics[topic].fetched(size)
            if of_topics:
                seen.data.fetched(sum(of_topics.values()))

    def consumed(self, counts: Iterable[tuple[TopicPartition, int]]) -> None:
        """So many records of partitions were handed to the application."""
        with self._lock:
            seen = self._seen
            for tp, count in counts:
                seen.data.records += count
                seen.topics[tp.topic].records += count
                seen.consumed.add(tp)

    def left_out(self) -> None:
        """A record was left out that no deserializer could read."""
        with self._lock:
            self._seen.left_out += 1

    def waited(self, time_ms: int) -> None:
        """A poll() had nothing to hand out for so long."""
        with self._lock:
            self._seen.waited_ms += time_ms

    def polled(self, now_ms: int) -> None:
        """The application called poll()."""
        if self._polled_ms is not None:
            between_ms = now_ms - self._polled_ms
            with self._lock:
                seen = self._seen
                seen.polls += 1
                seen.between_polls_ms += between_ms
                seen.longest_between_polls_ms = max(seen.longest_between_polls_ms, between_ms)
        self._polled_ms = now_ms
        if now_ms - self._folded_ms >= _FOLD_MS:
            self._folded_ms = now_ms
            self._fold()

    def _fold(self) -> None:
        """Hand what was seen since the last time to the sensors."""
        with self._fold_lock:
            with self._lock:
                seen, self._seen = self._seen, _Seen()
            self._tell(seen)

    def _tell(self, seen: _Seen) -> None:
        if seen.fetches:
            self._requests.record(seen.fetches)
            self._latency.record(seen.latency_ms, seen.fetches, seen.longest_latency_ms)
            self._throttle.record(seen.throttle_ms, seen.fetches, seen.longest_throttle_ms)
        self._data.record(seen.data)
        if self._left_out is not None and seen.left_out:
            self._left_out.record(seen.left_out)
        if self._partitions is not None:
            self._partitions.consumed(seen.topics, seen.consumed)
            self._partitions.remove_gone()
        if seen.polls:
            self._between_polls.record(seen.between_polls_ms, seen.polls, seen.longest_between_polls_ms)
            self._idle.record(
                min(seen.waited_ms / max(seen.between_polls_ms, 1), 1.0) * seen.polls, seen.polls
            )

    def watch_left_out(self) -> None:
        """Tell of records that are left out, where the settings allow it."""
        self._left_out = self._fetch.sensor(
            "records-left-out", "number of records left out that no deserializer could read", Rate, Total
        )

    def watch_group(self) -> GroupMetrics:
        """Return the metrics of the group that the consumer may be a member of."""
        from kclient.consumer.internals.group_metrics import GroupMetrics

        self.group = GroupMetrics(self._metrics.in_group("consumer-coordinator-metrics"), self._time)
        return self.group

    def watch_assignment(self, assigned: AssignedPartitions, *, read_committed: bool) -> None:
        """Tell of the partitions in `assigned` and of their topics."""
        self._partitions = PartitionMetrics(self._metrics, assigned, read_committed)
        self._metrics.in_group("consumer-coordinator-metrics").gauge(
            "assigned-partitions", "The number of partitions assigned", lambda: len(assigned.by_partition)
        )
        self._fetch.gauge(
            "records-lag-max",
            "The largest lag of a partition, in records",
            lambda: assigned.max_lag(read_committed),
        )
        self._fetch.gauge(
            "records-lead-min", "The smallest lead of a partition, in records", assigned.min_lead
        )

    def _catch_up(self) -> None:
        self._fold()
        if self._partitions is not None:
            with self._fold_lock:
                self._partitions.add_assigned()
