"""Markers: committed offsets that say up to which epoch a sink partition is written."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping

import attrs

from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.spark import clients
from kclient.spark.client_settings import admin_settings
from kclient.spark.exactly_once.sink_task import SinkTask, group_prefix


@attrs.frozen
class Markers:
    """Reads the markers of a write, each of which is in a group of its sink partition's."""

    _settings: Mapping[str, str]
    _partition: TopicPartition

    def read(self, task: SinkTask, *, stable: bool = True) -> OffsetAndMetadata | None:
        """Return the marker of the task's sink partition, None if there is none.

        It is that of the last transaction which was committed. With `stable` one that is about to end is waited for.
        Raises KafkaError.
        """
        return self._read(task.group_id, stable=stable)

    def others(self, write_id: str, known: Collection[int]) -> dict[str, int]:
        """Return the markers of those sink partitions that are not `known`, by the names of their groups."""
        admin = clients.shared_admin(admin_settings(self._settings))
        prefix, mine = group_prefix(write_id), {str(number) for number in known}
        found = {}
        for group_id in admin.list_groups():
            number = group_id.removeprefix(prefix)
            if not group_id.startswith(prefix) or not number.isdecimal() or number in mine:
                continue
            marker = self._read(group_id, stable=True)
            if marker is not None:
                found[group_id] = marker.offset
        return found

    def _read(self, group_id: str, *, stable: bool) -> OffsetAndMetadata | None:
        with clients.questioned_admin(admin_settings(self._settings)) as admin:
            return admin.list_consumer_group_offsets(group_id, [self._partition], require_stable=stable)[
                self._partition
            ]


def made_marker(task: SinkTask, rows: int) -> OffsetAndMetadata:
    """Return the marker of what the task has written, which also remembers the number of rows."""
    return OffsetAndMetadata(task.marker, metadata=json.dumps({"rows": rows}))


def marked_rows(marker: OffsetAndMetadata) -> int | None:
    """Return the number of rows that were written with the marker; None if it does not say."""
    try:
        rows = json.loads(marker.metadata or "")["rows"]
    except (ValueError, TypeError, KeyError):
        return None
    return rows if isinstance(rows, int) else None
