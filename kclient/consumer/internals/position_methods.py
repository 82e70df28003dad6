"""Methods for positions, the ends of logs, and what the cluster has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kclient.common.offset_arguments import OffsetLike, checked_offset, checked_partition
from kclient.common.offsets import OffsetAndTimestamp
from kclient.common.topic_partition import PartitionInfo, TopicPartition
from kclient.consumer.internals import arguments
from kclient.consumer.internals.consumer_calls import ConsumerCalls
from kclient.consumer.internals.consumer_core import ConsumerCore
from kclient.consumer.internals.consumer_life import ConsumerLife
from kclient.consumer.internals.fetch_position import EARLIEST, LATEST, RESET_TO_EARLIEST, RESET_TO_LATEST


class PositionMethods(ConsumerLife):
    """Positions and the ends of logs. The parts are those of the consumer, which makes them."""

    _core: ConsumerCore
    _calls: ConsumerCalls

    def seek(self, tp: TopicPartition, offset: OffsetLike) -> None:
        """Read `tp` from `offset` on, with the next `poll`. Raises IllegalStateError if it is not assigned."""
        with self._use:
            self._core.seek(checked_partition(tp), checked_offset(offset))

    def seek_to_beginning(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Read from the first offset on; all assigned partitions if none are named. Looked up when needed."""
        with self._use:
            self._core.request_reset(self._chosen(partitions), RESET_TO_EARLIEST)

    def seek_to_end(self, partitions: Iterable[TopicPartition] | None = None) -> None:
        """Read only what comes from now on; all assigned partitions if none are named. Looked up when needed."""
        with self._use:
            self._core.request_reset(self._chosen(partitions), RESET_TO_LATEST)

    def _chosen(self, partitions: Iterable[TopicPartition] | None) -> list[TopicPartition]:
        return arguments.checked_assigned(partitions, self._core.assigned.by_partition)

    def position(self, tp: TopicPartition, *, timeout_ms: int | None = None) -> int:
        """The offset of the next record that will be read, waiting until it is known.

        Raises IllegalStateError if `tp` is not assigned, KafkaTimeoutError, NoOffsetForPartitionError and other errors
        that keep it from having one.
        """
        with self._use:
            checked = checked_partition(tp)
            return self._run(self._calls.position(checked, self._calls.timer(timeout_ms)))

    def pause(self, partitions: Iterable[TopicPartition]) -> None:
        """Return nothing from these until `resume`. What is fetched already is kept."""
        with self._use:
            self._core.set_paused(arguments.checked_partitions(partitions), True)

    def resume(self, partitions: Iterable[TopicPartition]) -> None:
        """Return records from these again."""
        with self._use:
            self._core.set_paused(arguments.checked_partitions(partitions), False)

    def paused(self) -> frozenset[TopicPartition]:
        """The paused partitions."""
        with self._use:
            return self._core.paused()

    def beginning_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """The first offset of each partition, assigned or not."""
        with self._use:
            chosen = arguments.checked_partitions(partitions)
            return self._run(self._calls.log_ends(chosen, EARLIEST, self._calls.timer(timeout_ms)))

    def end_offsets(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, int]:
        """The offset after the last record that can be read: with read_committed, where open transactions begin."""
        with self._use:
            chosen = arguments.checked_partitions(partitions)
            return self._run(self._calls.log_ends(chosen, LATEST, self._calls.timer(timeout_ms)))

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """The first record of each partition at or after a time (ms since the epoch); None if there is none."""
        with self._use:
            chosen = arguments.checked_timestamps(timestamps)
            return self._run(self._calls.offsets(chosen, self._calls.timer(timeout_ms)))

    def current_lag(self, tp: TopicPartition) -> int | None:
        """Records between the position and the end of `tp` as brokers told it last; None while either is not known.

        Waits for nothing: an end that is not known is looked up in the background, for a later call. With
        read_committed it is where open transactions begin. Raises IllegalStateError if `tp` is not assigned.
        """
        with self._use:
            return self._core.lag(checked_partition(tp))

    # The cluster.

    def partitions_for(self, topic: str, *, timeout_ms: int | None = None) -> list[PartitionInfo]:
        """The partitions of `topic`, empty if there is no such topic. Raises KafkaTimeoutError."""
        with self._use:
            checked = arguments.checked_topic(topic)
            return self._run(self._calls.partitions_of(checked, self._calls.timer(timeout_ms)))

    def list_topics(self, *, timeout_ms: int | None = None) -> dict[str, list[PartitionInfo]]:
        """All topics that the consumer may see, with their partitions. Raises KafkaTimeoutError."""
        with self._use:
            return self._run(self._calls.topics(self._calls.timer(timeout_ms)))
