"""GroupMetrics: what a consumer's metrics tell of its group, under Java's names."""

from __future__ import annotations

from kclient.consumer.internals.rebalance_callback import RebalanceKind
from kclient.metrics import Avg, Max, MetricGroup, Rate, RatePerHour, Total
from kclient.utils.time import Time


class GroupMetrics:
    """The sensors of a member of a group. Thread-safe, but for what only the I/O thread tells: rebalances."""

    def __init__(self, metrics: MetricGroup, time: Time) -> None:
        self._time = time
        sensor = metrics.sensor
        self._commits = sensor("commit", "number of commits", Rate, Total)
        self._commit_latency = sensor("commit-latency", "ms until a commit was answered", Avg, Max)
        self._heartbeats = sensor("heartbeat", "number of heartbeats", Rate, Total)
        self._heartbeat_time = sensor("heartbeat-response-time", "ms until a heartbeat was answered", Max)
        self._joins = sensor("join", "number of times the member joined the group", Rate, Total)
        self._join_time = sensor("join-time", "ms until the group let the member join", Avg, Max)
        self._syncs = sensor("sync", "number of times the member was assigned partitions", Rate, Total)
        self._sync_time = sensor("sync-time", "ms until the member was assigned partitions", Avg, Max)
        self._rebalances = sensor("rebalance", "number of rebalances", RatePerHour, Total)
        self._failures = sensor(
            "failed-rebalance", "number of rebalances that the member began anew", RatePerHour, Total
        )
        self._rebalance_latency = sensor("rebalance-latency", "ms of a rebalance", Avg, Max, Total)
        self._listener_latencies = {
            kind: sensor(
                f"partition-{kind.value}-latency",
                f"ms that the listener took for partitions {words}",
                Avg,
                Max,
            )
            for kind, words in (
                (RebalanceKind.ASSIGNED, "it was assigned"),
                (RebalanceKind.REVOKED, "it had to give up"),
                (RebalanceKind.LOST, "it has lost"),
            )
        }
        self._began_ms: int | None = None
        self._heartbeat_ms: int | None = None
        self._rebalanced_ms: int | None = None
        metrics.gauge(
            "last-heartbeat-seconds-ago",
            "Seconds since the last heartbeat was sent, -1 before the first",
            lambda: self._seconds_since(self._heartbeat_ms),
        )
        metrics.gauge(
            "last-rebalance-seconds-ago",
            "Seconds since the last rebalance, -1 before the first",
            lambda: self._seconds_since(self._rebalanced_ms),
        )

    def committed(self, latency_ms: int) -> None:
        """A commit was answered."""
        self._commits.record()
        self._commit_latency.record(latency_ms)

    def heartbeat_sent(self, now_ms: int) -> None:
        """A heartbeat is on its way."""
        self._heartbeat_ms = now_ms

    def heartbeat_answered(self, latency_ms: int) -> None:
        """The coordinator knows that the member is alive."""
        self._heartbeats.record()
        self._heartbeat_time.record(latency_ms)

    def rebalance_began(self, now_ms: int) -> None:
        """The member asks to join."""
        self._began_ms = now_ms

    def joined(self, latency_ms: int) -> None:
        """All members have joined."""
        self._joins.record()
        self._join_time.record(latency_ms)

    def rebalanced(self, sync_latency_ms: int, now_ms: int) -> None:
        """The member has its assignment."""
        self._syncs.record()
        self._sync_time.record(sync_latency_ms)
        self.reconciled(now_ms)

    def reconciled(self, now_ms: int) -> None:
        """The member has taken what a coordinator that assigns wanted."""
        self._rebalances.record()
        self._rebalanced_ms = now_ms
        if self._began_ms is not None:
            self._rebalance_latency.record(now_ms - self._began_ms)

    def rebalance_failed(self) -> None:
        """The rebalance under way came to nothing."""
        self._failures.record()

    def listener_called(self, kind: RebalanceKind, latency_ms: int) -> None:
        """The application has heard that partitions come or go."""
        self._listener_latencies[kind].record(latency_ms)

    def _seconds_since(self, then_ms: int | None) -> float:
        return -1 if then_ms is None else (self._time.monotonic_ms() - then_ms) / 1000
