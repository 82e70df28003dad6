"""A look at every record on its way to the application (KIP-42)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.types import ConsumerRecords


class ConsumerInterceptor:
    """Sees records before poll() returns them and offsets after they were committed. Subclass and override.

    Called on the application's thread. An error raised here is logged and goes no further.
    """

    def on_consume(self, records: ConsumerRecords[Any, Any]) -> ConsumerRecords[Any, Any]:
        """Return the records for poll() to return in place of `records`: they themselves, fewer or changed ones.

        Iteration asks for each record alone, and leaves it out if nothing is returned. Positions move past all of
        `records` whatever is returned.
        """
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """`offsets` were committed."""

    def close(self) -> None:
        """The consumer is closed."""
