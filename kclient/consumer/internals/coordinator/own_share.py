"""The partitions of a classic member: what it gives up before it joins, and what it takes afterwards (KIP-429)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import attrs

from kclient.common.offsets import ConsumerGroupMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.assignor.base import Assignment, ConsumerPartitionAssignor, RebalanceProtocol
from kclient.consumer.internals.assigned_partitions import AssignedPartitions
from kclient.consumer.internals.coordinator.assignment_changes import AssignmentChanges
from kclient.consumer.internals.coordinator.generation import Generation
from kclient.consumer.internals.rebalance_callback import RebalanceCallback, RebalanceKind
from kclient.errors import KafkaError
from kclient.utils.log_context import LogContext, Logger


@attrs.define(kw_only=True, eq=False, repr=False)
class OwnShare:
    """Has the application give partitions up and take them, as the rebalance protocol wants it. For the I/O thread.

    With the eager protocol all are given up before the member joins. With the cooperative one it joins with what it
    has, goes on with it, and gives up afterwards what others get, who have it after one more rebalance.
    """

    _protocol: RebalanceProtocol
    _assignors: Mapping[str, ConsumerPartitionAssignor]
    _assigned: AssignedPartitions
    _changes: AssignmentChanges
    _log_context: LogContext
    _log: Logger = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._log = self._log_context.logger(__name__)

    def held(self) -> frozenset[TopicPartition]:
        """The partitions that the member has."""
        return self._assigned.partitions()

    @property
    def changing(self) -> bool:
        """True while the application is to carry out a change."""
        return self._changes.under_way

    def cancel(self) -> None:
        """Change nothing more; what the application has begun it finishes."""
        self._changes.cancel()

    def callback_done(self, callback: RebalanceCallback) -> None:
        """The application has carried out `callback`."""
        self._changes.done(callback)

    def lose_all(self, generation: Generation) -> bool:
        """Have the application hear that others may have its partitions; False if it has none."""
        return self._give_up(RebalanceKind.LOST, self.held(), generation)

    def prepare_to_join(self, topics: frozenset[str], generation: Generation) -> bool:
        """Have the application give up what it must not have when it joins for `topics`; False if that is nothing."""
        given_up = self.held()
        if self._protocol is RebalanceProtocol.COOPERATIVE:
            given_up = frozenset(tp for tp in given_up if tp.topic not in topics)
        return self._give_up(RebalanceKind.REVOKED, given_up, generation)

    def _give_up(
        self, kind: RebalanceKind, partitions: frozenset[TopicPartition], generation: Generation
    ) -> bool:
        if partitions:
            self._changes.begin([RebalanceCallback(kind, partitions, generation)])
        return bool(partitions)

    def take(
        self,
        assignment: Assignment,
        metadata: ConsumerGroupMetadata,
        generation: Generation,
        on_taken: Callable[[bool], None],
        on_failed: Callable[[KafkaError], None],
    ) -> None:
        """Have the application take `assignment`, and give up before what is not in it.

        `on_taken` is told if there was anything to give up: then the member has to join once more. `on_failed` gets
        the error of an assignor that cannot stand its assignment.
        """
        partitions = frozenset(assignment.partitions)
        given_up = self.held() - partitions
        self._log.info("Assigned: %s", _names(partitions))

        def assign() -> None:
            try:
                self._tell_assignor(assignment, metadata, generation.assignor or "")
            except KafkaError as error:
                on_failed(error)
                return
            callback = RebalanceCallback(RebalanceKind.ASSIGNED, partitions, generation)
            self._changes.begin([callback], lambda: on_taken(bool(given_up)))

        if given_up:
            self._log.info("Given up, for others: %s", _names(given_up))
            self._changes.begin([RebalanceCallback(RebalanceKind.REVOKED, given_up, generation)], assign)
        else:
            assign()

    def _tell_assignor(self, assignment: Assignment, metadata: ConsumerGroupMetadata, name: str) -> None:
        try:
            self._assignors[name].on_assignment(assignment, metadata)
        except Exception as error:
            self._log.exception("The assignor %s failed on its assignment", name)
            raise KafkaError(f"The assignor {name!r} failed on its assignment: {error!r}") from error


def _names(partitions: Iterable[TopicPartition]) -> str:
    return ", ".join(map(str, sorted(partitions))) or "nothing"
