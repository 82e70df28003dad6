"""What is asked of a partition in a fetch, and what comes back."""

from __future__ import annotations

import attrs

from kclient.broker.log.record_slice import RecordSlice
from kclient.broker.log.unified_log import FetchIsolation
from kclient.common.topic_partition import TopicPartition
from kclient.errors import KafkaError
from kclient.network.transport import Buffer

NO_OFFSET = -1


@attrs.frozen
class FetchParams:
    """What holds for the whole request."""

    isolation: FetchIsolation
    max_wait_ms: int
    min_bytes: int
    max_bytes: int


@attrs.frozen
class PartitionFetch:
    """What to read from one partition."""

    tp: TopicPartition
    offset: int
    max_bytes: int
    current_leader_epoch: int = -1
    last_fetched_epoch: int = -1


@attrs.define(eq=False)
class PartitionFetched:
    """What was read, or why nothing was."""

    tp: TopicPartition
    error: KafkaError | None = None
    records: Buffer | RecordSlice = b""
    high_watermark: int = NO_OFFSET
    last_stable_offset: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    aborted: list[tuple[int, int]] | None = None
    diverging_epoch: tuple[int, int] | None = None
