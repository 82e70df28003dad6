"""InFlightBatch: records of one partition that brokers have locked for this consumer, and what is said of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import attrs

from kclient.common.topic_id_partition import TopicIdPartition
from kclient.consumer.acknowledge import AcknowledgeType
from kclient.consumer.internals.share.acknowledgements import Acknowledgements, Run
from kclient.consumer.internals.share.delivered_record import DeliveredRecord
from kclient.consumer.types import ConsumerRecord
from kclient.errors import KafkaError

# States of an offset. Those up to 4 are what a broker will be told: no record there, or an AcknowledgeType.
GAP: Final = 0
ACCEPTED: Final = AcknowledgeType.ACCEPT.value
RELEASED: Final = AcknowledgeType.RELEASE.value
IN_FLIGHT: Final = 5
"""The application has the record."""
_RENEWING: Final = 6
_FREE: Final = 7
"""Not locked for this consumer, as far as it knows."""
WAITING: Final = 8
"""The application is still to get the record."""
_RENEWED: Final = 9


def _byte(state: int) -> bytes:
    return bytes((state,))


_SAID = re.compile(rb"[\x00-\x04]+")
_WAITING = re.compile(_byte(WAITING) + rb"+")
# What is said stays said; only a renewed record comes back.
_TAKEN = bytes.maketrans(bytes(range(5)), bytes([_FREE] * 4 + [_RENEWING]))


def _gaps(locked: Iterable[tuple[int, int]]) -> tuple[int, bytearray]:
    """The first of the locked offsets, and states that say that no record is at any of them."""
    ranges = list(locked)
    first, last = ranges[0][0], ranges[-1][1]
    states = bytearray(_byte(_FREE)) * (last - first + 1)
    for low, high in ranges:
        states[low - first : high - first + 1] = bytes(high - low + 1)
    return first, states


@attrs.define(eq=False, kw_only=True)
class InFlightBatch:
    """Offsets from `first` on, a byte of state for each. Belongs to the application's thread.

    A batch that has an `error` holds no records: its offsets could not be read, are given back unless the application
    says otherwise, and it hears of the error first.
    """

    node_id: int
    partition: TopicIdPartition
    records: list[ConsumerRecord[Any, Any]]
    first: int
    _states: bytearray
    lock_timeout_ms: int | None = None
    error: KafkaError | None = None
    _next: int = attrs.field(default=0, init=False)
    """The index of the record before which none waits."""

    @classmethod
    def of(
        cls,
        node_id: int,
        partition: TopicIdPartition,
        locked: Iterable[tuple[int, int]],
        records: list[ConsumerRecord[Any, Any]],
        lock_timeout_ms: int | None,
    ) -> InFlightBatch:
        """Records that wait to be handed out, from the ranges of offsets that are `locked` (first and last of each).

        Offsets without a record are gaps, which brokers are told of.
        """
        first, states = _gaps(locked)
        if records:
            low, high = records[0].offset, records[-1].offset
            if high - low + 1 == len(records):
                states[low - first : high - first + 1] = _byte(WAITING) * len(records)
            else:
                for record in records:
                    states[record.offset - first] = WAITING
        return cls(
            node_id=node_id,
            partition=partition,
            records=records,
            first=first,
            states=states,
            lock_timeout_ms=lock_timeout_ms,
        )

    @classmethod
    def unread(
        cls,
        node_id: int,
        partition: TopicIdPartition,
        locked: Iterable[tuple[int, int]],
        unless_told: AcknowledgeType,
        error: KafkaError | None = None,
        gaps: Iterable[tuple[int, int]] = (),
    ) -> InFlightBatch:
        """Offsets that were not read, because of `error`; `unless_told` is what becomes of them by itself.

        `gaps` are offsets before them at which there was nothing.
        """
        first, states = _gaps([*gaps, *locked])
        for low, high in locked:
            states[low - first : high - first + 1] = _byte(unless_told) * (high - low + 1)
        return cls(node_id=node_id, partition=partition, records=[], first=first, states=states, error=error)

    # What there is.

    @property
    def done(self) -> bool:
        """True if nothing is left to be said or to be handed out."""
        return self._states.count(_FREE) == len(self._states)

    @property
    def renewing(self) -> bool:
        """True if records come back to the application once their locks are renewed, or are about to."""
        return _RENEWING in self._states or _RENEWED in self._states

    @property
    def unacknowledged(self) -> bool:
        """True if the application has records of which it has said nothing."""
        return IN_FLIGHT in self._states

    def covers(self, offset: int) -> bool:
        """True if something may be said of the record at `offset` now."""
        at = offset - self.first
        return 0 <= at < len(self._states) and GAP < self._states[at] <= IN_FLIGHT

    # To the application.

    def hand_out(self, most: int) -> list[ConsumerRecord[Any, Any]]:
        """Up to `most` of the records that wait."""
        records, states, first = self.records, self._states, self.first
        if not self._next and states.count(WAITING) == len(records) <= most:
            self._replace(WAITING, IN_FLIGHT)
            self._next = len(records)
            return records
        given: list[ConsumerRecord[Any, Any]] = []
        while self._next < len(records) and len(given) < most:
            record = records[self._next]
            if states[record.offset - first] == WAITING:
                states[record.offset - first] = IN_FLIGHT
                given.append(record)
            self._next += 1
        return given

    def take_back(self) -> None:
        """The application did not get what it was handed: it gets it again."""
        self._replace(IN_FLIGHT, WAITING)
        self._next = 0

    def take_back_one(self, offset: int) -> None:
        """The application did not get this record."""
        if self._states[offset - self.first] == IN_FLIGHT:
            self._states[offset - self.first] = WAITING
            self._next = 0

    def bring_back_renewed(self) -> None:
        """Let the records with renewed locks wait to be handed out again."""
        # What could not be read is not handed out: its lock may lapse.
        if _RENEWED in self._states:
            self._replace(_RENEWED, _FREE if self.error is not None else WAITING)
            self._next = 0

    # From the application.

    def acknowledge(self, offset: int, type_: AcknowledgeType) -> None:
        """Say what became of a record that is covered, in place of what was said of it before."""
        self._states[offset - self.first] = type_

    def acknowledge_own(self, record: object, type_: object) -> bool:
        """Say what became of `record`, if it is one of this batch, in its place, and covered; False if it is not."""
        if type(type_) is not AcknowledgeType or type(record) is not DeliveredRecord:
            return False
        at = record.offset - self.first
        records, states = self.records, self._states
        # Where no record is missing, its place is its offset's; anywhere else it is not found.
        if not 0 <= at < len(records) or records[at] is not record or not GAP < states[at] <= IN_FLIGHT:
            return False
        states[at] = type_
        return True

    def accept_all(self) -> None:
        """Accept every record that the application has and has said nothing of."""
        self._replace(IN_FLIGHT, ACCEPTED)

    def give_back_waiting(self) -> Acknowledgements | None:
        """Return the release of what the application did not get; None if that is nothing."""
        runs = tuple(
            Run(self.first + found.start(), _byte(RELEASED) * len(found.group()))
            for found in _WAITING.finditer(self._states)
        )
        self._replace(WAITING, _FREE)
        return Acknowledgements(self.node_id, self.partition, runs) if runs else None

    def take_acknowledged(self) -> Acknowledgements | None:
        """Return the acknowledgements that the broker is to be told, once; None if there are none."""
        runs = tuple(Run(self.first + found.start(), found.group()) for found in _SAID.finditer(self._states))
        if not runs:
            return None
        self._states = self._states.translate(_TAKEN)
        return Acknowledgements(self.node_id, self.partition, runs)

    def renewed(self, acknowledgements: Acknowledgements) -> None:
        """The broker has answered: what it has renewed comes back, and the rest is lost."""
        if not acknowledgements.renews or acknowledgements.partition != self.partition:
            return
        state = _RENEWED if acknowledgements.error is None else _FREE
        for offset in acknowledgements.renewed_offsets():
            at = offset - self.first
            if 0 <= at < len(self._states) and self._states[at] == _RENEWING:
                self._states[at] = state

    def _replace(self, state: int, other: int) -> None:
        self._states = self._states.replace(_byte(state), _byte(other))
