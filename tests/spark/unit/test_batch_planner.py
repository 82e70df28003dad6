"""Ranges that a batch query reads, and how its conditions make them smaller."""

from __future__ import annotations

from typing import Any

import pytest

from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import ConfigError
from kclient.spark.batch_planner import plan_batch
from kclient.spark.condition import Condition
from kclient.spark.offsets import Bound, Kind
from kclient.spark.option_names import Use
from kclient.spark.options import parse_source
from kclient.spark.ranges import OffsetRange

A, B = TopicPartition("a", 0), TopicPartition("b", 1)
IDS = [Uuid(letter * 16) for letter in (b"a", b"b")]


class Cluster:
    """Stands for the resolver: two partitions of a hundred records, one a millisecond from 1000 on."""

    def __init__(self) -> None:
        self.topic_ids = {"a": IDS[0], "b": IDS[1]}
        self.asked: set[TopicPartition] = set()

    def partitions(self) -> frozenset[TopicPartition]:
        return frozenset({A, B})

    def start(self, bound: Bound, partitions: Any) -> dict[TopicPartition, int]:
        self.asked = set(partitions)
        return dict(bound.values) if bound.kind is Kind.OFFSETS else dict.fromkeys(partitions, 0)

    def end(self, bound: Bound, partitions: Any) -> dict[TopicPartition, int]:
        return dict(bound.values) if bound.kind is Kind.OFFSETS else dict.fromkeys(partitions, 100)

    def first_at(self, timestamps: Any) -> dict[TopicPartition, int | None]:
        return {tp: max(at - 1000, 0) if at < 1100 else None for tp, at in timestamps.items()}


def plan(condition: Condition | None = None, cluster: Any = None, **more: str) -> list[OffsetRange]:
    given = {"kafka.bootstrap.servers": "x:1", "subscribe": "a,b"}
    options = parse_source({**given, **{key.lower(): value for key, value in more.items()}}, Use.BATCH_READ)
    return plan_batch(options, cluster or Cluster(), condition)


def test_everything_is_read_without_a_condition() -> None:
    assert plan() == [OffsetRange(A, 0, 100, IDS[0]), OffsetRange(B, 0, 100, IDS[1])]


def test_tasks_are_cut_as_the_options_say() -> None:
    assert len(plan(minPartitions="8")) == 8
    assert len(plan(maxRecordsPerPartition="25")) == 8


def test_nothing_to_read_is_no_task() -> None:
    assert plan(endingOffsets='{"a":{"0":0},"b":{"1":0}}') == []


def test_a_start_given_after_the_end_is_a_mistake() -> None:
    with pytest.raises(
        ConfigError, match="startingOffsets: 200 of a-0 lies after the end of what is read, 100"
    ):
        plan(startingOffsets='{"a":{"0":200},"b":{"1":5}}')


def test_a_condition_on_topic_and_partition_asks_for_no_other() -> None:
    cluster = Cluster()
    assert plan(Condition(topics=frozenset({"b"})), cluster) == [OffsetRange(B, 0, 100, IDS[1])]
    assert cluster.asked == {B}
    assert plan(Condition(partitions=frozenset({0, 7}))) == [OffsetRange(A, 0, 100, IDS[0])]
    assert plan(Condition(topics=frozenset())) == []


def test_bounds_that_name_partitions_are_checked_against_all() -> None:
    cluster = Cluster()
    found = plan(Condition(topics=frozenset({"b"})), cluster, startingOffsets='{"a":{"0":1},"b":{"1":5}}')
    assert found == [OffsetRange(B, 5, 100, IDS[1])]
    assert cluster.asked == {A, B}


def test_a_condition_on_offsets_narrows_every_range() -> None:
    condition = Condition(partitions=frozenset({0}), least_offset=10, offset_limit=20)
    assert plan(condition) == [OffsetRange(A, 10, 20, IDS[0])]
    assert plan(Condition(least_offset=100)) == []


def test_a_condition_on_the_time_leaves_out_what_comes_before_the_first_match() -> None:
    assert plan(Condition(topics=frozenset({"a"}), timestamp_ms=1030)) == [OffsetRange(A, 30, 100, IDS[0])]
    assert plan(Condition(timestamp_ms=1100)) == []


def test_conditions_are_joined() -> None:
    one = Condition(topics=frozenset({"a", "b"}), least_offset=3, offset_limit=9)
    other = Condition(topics=frozenset({"b"}), least_offset=5, timestamp_ms=7)
    assert one.also(other) == Condition(frozenset({"b"}), None, 5, 9, 7)
    assert Condition().also(one) == one == one.also(Condition())
