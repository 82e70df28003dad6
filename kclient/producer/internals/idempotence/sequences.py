"""The sequences of one partition's batches (KIP-98, KIP-360)."""

from __future__ import annotations

import attrs

from kclient.common.uuid import Uuid
from kclient.producer.internals.idempotence.fate import Fate
from kclient.producer.internals.producer_batch import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    BatchState,
    ProducerBatch,
)
from kclient.record import increment_sequence

_SEQUENCES = 1 << 31
# A broker forgets producers that are silent for producer.id.expiration.ms, a day unless somebody has set less.
_SILENCE_MS = 600_000
_NEVER_MS = -1
_NO_OFFSET = -1


def sequence_precedes(first: int, second: int) -> bool:
    """Return True if `first` comes before `second`, where both belong to batches under way at the same time.

    Those are far closer to each other than half of all sequences, which is what makes the order clear after a wrap.
    """
    return first != second and (second - first) % _SEQUENCES < _SEQUENCES // 2


def _is_certainly_refused(batch: ProducerBatch) -> bool:
    return batch.state is BatchState.QUEUED and batch.fate is Fate.NOT_WRITTEN


@attrs.frozen
class ProducerIdAndEpoch:
    """The name under which a producer's batches are counted."""

    producer_id: int = NO_PRODUCER_ID
    epoch: int = NO_EPOCH

    @property
    def is_valid(self) -> bool:
        """True once a broker has given an id."""
        return self.producer_id != NO_PRODUCER_ID


@attrs.define
class PartitionSequences:
    """The producer's knowledge of one partition's sequences. Belongs to the I/O thread.

    It outlives the partition's presence in the metadata: starting again at 0 under the same epoch would make the
    broker take new records for old ones and drop them.
    """

    identity: ProducerIdAndEpoch = ProducerIdAndEpoch()
    topic_id: Uuid | None = None
    next_sequence: int = 0
    expected_sequence: int = 0
    """The sequence after the last acknowledged one: what the leader takes next, if nothing unknown is written."""
    in_flight: list[ProducerBatch] = attrs.Factory(list)
    """Batches with a sequence and without an outcome, by sequence: on the wire, or queued to be sent again."""
    on_wire: int = 0
    """Requests that carry a batch of this partition, also batches that were given up meanwhile."""
    broken: bool = False
    """The leader refused the sequence that was its next: it wants a new epoch."""
    _acked_ms: int = _NEVER_MS
    _acked_end_offset: int = _NO_OFFSET

    def is_of(self, identity: ProducerIdAndEpoch) -> bool:
        """Return True if the sequences are counted under `identity`."""
        return self.identity is identity or self.identity == identity

    def is_established(self, now_ms: int) -> bool:
        """Return True if the leader is known to check the sequences of this epoch.

        A broker takes any sequence from a producer that it does not know in the partition. Were the first batch
        refused, the second would be taken in its place. So until the first is acknowledged there is only one on its
        way, and the same after a time in which the broker may have forgotten the producer.
        """
        return self._acked_ms != _NEVER_MS and now_ms - self._acked_ms <= _SILENCE_MS

    @property
    def needs_restart(self) -> bool:
        """True if the leader takes nothing more of this epoch that is not written yet."""
        pending = self.in_flight[0].base_sequence if self.in_flight else self.next_sequence
        return self.broken or sequence_precedes(self.expected_sequence, pending)

    @property
    def is_settled(self) -> bool:
        """True if everything in flight only has to be acknowledged, one after the other, and then new batches."""
        following = self.expected_sequence
        for batch in self.in_flight:
            if batch.forgotten or batch.base_sequence != following:
                return False
            following = increment_sequence(batch.last_sequence, 1)
        return following == self.next_sequence and not self.broken

    @property
    def can_restart(self) -> bool:
        """True if all batches in flight may be numbered anew: none may be written, and no request carries one."""
        return not self.on_wire and all(map(_is_certainly_refused, self.in_flight))

    def is_overtaken(self, batch: ProducerBatch) -> bool:
        """Return True if a younger batch than `batch` was acknowledged."""
        return self._acked_ms != _NEVER_MS and sequence_precedes(batch.base_sequence, self.expected_sequence)

    def next_repetition(self, now_ms: int) -> ProducerBatch | None:
        """Return the batch that is the next to be sent again, or is on the wire and has to be waited for.

        It is the oldest, with two exceptions. A broker that restarted remembers only the last batch of a producer:
        it refuses those before it, although it has them. Such a batch that may be written is passed over for the next
        that may be, whose answer tells of both, and is asked about again once what is behind it is certainly not
        written. And what has to be numbered anew waits until nothing else is left.
        """
        if not self.in_flight:
            return None
        if not self.is_established(now_ms):
            first = self.in_flight[0]
            if self.on_wire or first.forgotten or (first.fate is Fate.NOT_WRITTEN and self.needs_restart):
                return None
            return first
        only_unknown = self.needs_restart
        for batch in self.in_flight:
            if batch.forgotten:
                only_unknown = True
            elif not only_unknown or batch.fate is Fate.UNKNOWN or batch.state is BatchState.IN_FLIGHT:
                return batch
        last = self._last_unknown()
        return last if last is not None and self.is_disproved_by_refusal(last) else None

    def _last_unknown(self) -> ProducerBatch | None:
        return next((batch for batch in reversed(self.in_flight) if batch.fate is Fate.UNKNOWN), None)

    def is_disproved_by_refusal(self, batch: ProducerBatch) -> bool:
        """Return True if a leader that refuses `batch` as out of order cannot have it, nor ever take it in this epoch.

        A leader refuses what it has only if it has something younger; so everything younger that was ever sent must
        be certainly not written. And one that is older and certainly refused leaves a gap, over which no former
        attempt that may still lie in a receive buffer fits in.
        """
        at = self.in_flight.index(batch)
        following = increment_sequence(batch.last_sequence, 1)
        for younger in self.in_flight[at + 1 :]:
            if younger.base_sequence != following or not _is_certainly_refused(younger):
                return False
            following = increment_sequence(younger.last_sequence, 1)
        return following == self.next_sequence and any(map(_is_certainly_refused, self.in_flight[:at]))

    def hopeless(self, now_ms: int) -> list[ProducerBatch]:
        """Return the queued batches that can neither be sent again nor be proven to be written."""
        found = []
        may_prove = False
        established = self.is_established(now_ms)
        for batch in reversed(self.in_flight):
            if batch.state is BatchState.IN_FLIGHT:
                may_prove = True
            elif batch.forgotten:
                # One that is asked about again may prove those before it as well.
                may_prove = may_prove or self.is_disproved_by_refusal(batch)
                if not (may_prove and established):
                    found.append(batch)
            elif batch.fate is Fate.UNKNOWN:
                may_prove = True
            elif self.is_overtaken(batch):
                found.append(batch)
        found.reverse()
        return found

    # What happens to batches.

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

    def forget(self, batch: ProducerBatch) -> bool:
        """Take out a batch whose outcome is known, or that is given up; False if it was not in flight."""
        if batch not in self.in_flight:
            return False
        self.in_flight.remove(batch)
        return True

    def acked(self, batch: ProducerBatch, base_offset: int, now_ms: int) -> None:
        """The leader has `batch`, and what it thereby proves to be written is marked so."""
        missing = (batch.base_sequence - self.expected_sequence) % _SEQUENCES
        if sequence_precedes(self.expected_sequence, batch.base_sequence) and self._proves(
            batch, base_offset, missing, now_ms
        ):
            for other in self.in_flight:
                if sequence_precedes(other.base_sequence, batch.base_sequence):
                    other.proven = True
        following = increment_sequence(batch.last_sequence, 1)
        if self._acked_ms == _NEVER_MS or sequence_precedes(self.expected_sequence, following):
            self.expected_sequence = following
            self._acked_end_offset = _NO_OFFSET if base_offset < 0 else base_offset + batch.builder.count
        self._acked_ms = now_ms

    def _proves(self, batch: ProducerBatch, base_offset: int, missing: int, now_ms: int) -> bool:
        """Return True if the leader can have taken `batch` only behind the `missing` records before it.

        A leader that lost its knowledge of the producer takes any sequence. That is what has happened if one of them
        was certainly refused, or if there is no room for them between the last acknowledged offset and this one.
        """
        if not self.is_established(now_ms):
            return False
        for other in self.in_flight:
            if _is_certainly_refused(other) and sequence_precedes(other.base_sequence, batch.base_sequence):
                return False
        known = _NO_OFFSET not in {base_offset, self._acked_end_offset}
        return not known or base_offset - self._acked_end_offset >= missing

    def note_topic_id(self, topic_id: Uuid | None) -> None:
        """The topic has this id now. Under another one it is another log, whose leader does not know the producer."""
        if topic_id is None:
            return
        if self.topic_id is not None and topic_id != self.topic_id:
            self.expected_sequence = self.in_flight[0].base_sequence if self.in_flight else self.next_sequence
            self._acked_ms = _NEVER_MS
            self._acked_end_offset = _NO_OFFSET
            self.broken = False
            for batch in self.in_flight:
                batch.forgotten = batch.proven = False
        self.topic_id = topic_id

    def restart(self, identity: ProducerIdAndEpoch) -> None:
        """Begin at 0 under `identity`, with the batches that are queued to be sent again."""
        assert self.can_restart
        self.identity = identity
        self.next_sequence = self.expected_sequence = 0
        self._acked_ms = _NEVER_MS
        self._acked_end_offset = _NO_OFFSET
        self.broken = False
        for batch in self.in_flight:
            batch.stamp(identity.producer_id, identity.epoch, self.next_sequence)
            self.next_sequence = increment_sequence(self.next_sequence, batch.builder.count)
