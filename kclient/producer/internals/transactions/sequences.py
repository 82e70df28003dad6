"""The sequences of one partition's batches (KIP-98, KIP-360)."""

from __future__ import annotations

import attrs

from kclient.producer.internals.producer_batch import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    BatchState,
    ProducerBatch,
)
from kclient.record import increment_sequence

_SEQUENCES = 1 << 31


def sequence_precedes(first: int, second: int) -> bool:
    """Whether `first` comes before `second`, where both belong to batches that are under way at the same time.

    Those are far closer to each other than half of all sequences, which is what makes the order clear after a wrap.
    """
    return first != second and (second - first) % _SEQUENCES < _SEQUENCES // 2


@attrs.frozen
class ProducerIdAndEpoch:
    """The name under which a producer's batches are counted."""

    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_EPOCH

    @property
    def is_valid(self) -> bool:
        """Whether a broker has given an id."""
        return self.producer_id != NO_PRODUCER_ID


@attrs.define
class PartitionSequences:
    """What the producer knows of one partition's sequences. Belongs to the I/O thread.

    It outlives the partition's presence in the metadata: starting again at 0 under the same epoch would make the
    broker take new records for old ones and drop them.
    """

    identity: ProducerIdAndEpoch = ProducerIdAndEpoch()
    next_sequence: int = 0
    last_acked_sequence: int = NO_SEQUENCE
    in_flight: list[ProducerBatch] = attrs.Factory(list)
    """Batches with a sequence and without an outcome, by sequence: on the wire, or queued to be sent again."""
    on_wire: int = 0
    """How many requests carry a batch of this partition, also batches that were given up meanwhile."""
    unresolved: int | None = None
    """The sequence after the last batch that was given up without knowing whether the broker has it."""
    gap: int | None = None
    """The sequence from which on the broker has certainly nothing and will take nothing: a new epoch is needed."""

    def is_of(self, identity: ProducerIdAndEpoch) -> bool:
        """Whether the sequences are counted under `identity`."""
        return self.identity is identity or self.identity == identity

    @property
    def probe(self) -> ProducerBatch | None:
        """The oldest batch without outcome that was not refused: the next one to be sent again.

        A broker that restarted remembers only the last batch of a producer. It refuses the ones before, although it
        has them, and answers the last one as it did first. So a refusal proves nothing while a younger batch is in
        doubt: that one's answer tells for both.
        """
        for batch in self.in_flight:
            if not batch.refused:
                return batch
        return None

    def written_before(self, batch: ProducerBatch) -> list[ProducerBatch]:
        """The refused batches that the broker must have, as it has the younger `batch`."""
        return [
            other
            for other in self.in_flight
            if other.refused and sequence_precedes(other.base_sequence, batch.base_sequence)
        ]

    @property
    def all_acked(self) -> bool:
        """Whether the broker has acknowledged all that was ever given a sequence."""
        expected = (
            0 if self.last_acked_sequence == NO_SEQUENCE else increment_sequence(self.last_acked_sequence, 1)
        )
        return self.next_sequence == expected

    def assign(self, batch: ProducerBatch) -> None:
        """Give a new batch the next sequences."""
        batch.stamp(self.identity.producer_id, self.identity.epoch, self.next_sequence)
        self.next_sequence = increment_sequence(self.next_sequence, batch.builder.count)
        self.in_flight.append(batch)

    def insert(self, batch: ProducerBatch) -> None:
        """Take in a part of a batch that was split."""
        at = len(self.in_flight)
        while at and sequence_precedes(batch.base_sequence, self.in_flight[at - 1].base_sequence):
            at -= 1
        self.in_flight.insert(at, batch)

    def forget(self, batch: ProducerBatch) -> None:
        """The outcome of `batch` is known, or it was given up."""
        if batch in self.in_flight:
            self.in_flight.remove(batch)

    def acked(self, batch: ProducerBatch) -> None:
        """The broker has `batch`."""
        last = batch.last_sequence
        if self.last_acked_sequence == NO_SEQUENCE or sequence_precedes(self.last_acked_sequence, last):
            self.last_acked_sequence = last

    def open_gap(self, sequence: int) -> None:
        """Nothing from `sequence` on is with the broker."""
        if self.gap is None or sequence_precedes(sequence, self.gap):
            self.gap = sequence

    def leave_unresolved(self, batch: ProducerBatch) -> None:
        """`batch` was given up, and the broker may have it or not."""
        following = increment_sequence(batch.last_sequence, 1)
        if self.unresolved is None or sequence_precedes(self.unresolved, following):
            self.unresolved = following

    def ready_for_restart(self) -> bool:
        """Whether the batches behind the gap can be renumbered.

        No request may still carry one, and those before the gap, which the broker may have, must have come to an end
        under the sequences they have: renumbering them could write them twice.
        """
        if self.gap is None or self.on_wire:
            return False
        return not any(sequence_precedes(batch.base_sequence, self.gap) for batch in self.in_flight)

    def restart(self, identity: ProducerIdAndEpoch) -> None:
        """Begin at 0 under `identity`, with the batches that are queued to be sent again."""
        self.identity = identity
        self.next_sequence = 0
        self.last_acked_sequence = NO_SEQUENCE
        self.unresolved = self.gap = None
        for batch in self.in_flight:
            assert batch.state is BatchState.QUEUED
            batch.stamp(identity.producer_id, identity.epoch, self.next_sequence)
            batch.in_doubt = batch.refused = False
            self.next_sequence = increment_sequence(self.next_sequence, batch.builder.count)
