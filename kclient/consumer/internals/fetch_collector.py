"""From buffered fetches to records: checks that they are still wanted, decodes, and moves positions."""

from __future__ import annotations

from typing import Any, TypeVar

import attrs

from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.assigned_partitions import AssignedPartitions
from kclient.consumer.internals.completed_fetch import RECORDS, CompletedFetch, Form, Portion
from kclient.consumer.internals.fetch_buffer import MAX_FETCHES_PER_PARTITION, FetchBuffer
from kclient.consumer.internals.fetch_position import FetchPosition
from kclient.consumer.internals.heap_top import HeapTop
from kclient.consumer.internals.undecodable import NotReplacedError
from kclient.errors import KafkaError, RecordDeserializationError
from kclient.utils.log_context import LogContext, Logger

T = TypeVar("T")


@attrs.define(eq=False, repr=False)
class FetchCollector:
    """Takes records out of the buffer in two steps: `collect` decodes and changes nothing, `hand_out` moves the
    positions. What happens in between, such as a Ctrl-C, loses nothing. Used by the application's thread.
    """

    _buffer: FetchBuffer
    _assigned: AssignedPartitions
    _log_context: LogContext
    _log: Logger = attrs.field(init=False)
    _heap_top: HeapTop = attrs.field(factory=HeapTop, init=False)

    def __attrs_post_init__(self) -> None:
        self._log = self._log_context.logger(__name__)

    def collect(
        self, form: Form[T], max_records: int | None, partitions: int | None = None
    ) -> list[Portion[T]]:
        """The portions that can be handed out now, at most of so many partitions.

        They have `max_records` together, and the last of them maybe more. Without that it is the rest of one fetch of
        each partition, or what of it fits into columns. Positions pass what holds no records for the application at
        once. Raises the error of the partition whose turn it is; if other partitions come before it their records
        are returned first.
        """
        portions: list[Portion[T]] = []
        room = max_records
        for fetch in self._buffer.turns():
            portion = failed = None
            try:
                portion = self._next_portion(fetch, form, room)
            except KafkaError as error:
                if portions:
                    self._buffer.put_first(fetch.tp)  # the next poll begins with the error
                    break
                self._set_aside(fetch.tp, error)
                if not isinstance(error, NotReplacedError):
                    raise
                failed = error.failure
            if failed is not None:
                raise failed  # out here, so that its context stays what it was
            if portion is None:
                continue
            portions.append(portion)
            if room is not None:
                room -= portion.left
                if room <= 0:
                    break
            if len(portions) == partitions:
                break
        if portions and form is RECORDS:
            self._heap_top.hold()
        return portions

    def hand_out(
        self, portion: Portion[Any], count: int, undo: dict[TopicPartition, FetchPosition] | None = None
    ) -> bool:
        """Move the position past the next `count` records of `portion`; False if they must not be handed out any more.

        `undo` gets the position before, for `take_back`.
        """
        fetch = portion.fetch
        state = self._assigned.by_partition.get(fetch.tp)
        offset, epoch = portion.position_after(count)
        if state is None or fetch.discarded or not state.advance(portion.position, offset, epoch, undo):
            return False
        self._handed_out(portion, count, offset)
        return True

    def settle(self, portion: Portion[Any], count: int, undo: dict[TopicPartition, FetchPosition]) -> None:
        """Move the position past the next `count` records of `portion`, which the application has already.

        `undo` gets the position before the last of them. May be called again where an exception ended it.
        """
        state = self._assigned.by_partition.get(portion.fetch.tp)
        last = portion.position_after(count - 1) if count > 1 else None
        to = portion.position_after(count)
        if state is not None and state.catch_up(portion.position, last, to, undo):
            self._handed_out(portion, count, to[0])

    def _handed_out(self, portion: Portion[Any], count: int, position: int) -> None:
        fetch = portion.fetch
        if fetch.handed_out(portion, count, position) and not fetch.discarded:
            # Not left to the next call, so that the I/O thread can refill while the application works.
            self._buffer.use_up(fetch)

    def take_back(self, tp: TopicPartition, before: FetchPosition) -> None:
        """Undo `hand_out`: the records did not reach the application, so they are fetched again."""
        state = self._assigned.by_partition.get(tp)
        if state is not None:
            state.take_back(before)
        self._buffer.discard(tp)

    def _next_portion(
        self, first: CompletedFetch, form: Form[T], max_records: int | None
    ) -> Portion[T] | None:
        tp = first.tp
        fetch: CompletedFetch | None = first
        fetches = 1
        # More than that have come since, and are for the next look: where nothing of all that comes is to be handed
        # out, the application has other things to do as well.
        while fetch is not None and not fetch.over and fetches <= MAX_FETCHES_PER_PARTITION:
            state = self._assigned.by_partition.get(tp)
            readable = None if state is None else state.is_readable_at(fetch.position)
            if readable is None:
                self._log.debug(
                    "Dropping fetched data of %s at %d: it is not wanted any more", tp, fetch.position
                )
                self._buffer.discard(tp)
                return None
            if not readable:
                self._buffer.detach(tp)
                return None
            portion = fetch.portion(form, max_records)
            if portion is None:
                self._buffer.use_up(fetch)
            elif portion.left:
                return portion
            elif not self.hand_out(portion, 0):
                return None
            following = self._buffer.first(tp)
            fetches += following is not fetch
            fetch = following
        return None

    def _set_aside(self, tp: TopicPartition, error: KafkaError) -> None:
        if isinstance(error, RecordDeserializationError | NotReplacedError):
            # The bytes are what they are: keep them, the same error follows until the application seeks.
            self._buffer.put_last(tp)
        else:
            # Damaged on the way, or refused by a broker: ask again before the next poll looks at it.
            self._buffer.discard(tp)
