"""The offsets of micro-batches, with a cluster that is a dictionary."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from harness.mock_time import MockTime
from kclient.common.topic_partition import TopicPartition
from kclient.spark.data_loss import DataLossError
from kclient.spark.offsets import INITIAL, Bound, Kind, from_json, to_json
from kclient.spark.option_names import Use
from kclient.spark.options import SourceOptions, parse_source
from kclient.spark.ranges import OffsetRange
from kclient.spark.stream_planner import StreamPlanner

A, B, C = (TopicPartition("t", number) for number in range(3))


class Cluster:
    """Partitions with their first and last offsets; stands for the resolver and the watcher, and is committed to."""

    def __init__(self, **_: object) -> None:
        self.first = {A: 0, B: 0}
        self.last = {A: 100, B: 50}
        self.lagging: list[dict[TopicPartition, int]] = []
        self.waits = 0
        self.commits: list[dict[TopicPartition, int]] = []
        self.comes: dict[TopicPartition, int] = {}

    def partitions(self, known: Any = None) -> frozenset[TopicPartition]:
        return frozenset(self.last)

    def partitions_that_exist(self) -> frozenset[TopicPartition]:
        return frozenset(self.last)

    def earliest(self, partitions: Any) -> dict[TopicPartition, int]:
        return {tp: self.first[tp] for tp in partitions}

    def earliest_that_exist(self, partitions: Any) -> dict[TopicPartition, int]:
        return {tp: self.first[tp] for tp in partitions if tp in self.first}

    def latest(self, partitions: Any) -> dict[TopicPartition, int]:
        known = self.lagging.pop(0) if self.lagging else self.last
        return {tp: known[tp] for tp in partitions}

    def start(self, bound: Bound, partitions: Any) -> dict[TopicPartition, int]:
        return self.latest(partitions) if bound.kind is Kind.LATEST else self.earliest(partitions)

    def wait(self, positions: Mapping[TopicPartition, int]) -> bool:
        self.waits += 1
        self.last.update(self.comes)
        return bool(self.comes)

    def offset_bytes(self, starts: Any, ends: Any) -> dict[TopicPartition, float]:
        return dict.fromkeys(starts, 100.0)

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        self.commits.append(dict(offsets))


def options(**more: str) -> SourceOptions:
    given = {"kafka.bootstrap.servers": "x:1", "subscribe": "t", "startingoffsets": "earliest"}
    return parse_source({**given, **{name.lower(): value for name, value in more.items()}}, Use.STREAM_READ)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def planner(cluster: Any, time: MockTime | None = None, **more: str) -> StreamPlanner:
    return StreamPlanner(options(**more), cluster, cluster, cluster, time or MockTime())


def next_end(planner: StreamPlanner, start: Any, *, everything: bool = False) -> Any:
    """As Spark does: the answer goes through JSON into the log."""
    return json.loads(json.dumps(planner.latest_offset(start, all_available=everything)))


def test_a_stream_from_the_earliest_reads_what_is_there_and_then_what_comes(cluster: Cluster) -> None:
    stream = planner(cluster)
    start = dict(stream.initial_offset())
    assert start == {"t": {"0": 0, "1": 0}}
    end = next_end(stream, start)
    assert stream.plan(start, end) == [OffsetRange(A, 0, 100), OffsetRange(B, 0, 50)]
    cluster.last[A] = 120
    later = next_end(stream, end)
    assert stream.plan(end, later) == [OffsetRange(A, 100, 120)]
    assert stream.report_latest() == {"t": {"0": 120, "1": 50}}


@pytest.mark.parametrize(
    "given",
    [
        {"startingOffsets": "latest"},
        {"startingOffsets": "group:g"},
        {"startingOffsets": '{"t":{"0":5,"1":-1}}'},
        {"startingTimestamp": "5", "startingOffsetsByTimestampStrategy": "latest"},
    ],
)
def test_a_start_that_may_change_is_a_mark_until_it_is_in_the_log(
    cluster: Cluster, given: dict[str, str]
) -> None:
    assert planner(cluster, **given).initial_offset() == INITIAL


@pytest.mark.parametrize(
    "given",
    [
        {"startingOffsets": "earliest"},
        {"startingOffsets": '{"t":{"0":5,"1":-2}}'},
        {"startingTimestamp": "5"},
    ],
)
def test_a_start_that_stays_is_told_at_once(cluster: Cluster, given: dict[str, str]) -> None:
    assert planner(cluster, **given).initial_offset() == {"t": {"0": 0, "1": 0}}


def test_a_stream_from_the_latest_that_crashes_in_its_first_batch_loses_nothing(cluster: Cluster) -> None:
    stream = planner(cluster, startingOffsets="latest")
    logged = next_end(stream, dict(stream.initial_offset()))
    assert logged == {"t": {"0": 100, "1": 50}}
    cluster.last = {A: 130, B: 60, C: 5}
    cluster.first[C] = 0
    restarted = planner(cluster, startingOffsets="latest")
    assert restarted.plan(dict(restarted.initial_offset()), logged) == []
    end = next_end(restarted, logged)
    assert restarted.plan(logged, end) == [
        OffsetRange(A, 100, 130),
        OffsetRange(B, 50, 60),
        OffsetRange(C, 0, 5),
    ]


def test_a_partition_that_comes_before_the_first_batch_is_run_again_is_not_lost(cluster: Cluster) -> None:
    logged = next_end(planner(cluster), {"t": {"0": 0, "1": 0}})
    cluster.last[C], cluster.first[C] = 7, 0
    restarted = planner(cluster)
    start = dict(restarted.initial_offset())
    assert len(restarted.plan(start, logged)) == 2
    end = next_end(restarted, logged)
    assert restarted.plan(logged, end) == [OffsetRange(C, 0, 7)]


def test_a_new_partition_is_read_from_its_beginning(cluster: Cluster) -> None:
    stream = planner(cluster)
    start = {"t": {"0": 100, "1": 50}}
    cluster.last[C], cluster.first[C] = 9, 0
    end = next_end(stream, start)
    assert end == {"t": {"0": 100, "1": 50, "2": 9}}
    assert stream.plan(start, end) == [OffsetRange(C, 0, 9)]


def test_a_new_partition_that_has_lost_its_beginning_is_data_loss(cluster: Cluster) -> None:
    cluster.last[C], cluster.first[C] = 9, 4
    start, end = {"t": {"0": 0, "1": 0}}, {"t": {"0": 0, "1": 0, "2": 9}}
    with pytest.raises(DataLossError, match="t-2 is new and begins at offset 4"):
        planner(cluster).plan(start, end)
    assert planner(cluster, failOnDataLoss="false").plan(start, end) == [OffsetRange(C, 4, 9)]


def test_a_partition_that_is_gone_is_data_loss(cluster: Cluster) -> None:
    stream = planner(cluster, failOnDataLoss="false")
    start = {"t": {"0": 0, "1": 0}}
    del cluster.last[B]
    end = next_end(stream, start)
    assert end == {"t": {"0": 100}}
    assert stream.plan(start, end) == [OffsetRange(A, 0, 100)]
    with pytest.raises(DataLossError, match="t-1: gone"):
        planner(cluster).plan(start, end)


def test_a_partition_that_is_gone_before_it_was_read_at_all_is_data_loss(cluster: Cluster) -> None:
    start, end = {"t": {"0": 0, "1": 0}}, {"t": {"0": 1, "1": 0, "2": 9}}
    with pytest.raises(DataLossError, match="t-2 was deleted"):
        planner(cluster).plan(start, end)


def test_offsets_that_go_back_are_asked_for_again_and_then_data_loss(cluster: Cluster) -> None:
    start = {"t": {"0": 100, "1": 50}}
    cluster.lagging = [{A: 90, B: 50}, {A: 95, B: 50}]
    assert next_end(planner(cluster), start) == start
    cluster.last[A] = 90
    stream = planner(cluster)
    end = next_end(stream, start)
    with pytest.raises(DataLossError, match="t-0 ends at 90 now, and was read up to 100"):
        stream.plan(start, end)


def test_limits_make_batches_smaller_and_trigger_once_sets_them_aside(cluster: Cluster) -> None:
    stream = planner(cluster, maxOffsetsPerTrigger="30")
    start = dict(stream.initial_offset())
    assert next_end(stream, start) == {"t": {"0": 20, "1": 10}}
    assert next_end(stream, start, everything=True) == {"t": {"0": 100, "1": 50}}
    assert stream.report_latest() == {"t": {"0": 100, "1": 50}}


def test_a_limit_in_bytes_goes_by_what_the_records_take(cluster: Cluster) -> None:
    stream = planner(cluster, maxBytesPerTrigger="3000")
    assert next_end(stream, dict(stream.initial_offset())) == {"t": {"0": 20, "1": 10}}


def test_a_batch_waits_for_enough_but_not_for_ever(cluster: Cluster) -> None:
    time = MockTime()
    stream = planner(cluster, time, minOffsetsPerTrigger="10", maxTriggerDelay="60s")
    end = next_end(stream, dict(stream.initial_offset()))
    cluster.last[A] = 105
    assert next_end(stream, end) == end
    assert next_end(stream, end, everything=True)["t"]["0"] == 105
    time.advance(60_000)
    assert next_end(stream, end)["t"]["0"] == 105


def test_available_now_reads_up_to_where_it_began_in_batches_of_the_limit(cluster: Cluster) -> None:
    stream = planner(cluster, maxOffsetsPerTrigger="100", minOffsetsPerTrigger="100")
    stream.prepare_for_available_now()
    cluster.last.update({A: 999, B: 999, C: 999})
    cluster.first[C] = 0
    offset = dict(stream.initial_offset())
    seen = [offset := next_end(stream, offset) for _ in range(4)]
    assert seen[-1] == seen[-2] == {"t": {"0": 100, "1": 50}}
    assert seen[0] != seen[1]
    assert cluster.waits == 0


def test_an_idle_stream_waits_in_one_fetch_and_goes_on_at_once(cluster: Cluster) -> None:
    stream = planner(cluster)
    end = next_end(stream, dict(stream.initial_offset()))
    assert next_end(stream, end) == end
    assert cluster.waits == 1
    cluster.comes = {A: 101}
    assert next_end(stream, end)["t"]["0"] == 101


def test_a_stream_that_was_busy_elsewhere_does_not_wait(cluster: Cluster) -> None:
    time = MockTime()
    stream = planner(cluster, time)
    end = next_end(stream, dict(stream.initial_offset()))
    time.advance(100)
    assert next_end(stream, end) == end
    assert cluster.waits == 0


def test_what_is_processed_is_committed_with_the_batch_and_when_a_query_goes_on(cluster: Cluster) -> None:
    stream = planner(cluster)
    end = next_end(stream, dict(stream.initial_offset()))
    stream.commit(end)
    next_end(stream, end)
    assert cluster.commits == [{A: 0, B: 0}, {A: 100, B: 50}, {A: 100, B: 50}]
    stream.commit(dict(INITIAL))
    assert len(cluster.commits) == 3


def test_a_spark_that_does_not_tell_the_start_goes_on_from_the_last_batch(cluster: Cluster) -> None:
    stream = planner(cluster, startingOffsets="latest", maxOffsetsPerTrigger="6")
    first = next_end(stream, None)
    assert first == {"t": {"0": 100, "1": 50}}
    assert stream.plan(dict(stream.initial_offset()), first) == []
    cluster.last.update({A: 110, B: 52})
    second = next_end(stream, None)
    assert second == {"t": {"0": 105, "1": 51}}
    assert len(stream.plan(first, second)) == 2


def test_offsets_in_another_order_are_left_as_they_are(cluster: Cluster) -> None:
    start = json.loads('{"t": {"1": 50, "0": 100}}')
    assert json.dumps(planner(cluster).latest_offset(start, all_available=False)) == json.dumps(start)


def test_tasks_are_cut_as_the_options_say(cluster: Cluster) -> None:
    stream = planner(cluster, minPartitions="6", maxRecordsPerPartition="40")
    tasks = stream.plan({"t": {"0": 0, "1": 0}}, to_json({A: 100, B: 50}))
    assert len(tasks) == 6
    assert max(task.size for task in tasks) <= 40
    assert from_json(to_json({A: 1})) == {A: 1}
