"""The questions that a blocking consumer asks the cluster and its group: positions, offsets, topics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kclient.common.offsets import OffsetAndMetadata, OffsetAndTimestamp
from kclient.common.topic_partition import PartitionInfo, TopicPartition
from kclient.consumer.internals.blocking_calls import BlockingCalls
from kclient.consumer.internals.consumer_core import ConsumerCore
from kclient.consumer.internals.events import FetchCommittedEvent, ListOffsetsEvent, TopicMetadataEvent
from kclient.consumer.internals.partition_state import EARLIEST, LATEST
from kclient.errors import KafkaTimeoutError
from kclient.utils.time import Timer


class Lookups:
    """Each asks and waits for the answer until its timer expires, with KafkaTimeoutError. Used by one thread at a time.

    What is asked for was checked before.
    """

    def __init__(self, core: ConsumerCore, calls: BlockingCalls) -> None:
        self._core = core
        self._calls = calls

    def committed(
        self, partitions: Sequence[TopicPartition], timer: Timer
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """The offsets that the group has committed; None where none is."""
        event = FetchCommittedEvent(timer.deadline_ms, frozenset(partitions))
        found = self._calls.submit(event, timer, "The committed offsets were not found")
        return {tp: found[tp] for tp in partitions}

    def offsets(
        self, timestamps: Mapping[TopicPartition, int], timer: Timer
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first records at or after times, or the codes of the log's ends; None where there is none."""
        if not timestamps:
            return {}
        event = ListOffsetsEvent(timer.deadline_ms, timestamps)
        found = self._calls.submit(event, timer, "The offsets were not found")
        return {tp: found[tp] for tp in timestamps}

    def beginnings(self, partitions: Sequence[TopicPartition], timer: Timer) -> dict[TopicPartition, int]:
        """The offsets where the logs begin."""
        return self._ends(partitions, EARLIEST, timer)

    def ends(self, partitions: Sequence[TopicPartition], timer: Timer) -> dict[TopicPartition, int]:
        """The offsets where the logs end."""
        return self._ends(partitions, LATEST, timer)

    def _ends(
        self, partitions: Sequence[TopicPartition], which: int, timer: Timer
    ) -> dict[TopicPartition, int]:
        found = self.offsets(dict.fromkeys(partitions, which), timer)
        return {tp: offset.offset for tp, offset in found.items() if offset is not None}

    def partitions_of(self, topic: str, timer: Timer) -> list[PartitionInfo]:
        """The partitions of `topic`, empty if there is no such topic."""
        event = TopicMetadataEvent(timer.deadline_ms, (topic,))
        return list(self._calls.submit(event, timer, f"Topic {topic} was not found").get(topic, ()))

    def topics(self, timer: Timer) -> dict[str, list[PartitionInfo]]:
        """All topics that the consumer may see, with their partitions."""
        event = TopicMetadataEvent(timer.deadline_ms, None)
        return dict(self._calls.submit(event, timer, "The topics were not found"))

    def position(self, tp: TopicPartition, timer: Timer) -> int:
        """The offset of the next record, waited for until it is known; raises what keeps it from being known."""
        core = self._core
        while True:
            seen = core.changes.count
            position = core.subscriptions.position(tp)
            if position is not None:
                return position.offset
            core.wakeup.raise_if_pending()
            core.mailbox.raise_error()
            core.subscriptions.raise_error()
            if timer.is_expired():
                raise KafkaTimeoutError(f"The position of {tp} was not found in {timer.timeout_ms} ms")
            self._calls.wait_for_change(seen, timer)
