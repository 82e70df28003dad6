"""A consumer's metrics, over a whole consumer without threads."""

from __future__ import annotations

import math
from typing import Any

import pytest

from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.group_metrics import GroupMetrics
from kclient.consumer.internals.rebalance_callback import RebalanceKind
from kclient.consumer.listener import ConsumerRebalanceListener
from kclient.metrics import Metrics
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import heartbeat

T0, T1, U0 = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("u", 0)


def of(rig: Any, topic: str, partition: int | None = None) -> dict[str, float]:
    """The metrics of a topic, or of a partition."""
    wanted = {"topic": topic} | ({} if partition is None else {"partition": str(partition)})
    return {
        name.name: value
        for name, value in rig.consumer.metrics().items()
        if {key: text for key, text in name.tags if key != "client-id"} == wanted
    }


def slow(rig: Any, api: ApiKeys, time_ms: int) -> None:
    """Let the broker take so long for every request of one kind."""
    usual = rig.handlers[api]

    def handler(request: Any, version: int) -> Any:
        rig.time.advance(time_ms)
        return usual(request, version)

    rig.handlers[api] = handler


class TestFetching:
    def test_what_is_consumed_is_told_of_its_topic_and_of_the_client(self, rig: Any) -> None:
        rig.fill(T0, 5)
        rig.fill(T1, 3)
        rig.consumer.assign([T0, T1])
        read = 0
        while read < 8:
            read += len(rig.consumer.poll(1000))
        values = rig.consumer.metrics()
        of_topic = of(rig, "t")
        for metrics in (values, of_topic):
            assert metrics["records-consumed-total"] == 8
            assert metrics["records-consumed-rate"] > 0
            assert metrics["bytes-consumed-rate"] > 0
            assert metrics["fetch-size-max"] <= metrics["bytes-consumed-total"]
            assert 0 < metrics["fetch-size-avg"] <= metrics["fetch-size-max"]
            assert metrics["records-per-request-avg"] > 0
        assert of_topic["bytes-consumed-total"] == values["bytes-consumed-total"] > 0
        for name in ("fetch-latency-avg", "fetch-latency-max", "fetch-throttle-time-avg", "fetch-rate"):
            assert values[name] >= 0, name

    def test_a_partition_tells_how_far_it_is_from_both_ends_of_the_log(self, rig: Any) -> None:
        rig.fill(T0, 8)
        rig.consumer.assign([T0])
        assert math.isnan(of(rig, "t", 0)["records-lag"])
        rig.consumer.poll(1000)  # five of them
        values = of(rig, "t", 0)
        assert values["records-lag"] == values["records-lag-avg"] == values["records-lag-max"] == 3
        assert values["records-lead"] == values["records-lead-avg"] == values["records-lead-min"] == 5
        assert values["preferred-read-replica"] == -1
        rig.core.assigned.by_partition[T0].prefer_replica(2, rig.time.monotonic_ms() + 1000)
        assert of(rig, "t", 0)["preferred-read-replica"] == 2
        rig.consumer.poll(1000)
        values = of(rig, "t", 0)
        assert values["records-lag"] == 0
        assert values["records-lag-max"] == 3
        assert values["records-lag-avg"] == 1.5
        assert values["records-lead"] == 8
        assert values["records-lead-min"] == 5
        assert rig.consumer.metrics()["records-lag-max"] == 0
        assert rig.consumer.metrics()["records-lead-min"] == 8

    def test_metrics_go_with_their_partition_and_their_topic(self, rig: Any) -> None:
        rig.fill(T0, 1)
        rig.consumer.assign([T0, T1])
        rig.consumer.poll(1000)
        assert of(rig, "t")
        assert of(rig, "t", 1)
        rig.consumer.assign([T0])
        assert of(rig, "t", 0)
        assert not of(rig, "t", 1)
        rig.consumer.assign([U0])
        assert not of(rig, "t")
        assert not of(rig, "t", 0)
        assert of(rig, "u", 0)

    def test_partitions_that_nobody_asks_for_and_nothing_came_of_cost_nothing(self, rig: Any) -> None:
        rig.fill(T0, 1)
        rig.consumer.assign([T0, T1])
        rig.consumer.poll(1000)
        rig.time.advance(1000)
        rig.consumer.poll(0)
        assert set(rig.core.metrics._partitions._partitions) == {T0}
        rig.consumer.assign([T1])
        rig.time.advance(1000)
        rig.consumer.poll(0)
        assert not rig.core.metrics._partitions._partitions


class TestPolling:
    def test_time_that_poll_waits_is_idle_and_the_last_one_is_known(self, rig: Any) -> None:
        rig.fill(T0, 1)
        rig.consumer.assign([T0])
        assert rig.consumer.metrics()["last-poll-seconds-ago"] == -1
        rig.consumer.poll(1000)
        before = rig.consumer.metrics()["last-poll-seconds-ago"]
        rig.time.advance(500)
        assert rig.consumer.metrics()["last-poll-seconds-ago"] == pytest.approx(before + 0.5)
        rig.consumer.poll(0)
        before = rig.consumer.metrics()["poll-idle-ratio-avg"]
        rig.consumer.poll(5000)  # there is nothing more
        rig.consumer.poll(0)
        assert 1 >= rig.consumer.metrics()["poll-idle-ratio-avg"] > before

    def test_calls_that_wait_for_the_coordinator_tell_their_time(self, rig: Any) -> None:
        rig.join()
        rig.fill(T0, 1)
        rig.consumer.poll(1000)
        slow(rig, ApiKeys.OFFSET_COMMIT, 7)
        slow(rig, ApiKeys.OFFSET_FETCH, 9)
        rig.consumer.commit_sync()
        rig.consumer.committed([T0])
        values = rig.consumer.metrics()
        assert values["commit-sync-time-ns-total"] >= 7_000_000
        assert values["committed-time-ns-total"] >= 9_000_000
        assert values["commit-latency-max"] >= 7


class TestGroup:
    def test_joining_tells_of_every_part_of_the_rebalance(self, rig: Any) -> None:
        assert rig.consumer.metrics()["last-rebalance-seconds-ago"] == -1
        slow(rig, ApiKeys.JOIN_GROUP, 30)
        slow(rig, ApiKeys.SYNC_GROUP, 20)
        rig.join()
        values = rig.consumer.metrics()
        for name, least_ms in (("join", 30), ("sync", 20)):
            assert values[f"{name}-total"] == 1
            assert values[f"{name}-rate"] > 0
            assert values[f"{name}-time-avg"] == values[f"{name}-time-max"] >= least_ms
        assert values["rebalance-total"] == 1
        assert values["rebalance-rate-per-hour"] > 0
        assert values["failed-rebalance-total"] == 1, "the first attempt gave the member its id"
        assert values["rebalance-latency-avg"] == values["rebalance-latency-max"] >= 50
        assert values["rebalance-latency-total"] >= 50
        rig.time.advance(2000)
        assert rig.consumer.metrics()["last-rebalance-seconds-ago"] >= 2

    def test_heartbeats_are_counted_and_the_last_one_is_known(self, rig: Any) -> None:
        rig.join()
        before = rig.consumer.metrics()["heartbeat-total"]
        slow(rig, ApiKeys.HEARTBEAT, 15)
        rig.on(ApiKeys.HEARTBEAT, heartbeat.HeartbeatResponse())
        rig.time.advance(3000)
        rig.rounds(2)
        rig.time.advance(3000)
        rig.rounds(2)
        values = rig.consumer.metrics()
        assert values["heartbeat-total"] == before + 2
        assert values["heartbeat-rate"] > 0
        assert values["heartbeat-response-time-max"] >= 15
        rig.time.advance(1000)
        assert rig.consumer.metrics()["last-heartbeat-seconds-ago"] >= 1

    def test_the_listener_is_timed(self, rig: Any) -> None:
        class Slow(ConsumerRebalanceListener):
            def on_partitions_assigned(self, partitions: Any) -> None:
                rig.time.advance(40)

        rig.join(listener=Slow())
        values = rig.consumer.metrics()
        assert values["partition-assigned-latency-max"] == values["partition-assigned-latency-avg"] == 40
        assert math.isnan(values["partition-revoked-latency-max"])

    def test_commits_are_counted_with_their_latency(self, rig: Any) -> None:
        rig.join()
        rig.consumer.poll(0)
        rig.fill(T0, 1)
        rig.consumer.poll(1000)
        rig.consumer.commit_sync()
        values = rig.consumer.metrics()
        assert values["commit-total"] == 1
        assert values["commit-rate"] > 0
        assert values["commit-latency-avg"] == values["commit-latency-max"] >= 0


@pytest.mark.parametrize("kind", list(RebalanceKind))
def test_the_time_of_a_listener_is_told_by_what_it_heard(rig: Any, kind: RebalanceKind) -> None:
    metrics = Metrics(rig.time, "consumer-coordinator-metrics", {})
    group = GroupMetrics(metrics, rig.time)
    group.listener_called(kind, 9)
    assert metrics.snapshot()[f"partition-{kind.value}-latency-max"] == 9


def test_a_rebalance_that_came_to_nothing_is_counted(rig: Any) -> None:
    metrics = Metrics(rig.time, "consumer-coordinator-metrics", {})
    group = GroupMetrics(metrics, rig.time)
    group.rebalance_began(100)
    group.rebalance_failed()
    group.rebalance_began(200)
    group.rebalanced(5, 230)
    values = metrics.snapshot()
    assert values["failed-rebalance-total"] == values["rebalance-total"] == 1
    assert values["failed-rebalance-rate-per-hour"] > 0
    assert values["rebalance-latency-max"] == 30
