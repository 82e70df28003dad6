"""Requests and results of a fetch, by partition."""

from __future__ import annotations

import attrs

from kclient.broker.log.record_slice import RecordSlice
from kclient.broker.log.unified_log import FetchIsolation
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import KafkaError
from kclient.network.transport import Buffer

NO_OFFSET = -1

FetchKey = TopicPartition | tuple[Uuid, int]


@attrs.frozen
class FetchParams:
    """The parameters of the whole request."""

    isolation: FetchIsolation
    max_wait_ms: int
    min_bytes: int
    max_bytes: int


@attrs.frozen
class PartitionFetch:
    """The request for one partition."""

    tp: TopicPartition
    """Without the name of its topic if that was named by an id that is not known."""
    offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1
    topic_id: Uuid = Uuid.ZERO
    """Of the topic that is to be read, if the client said so."""
    key: FetchKey = attrs.field(init=False)
    """The name by which the client knows the partition: for one with a topic id not that of the topic."""

    @key.default
    def _known_as(self) -> FetchKey:
        return self.tp if self.topic_id == Uuid.ZERO else (self.topic_id, self.tp.partition)


@attrs.define(eq=False)
class PartitionFetched:
    """The records read from one partition, or the error because of which there are none."""

    tp: TopicPartition
    error: KafkaError | None = None
    records: Buffer | RecordSlice = b""
    high_watermark: int = NO_OFFSET
    last_stable_offset: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    aborted: list[tuple[int, int]] | None = None
    diverging_epoch: tuple[int, int] | None = None
