"""Partitions that rows name, looked for before the producer waits for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from kclient.common.cluster import PROPAGATION_MS
from kclient.errors import UnknownTopicOrPartitionError
from kclient.spark import clients
from kclient.spark.client_settings import admin_settings
from kclient.spark.clients import BytesProducer
from kclient.spark.output import SinkColumns
from kclient.utils.text import counted
from kclient.utils.time import SYSTEM_TIME, Time

_LOOK_MS = 200


@attrs.frozen
class GivenPartitions:
    """Refuses rows for partitions that do not exist. To be used by a task.

    The producer waits max.block.ms for such a partition, as it may have been added a moment ago. That is as long as a
    transaction may be open, and Spark runs the task again after it.
    """

    _settings: Mapping[str, str]
    _columns: SinkColumns
    _time: Time = SYSTEM_TIME

    def check(self, producer: BytesProducer, batch: Any) -> None:
        """Raise UnknownTopicOrPartitionError if a row of `batch` names a partition that its topic does not have."""
        if "partition" not in self._columns.names:
            return
        for topic, partition in self._largest(batch):
            if partition >= len(producer.partitions_for(topic)):
                self._await(topic, partition)

    def _largest(self, batch: Any) -> Iterator[tuple[str, int]]:
        """Yield the topics and the largest partition that is named of each."""
        import pyarrow as pa
        import pyarrow.compute as pc

        largest: dict[str | None, int | None]
        if self._columns.topic is not None:
            largest = {self._columns.topic: pc.max(batch["partition"]).as_py()}
        else:
            named = pa.table({name: batch[name] for name in ("topic", "partition")})
            rows = named.group_by("topic").aggregate([("partition", "max")]).to_pylist()
            largest = {row["topic"]: row["partition_max"] for row in rows}
        for topic, partition in largest.items():
            # A row without a topic is the producer's to refuse.
            if topic is not None and partition is not None:
                yield topic, partition

    def _await(self, topic: str, partition: int) -> None:
        """Ask the brokers until one of them knows the partition, or all have had the time to hear of it."""
        timer = self._time.timer(PROPAGATION_MS)
        while partition >= (count := self._count(topic)):
            if timer.is_expired():
                raise UnknownTopicOrPartitionError(
                    f"Partition {partition} of topic {topic}, which has {counted(count, 'partition')}, does not exist, "
                    "and a row has it in the column 'partition'. Add partitions to the topic, write a smaller number "
                    "(they begin with 0), or null for a partition that the producer chooses"
                )
            self._time.sleep_ms(_LOOK_MS)

    def _count(self, topic: str) -> int:
        with clients.questioned_admin(admin_settings(self._settings)) as admin:
            return len(admin.describe_topics([topic])[topic].partitions)
