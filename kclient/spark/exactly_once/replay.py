"""The driver's look at the markers of an epoch, when all its tasks have ended."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from kclient.common.topic_partition import TopicPartition
from kclient.errors import IllegalStateError
from kclient.spark.exactly_once.delivery import Finding, TaskOutcome
from kclient.spark.exactly_once.markers import Markers
from kclient.spark.exactly_once.sink_task import SinkTask

# Runs whose first epoch was looked at: only that one can be a replay. Few, as a process serves few queries.
_looked_at: set[tuple[str, str]] = set()


def check_replay(
    settings: Mapping[str, str], marker_partition: TopicPartition, outcomes: Collection[TaskOutcome]
) -> None:
    """Raise IllegalStateError if a sink partition that had rows in this epoch before has none now.

    Its rows are then in other partitions as well, or in none. Asks all brokers for their groups, once in each run of
    a query. Raises KafkaError where they do not answer.
    """
    task = next((outcome.task for outcome in outcomes), None)
    if task is None:
        return
    run = None if task.run_id is None else (task.write_id, task.run_id)
    if run in _looked_at:
        return
    with_marker = {each.task.partition for each in outcomes if each.finding is not Finding.NO_ROWS}
    markers = Markers(settings, marker_partition).others(task.write_id, with_marker)
    unexpected = sorted(group_id for group_id, offset in markers.items() if offset == task.marker)
    if unexpected:
        raise IllegalStateError(_difference(task, unexpected))
    if run is not None:
        _looked_at.add(run)


def _difference(task: SinkTask, groups: Collection[str]) -> str:
    named = " ".join(f"--group {group_id}" for group_id in groups)
    return (
        f"Epoch {task.epoch} of {task.write_id} was written before with rows in {len(groups)} more sink partitions "
        "than now: rows may be there twice, or be missing. With kclient.delivery=exactly_once a micro-batch that runs "
        "again has to have the same rows in the same partitions: restart with the settings that it had then "
        "(spark.sql.shuffle.partitions, minPartitions, no adaptive execution; docs/spark.md). To go on with what "
        f"there is: kclient groups delete {named}"
    )
