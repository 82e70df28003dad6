"""Names and contents of markers; where they are kept is seen on a real broker."""

from __future__ import annotations

import pickle

import pytest

from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.spark.exactly_once.delivery import Finding, TaskOutcome
from kclient.spark.exactly_once.markers import Markers, made_marker, marked_rows
from kclient.spark.exactly_once.sink_task import SinkTask

TASK = SinkTask("query", 7, 3)


def test_a_task_has_a_group_for_its_marker_which_is_also_its_transactional_id() -> None:
    assert TASK.group_id == "kclient-sink-query-3"
    assert str(TASK) == "Sink partition 3 of query, epoch 7"


def test_a_marker_is_the_next_epoch_and_remembers_how_many_rows_there_were() -> None:
    marker = made_marker(TASK, 120)
    assert marker.offset == 8
    assert marked_rows(marker) == 120


@pytest.mark.parametrize("note", ["", "rows", "[]", '"rows"', '{"rows": "1"}', "{}", "null"])
def test_a_note_of_anothers_says_nothing_of_rows(note: str) -> None:
    assert marked_rows(OffsetAndMetadata(8, note)) is None


def test_other_markers_are_those_of_the_same_write_and_of_partitions_that_are_not_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prefix = "kclient-sink-query-"
    groups = [prefix + end for end in ("0", "1", "12", "x", "1-2", "")] + ["kclient-sink-query2-5", "12"]
    asked: list[str] = []

    class Admin:
        def list_groups(self) -> dict[str, None]:
            return dict.fromkeys(groups)

        def list_consumer_group_offsets(
            self, group_id: str, partitions: list[TopicPartition], *, require_stable: bool
        ) -> dict[TopicPartition, OffsetAndMetadata | None]:
            assert require_stable
            asked.append(group_id)
            return dict.fromkeys(partitions, None if group_id.endswith("-1") else OffsetAndMetadata(5))

    monkeypatch.setattr("kclient.spark.clients.shared_admin", lambda settings: Admin())
    markers = Markers({"bootstrap.servers": "b:1"}, TopicPartition("t", 0))
    assert markers.others("query", {0}) == {f"{prefix}12": 5}
    assert asked == [f"{prefix}1", f"{prefix}12"]


def test_an_outcome_travels() -> None:
    outcome = TaskOutcome(TASK, Finding.WRITTEN)
    assert pickle.loads(pickle.dumps(outcome)) == outcome
