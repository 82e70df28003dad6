"""From buffered fetches to records: checks that they are still wanted, decodes, and moves positions."""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import Any, Concatenate, ParamSpec, TypeVar

import attrs

from kclient._accel import Columns
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.completed_fetch import AnyChunk, Chunk, ColumnChunk, CompletedFetch
from kclient.consumer.internals.fetch_buffer import FetchBuffer
from kclient.consumer.internals.heap_top import HeapTop
from kclient.consumer.internals.partition_state import FetchPosition
from kclient.consumer.internals.subscription_state import SubscriptionState
from kclient.consumer.types import ConsumerRecord
from kclient.errors import KafkaError, RecordDeserializationError
from kclient.utils.log_context import LogContext

P = ParamSpec("P")
C = TypeVar("C", Chunk, ColumnChunk)


@attrs.define(eq=False)
class Portion:
    """Records of one partition that can be handed out, and where its position goes then. Changed by nobody."""

    chunk: Chunk
    records: list[ConsumerRecord[Any, Any]]
    end: int
    end_epoch: int | None

    @property
    def tp(self) -> TopicPartition:
        """The partition."""
        return self.chunk.fetch.tp


@attrs.frozen(eq=False)
class ColumnPortion:
    """The same with records as columns."""

    chunk: ColumnChunk
    columns: Columns
    end: int
    end_epoch: int | None

    @property
    def tp(self) -> TopicPartition:
        """The partition."""
        return self.chunk.fetch.tp


class FetchCollector:
    """Takes records out of the buffer in two steps: `collect` decodes and changes nothing, `hand_out` moves the
    positions. What happens in between, such as a Ctrl-C, loses nothing. Used by the application's thread.
    """

    def __init__(
        self, buffer: FetchBuffer, subscriptions: SubscriptionState, log_context: LogContext
    ) -> None:
        self._buffer = buffer
        self._subscriptions = subscriptions
        self._log = log_context.logger(__name__)
        self._heap_top = HeapTop()

    def collect(self, max_records: int) -> list[Portion]:
        """The portions that can be handed out now, of at most `max_records` together.

        Positions pass what holds no records for the application at once. Raises the error of the partition whose
        turn it is; if other partitions come before it their records are returned first.
        """
        portions: list[Portion] = []
        room = max_records

        def take(tp: TopicPartition) -> bool:
            nonlocal room
            chunk = self._next_chunk(tp, CompletedFetch.chunk, room)
            if chunk is not None:
                records, offset, epoch = chunk.peek(room)
                portions.append(Portion(chunk, records, offset, epoch))
                room -= len(records)
            return room > 0

        self._take_turns(take, portions)
        if portions:
            self._heap_top.hold()
        return portions

    def collect_columns(
        self, max_records: int | None, view: bool, partitions: int | None
    ) -> list[ColumnPortion]:
        """The same as columns, at most of so many partitions.

        Without `max_records` it is the rest of one fetch of each partition, or what of it fits into columns.
        """
        portions: list[ColumnPortion] = []
        room = max_records

        def take(tp: TopicPartition) -> bool:
            nonlocal room
            chunk = self._next_chunk(tp, CompletedFetch.columns, room, view)
            if chunk is not None and chunk.columns is not None:
                portions.append(ColumnPortion(chunk, chunk.columns, *chunk.peek(0)[1:]))
                if room is not None:
                    room -= chunk.left
            return room != 0 and len(portions) != partitions

        self._take_turns(take, portions)
        return portions

    def _take_turns(self, take: Callable[[TopicPartition], bool], portions: Sized) -> None:
        """Have `take` add a partition's portion to `portions`, one after the other, until it returns False."""
        for tp in self._buffer.turns():
            try:
                if not take(tp):
                    break
            except KafkaError as error:
                if portions:
                    self._buffer.put_first(tp)  # the next poll begins with the error
                    break
                self._set_aside(tp, error)
                raise

    def hand_out(self, portion: Portion, undo: dict[TopicPartition, FetchPosition]) -> bool:
        """Move the position past `portion`; False if the records must not be handed out any more.

        `undo` gets the position before, for `take_back`.
        """
        return self.advance(portion.chunk, len(portion.records), portion.end, portion.end_epoch, undo)

    def hand_out_columns(self, portion: ColumnPortion, undo: dict[TopicPartition, FetchPosition]) -> bool:
        """The same for columns."""
        return self.advance(portion.chunk, portion.columns.count, portion.end, portion.end_epoch, undo)

    def take_back(self, tp: TopicPartition, before: FetchPosition) -> None:
        """Undo `hand_out`: the records did not reach the application, so they are fetched again."""
        self._subscriptions.take_back(tp, before)
        self._buffer.discard(tp)

    def advance(
        self,
        chunk: AnyChunk,
        count: int,
        offset: int,
        epoch: int | None,
        undo: dict[TopicPartition, FetchPosition] | None = None,
    ) -> bool:
        """Move the position past the next `count` records of `chunk`, to `offset`; as `hand_out`."""
        fetch = chunk.fetch
        if fetch.discarded or not self._subscriptions.advance(fetch.tp, chunk.position, offset, epoch, undo):
            return False
        chunk.skip(count, offset)
        if not chunk.left:
            self._finish(chunk)
        return True

    def _next_chunk(
        self,
        tp: TopicPartition,
        decode: Callable[Concatenate[CompletedFetch, P], C | None],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> C | None:
        while (fetch := self._buffer.first(tp)) is not None:
            readable = self._subscriptions.is_readable_at(tp, fetch.position)
            if readable is None:
                self._log.debug(
                    "Dropping fetched data of %s at %d: it is not wanted any more", tp, fetch.position
                )
                self._buffer.discard(tp)
                return None
            if not readable:
                self._buffer.detach(tp)
                return None
            chunk = decode(fetch, *args, **kwargs)
            if chunk is None:
                self._buffer.pop(fetch)
            elif chunk.left:
                return chunk
            elif not self.advance(chunk, 0, *chunk.peek(0)[1:]):
                return None
        return None

    def _finish(self, chunk: AnyChunk) -> None:
        fetch = chunk.fetch
        fetch.finish_chunk()
        if fetch.end_offset is not None and chunk.end >= fetch.end_offset and fetch.error is None:
            # Not left to the next call, so that the I/O thread can refill while the application works.
            self._buffer.pop(fetch)

    def _set_aside(self, tp: TopicPartition, error: KafkaError) -> None:
        if isinstance(error, RecordDeserializationError):
            # The bytes are what they are: keep them, the same error follows until the application seeks.
            self._buffer.put_last(tp)
        else:
            # Damaged on the way, or refused by a broker: ask again before the next poll looks at it.
            self._buffer.discard(tp)
