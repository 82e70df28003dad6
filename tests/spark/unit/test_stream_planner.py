"""The offsets of micro-batches, with a cluster that is a dictionary."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import pytest

from harness.mock_time import MockTime
from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import AdminError, UnknownTopicOrPartitionError
from kclient.spark.data_loss import DataLossError
from kclient.spark.offsets import INITIAL, Bound, Kind, from_json, to_json
from kclient.spark.option_names import Use
from kclient.spark.options import SourceOptions, parse_source
from kclient.spark.ranges import OffsetRange
from kclient.spark.stream_planner import StreamPlanner
from kclient.spark.topic_ids import TopicIds, noted

A, B, C = (TopicPartition("t", number) for number in range(3))
OLD, NEW = Uuid(b"o" * 16), Uuid(b"n" * 16)


class Cluster:
    """Partitions with their first and last offsets; stands for the resolver and the watcher, and is committed to."""

    def __init__(self, **_: object) -> None:
        self.first = {A: 0, B: 0}
        self.last = {A: 100, B: 50}
        self.lagging: list[dict[TopicPartition, int]] = []
        self.waits = 0
        self.commits: list[dict[TopicPartition, int]] = []
        self.comes: dict[TopicPartition, int] = {}
        self.topic_ids = {"t": OLD}
        self.noted: dict[TopicPartition, OffsetAndMetadata] = {}
        self.before_latest: list[Callable[[], object]] = []

    def check_marker_topic(self) -> None:
        """It is there."""

    def all_committed(self, group_id: str) -> dict[TopicPartition, OffsetAndMetadata]:
        assert group_id == "g"
        return self.noted

    def create_again(self, last: dict[TopicPartition, int]) -> None:
        self.topic_ids = {"t": NEW}
        self.first = dict.fromkeys(last, 0)
        self.last = last

    def partitions(self, known: Any = None) -> frozenset[TopicPartition]:
        return frozenset(self.last)

    def partitions_that_exist(self) -> frozenset[TopicPartition]:
        return frozenset(self.last)

    def earliest(self, partitions: Any) -> dict[TopicPartition, int]:
        return {tp: self.first[tp] for tp in partitions}

    def earliest_that_exist(self, partitions: Any) -> dict[TopicPartition, int]:
        return {tp: self.first[tp] for tp in partitions if tp in self.first}

    def latest(self, partitions: Any) -> dict[TopicPartition, int]:
        if self.before_latest:
            self.before_latest.pop(0)()
            error = UnknownTopicOrPartitionError()
            raise error if len(partitions) == 1 else AdminError(errors={B: error})
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

    def commit(self, offsets: Mapping[TopicPartition, int], topic_ids: Mapping[str, Uuid]) -> None:
        self.commits.append(dict(offsets))
        self.noted = noted(offsets, topic_ids, None)


def options(**more: str) -> SourceOptions:
    given = {"kafka.bootstrap.servers": "x:1", "subscribe": "t", "startingoffsets": "earliest"}
    return parse_source({**given, **{name.lower(): value for name, value in more.items()}}, Use.STREAM_READ)


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def planner(cluster: Any, time: MockTime | None = None, **more: str) -> StreamPlanner:
    given = options(**more)
    return StreamPlanner(given, cluster, TopicIds(given, cluster), cluster, cluster, time or MockTime())


def next_end(planner: StreamPlanner, start: Any, *, everything: bool = False) -> Any:
    """As Spark does: the answer goes through JSON into the log."""
    return json.loads(json.dumps(planner.latest_offset(start, all_available=everything)))


def test_a_stream_from_the_earliest_reads_what_is_there_and_then_what_comes(cluster: Cluster) -> None:
    stream = planner(cluster)
    start = dict(stream.initial_offset())
    assert start == {"t": {"0": 0, "1": 0}}
    end = next_end(stream, start)
    assert stream.plan(start, end) == [OffsetRange(A, 0, 100, OLD), OffsetRange(B, 0, 50, OLD)]
    cluster.last[A] = 120
    later = next_end(stream, end)
    assert stream.plan(end, later) == [OffsetRange(A, 100, 120, OLD)]
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
        OffsetRange(A, 100, 130, OLD),
        OffsetRange(B, 50, 60, OLD),
        OffsetRange(C, 0, 5, OLD),
    ]


def test_a_partition_that_comes_before_the_first_batch_is_run_again_is_not_lost(cluster: Cluster) -> None:
    logged = next_end(planner(cluster), {"t": {"0": 0, "1": 0}})
    cluster.last[C], cluster.first[C] = 7, 0
    restarted = planner(cluster)
    start = dict(restarted.initial_offset())
    assert len(restarted.plan(start, logged)) == 2
    end = next_end(restarted, logged)
    assert restarted.plan(logged, end) == [OffsetRange(C, 0, 7, OLD)]


def test_a_new_partition_is_read_from_its_beginning(cluster: Cluster) -> None:
    stream = planner(cluster)
    start = {"t": {"0": 100, "1": 50}}
    cluster.last[C], cluster.first[C] = 9, 0
    end = next_end(stream, start)
    assert end == {"t": {"0": 100, "1": 50, "2": 9}}
    assert stream.plan(start, end) == [OffsetRange(C, 0, 9, OLD)]


def test_a_new_partition_that_has_lost_its_beginning_is_data_loss(cluster: Cluster) -> None:
    cluster.last[C], cluster.first[C] = 9, 4
    start, end = {"t": {"0": 0, "1": 0}}, {"t": {"0": 0, "1": 0, "2": 9}}
    with pytest.raises(DataLossError, match="t-2 is new and begins at offset 4"):
        planner(cluster).plan(start, end)
    assert planner(cluster, failOnDataLoss="false").plan(start, end) == [OffsetRange(C, 4, 9, OLD)]


def test_a_partition_that_is_gone_is_data_loss(cluster: Cluster) -> None:
    stream = planner(cluster, failOnDataLoss="false")
    start = {"t": {"0": 0, "1": 0}}
    del cluster.last[B]
    end = next_end(stream, start)
    assert end == {"t": {"0": 100}}
    assert stream.plan(start, end) == [OffsetRange(A, 0, 100, OLD)]
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


class TestCreatedAgain:
    """A topic that was deleted, and another one that has its name."""

    START: ClassVar[dict[str, Any]] = {"t": {"0": 100, "1": 50}}

    def reads_on(self, stream: StreamPlanner, start: Any) -> list[tuple[TopicPartition, int, int]]:
        """Offsets that are read until nothing is left, all of them of the topic that has the name now."""
        found: dict[TopicPartition, tuple[TopicPartition, int, int]] = {}
        for _ in range(5):
            end = next_end(stream, start)
            if end == start:
                return sorted(found.values())
            ranges = stream.plan(start, end)
            assert {each.topic_id for each in ranges} <= {NEW}
            for each in ranges:
                tp, first, last = found.get(each.tp, (each.tp, each.start, each.start))
                assert last == each.start
                found[tp] = tp, first, each.end
            stream.commit(start)
            start = end
        raise AssertionError(f"no end of {found}")

    @pytest.mark.parametrize(
        "last",
        [
            {A: 30, B: 10},
            {A: 300, B: 200},
            {A: 100, B: 50},
            {A: 0, B: 0},
            {A: 30},
            {A: 130},
            {A: 30, B: 70, C: 20},
        ],
        ids=str,
    )
    @pytest.mark.parametrize("trigger", ["usual", "available now", "limits", "a minimum"])
    def test_it_is_read_once_from_its_beginning_where_the_loss_is_put_up_with(
        self, cluster: Cluster, last: dict[TopicPartition, int], trigger: str
    ) -> None:
        limits = {
            "limits": {"maxOffsetsPerTrigger": "400"},
            "a minimum": {"minOffsetsPerTrigger": "1000", "maxTriggerDelay": "0s"},
        }
        stream = planner(cluster, failOnDataLoss="false", **limits.get(trigger, {}))
        start = dict(stream.initial_offset())
        assert next_end(stream, start) == self.START
        stream.plan(start, self.START)
        if trigger != "usual":
            cluster.create_again(last)
            stream = self.restarted(cluster, limits.get(trigger, {}), trigger == "available now")
        else:
            cluster.create_again(last)
        read = self.reads_on(stream, self.START)
        assert read == [(tp, 0, end) for tp, end in last.items() if end]

    def restarted(self, cluster: Cluster, limits: dict[str, str], available_now: bool) -> StreamPlanner:
        cluster.noted = noted({A: 100, B: 50}, {"t": OLD}, None)
        stream = planner(cluster, failOnDataLoss="false", commitGroupId="g", **limits)
        if available_now:
            stream.prepare_for_available_now()
        return stream

    def test_it_ends_the_query_with_both_ids_otherwise(self, cluster: Cluster) -> None:
        stream = planner(cluster)
        end = next_end(stream, dict(stream.initial_offset()))
        cluster.create_again({A: 300, B: 200})
        with pytest.raises(DataLossError, match=f"its id was {OLD} and is {NEW}"):
            stream.latest_offset(end, all_available=False)

    def test_between_two_runs_it_is_known_from_the_groups_notes(self, cluster: Cluster) -> None:
        stream = planner(cluster, commitGroupId="g")
        end = next_end(stream, dict(stream.initial_offset()))
        assert next_end(stream, end) == end
        cluster.create_again({A: 300, B: 200})
        with pytest.raises(DataLossError, match=f"its id was {OLD} and is {NEW}"):
            planner(cluster, commitGroupId="g").latest_offset(end, all_available=False)
        lenient = planner(cluster, commitGroupId="g", failOnDataLoss="false")
        assert self.reads_on(lenient, end) == [(A, 0, 300), (B, 0, 200)]
        # From then on it is the one that is known.
        assert next_end(planner(cluster, commitGroupId="g"), {"t": {"0": 300, "1": 200}})

    def test_a_crash_before_its_beginning_is_in_the_log_or_after_loses_nothing(
        self, cluster: Cluster
    ) -> None:
        lenient = {"commitGroupId": "g", "failOnDataLoss": "false"}
        cluster.noted = noted({A: 100, B: 50}, {"t": OLD}, None)
        cluster.create_again({A: 300, B: 200})
        logged = next_end(planner(cluster, **lenient), self.START)
        assert logged == {"t": {"0": 0, "1": 0}}
        # Not in the log yet: the same again.
        assert next_end(planner(cluster, **lenient), self.START) == logged
        # In the log, and the batch was not finished.
        stream = planner(cluster, **lenient)
        assert stream.plan(self.START, logged) == []
        assert self.reads_on(stream, logged) == [(A, 0, 300), (B, 0, 200)]

    def test_a_batch_of_the_old_one_that_is_run_again_reads_nothing_of_it(self, cluster: Cluster) -> None:
        lenient = {"commitGroupId": "g", "failOnDataLoss": "false"}
        cluster.noted = noted({A: 100, B: 50}, {"t": OLD}, None)
        cluster.create_again({A: 300, B: 200})
        logged = {"t": {"0": 150, "1": 60}}
        with pytest.raises(DataLossError, match=f"its id was {OLD} and is {NEW}"):
            planner(cluster, commitGroupId="g").plan(self.START, logged)
        stream = planner(cluster, **lenient)
        assert stream.plan(self.START, logged) == []
        assert self.reads_on(stream, logged) == [(A, 0, 300), (B, 0, 200)]

    def test_what_comes_after_the_run_began_is_left_for_the_next_one(self, cluster: Cluster) -> None:
        stream = planner(cluster, commitGroupId="g", failOnDataLoss="false")
        cluster.noted = noted({A: 90, B: 50}, {"t": OLD}, None)
        stream.prepare_for_available_now()
        end = next_end(stream, {"t": {"0": 90, "1": 50}})
        assert len(stream.plan({"t": {"0": 90, "1": 50}}, end)) == 1
        cluster.create_again({A: 300, B: 200})
        assert self.reads_on(stream, end) == []
        again = planner(cluster, commitGroupId="g", failOnDataLoss="false")
        assert self.reads_on(again, {"t": {"0": 0, "1": 0}}) == [(A, 0, 300), (B, 0, 200)]

    def test_offsets_of_the_old_one_are_not_committed_for_the_new_one(self, cluster: Cluster) -> None:
        stream = planner(cluster, commitGroupId="g", failOnDataLoss="false")
        end = next_end(stream, dict(stream.initial_offset()))
        next_end(stream, end)
        cluster.create_again({A: 300, B: 200})
        cluster.commits.clear()
        beginning = next_end(stream, end)
        stream.commit(end)
        next_end(stream, beginning)
        assert [each for each in cluster.commits if each] == [{A: 0, B: 0}]

    def test_brokers_without_ids_tell_nothing(self, cluster: Cluster) -> None:
        cluster.topic_ids = {}
        stream = planner(cluster)
        end = next_end(stream, dict(stream.initial_offset()))
        cluster.last = {A: 300, B: 50}
        assert stream.plan(end, next_end(stream, end)) == [OffsetRange(A, 100, 300)]

    def test_a_group_that_knows_nothing_of_a_topic_is_warned_of(
        self, cluster: Cluster, caplog: pytest.LogCaptureFixture
    ) -> None:
        next_end(planner(cluster, commitGroupId="g"), self.START)
        assert "Group g has no offset of t, of which this query has read" in caplog.text
        caplog.clear()
        # Brokers delete it with the topic, so that it is the same one, by whoever it was committed.
        cluster.noted = {B: OffsetAndMetadata(50, "somebody's note")}
        next_end(planner(cluster, commitGroupId="g"), self.START)
        assert caplog.text == ""

    def test_one_with_a_single_partition_is_asked_for_again_too(self, cluster: Cluster) -> None:
        cluster.last = {A: 100}
        stream = planner(cluster, failOnDataLoss="false")
        start = next_end(stream, stream.initial_offset())
        cluster.before_latest = [lambda: cluster.create_again({A: 30, B: 10})]
        assert self.reads_on(stream, start) == [(A, 0, 30), (B, 0, 10)]

    @pytest.mark.parametrize("available_now", [False, True])
    def test_one_that_is_deleted_between_two_questions_is_asked_for_again(
        self, cluster: Cluster, available_now: bool
    ) -> None:
        stream = planner(cluster, failOnDataLoss="false")
        next_end(stream, stream.initial_offset())
        cluster.before_latest = [lambda: cluster.create_again({A: 30})]
        if available_now:
            stream.prepare_for_available_now()
        assert self.reads_on(stream, self.START) == [(A, 0, 30)]

    def test_one_that_is_deleted_between_two_questions_is_lost_data(self, cluster: Cluster) -> None:
        stream = planner(cluster)
        next_end(stream, stream.initial_offset())
        cluster.before_latest = [lambda: cluster.create_again({A: 30})]
        with pytest.raises(DataLossError, match=f"its id was {OLD} and is {NEW}"):
            next_end(stream, self.START)

    def test_it_is_not_forgotten_while_another_one_is_deleted(self, cluster: Cluster) -> None:
        stream = planner(cluster, failOnDataLoss="false")
        next_end(stream, stream.initial_offset())
        cluster.create_again({A: 300, B: 200})
        cluster.before_latest = [lambda: None]
        assert self.reads_on(stream, self.START) == [(A, 0, 300), (B, 0, 200)]

    def test_questions_that_go_on_failing_end_the_query(self, cluster: Cluster) -> None:
        stream = planner(cluster)
        next_end(stream, stream.initial_offset())
        cluster.before_latest = [lambda: None] * 4
        with pytest.raises(AdminError):
            next_end(stream, self.START)
