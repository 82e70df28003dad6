"""The records that go into a producer, and the metadata that comes back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeAlias, TypeVar

import attrs

from kclient._accel import metadata_factory
from kclient.common.topic_partition import TopicPartition
from kclient.errors import KafkaError

K = TypeVar("K")
V = TypeVar("V")

Headers = Sequence[tuple[str, bytes | None]]


@attrs.frozen
class ProducerRecord(Generic[K, V]):
    """A record to be sent. Immutable.

    Without `partition` the key decides, and without a key the producer does. `timestamp_ms` is in ms since the epoch;
    None means the time of sending.
    """

    topic: str
    value: V | None = None
    key: K | None = attrs.field(default=None, kw_only=True)
    partition: int | None = attrs.field(default=None, kw_only=True)
    headers: Headers = attrs.field(default=(), kw_only=True)
    timestamp_ms: int | None = attrs.field(default=None, kw_only=True)


@attrs.define
class _MetadataFields:
    """The fields of `RecordMetadata`, to be filled plainly: a frozen class takes three times as long."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    serialized_key_size: int
    serialized_value_size: int


@attrs.frozen
class RecordMetadata(_MetadataFields):
    """The place that a record went to. Immutable.

    `offset` is -1 when it is not known: with acks=0, for a record that failed, and for a duplicate that the broker no
    longer remembers. `timestamp_ms` is what the topic's `message.timestamp.type` asks for. A size of -1 means None.
    """

    @property
    def has_offset(self) -> bool:
        """True if `offset` is known."""
        return self.offset >= 0

    @property
    def topic_partition(self) -> TopicPartition:
        """Topic and partition in one."""
        return TopicPartition(self.topic, self.partition)


def _record_metadata(
    result: Any, index: int, timestamp_ms: int, key_size: int, value_size: int
) -> RecordMetadata:
    """The metadata of the record `index` of a batch, made when someone asks for it."""
    offset = result.base_offset
    if result.log_append_time_ms >= 0:
        timestamp_ms = result.log_append_time_ms
    metadata: Any = _MetadataFields(
        result.topic,
        result.partition,
        offset + index if offset >= 0 else -1,
        timestamp_ms,
        key_size,
        value_size,
    )
    metadata.__class__ = RecordMetadata
    return metadata  # type: ignore[no-any-return]  # its class was changed


record_metadata = metadata_factory(RecordMetadata, _record_metadata)
"""The metadata of a record of a batch, made when someone asks for it."""


OnDelivery: TypeAlias = Callable[[RecordMetadata, KafkaError | None], object]
"""Called with the outcome of a record: its metadata, and the error, None if it was written."""
