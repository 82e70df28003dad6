"""A producer and a consumer for coroutines, as thin as the core allows: no thread but each client's I/O thread."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self, TypeVar

from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.config import ConsumerConfig
from kclient.consumer.internals.assembly import build_consumer
from kclient.consumer.internals.consumer_calls import ConsumerCalls
from kclient.consumer.internals.rebalance_callback import RebalanceKind
from kclient.consumer.listener import ConsumerRebalanceListener
from kclient.consumer.types import ConsumerRecord, ConsumerRecords
from kclient.producer.config import ProducerConfig
from kclient.producer.internals.assembly import build_producer
from kclient.producer.internals.placement import Placement
from kclient.utils.futures import CompletableFuture, KafkaFuture
from kclient.utils.steps import Pause, Steps

T = TypeVar("T")

_CLOSE_MS = 30_000


async def take(steps: Steps[T]) -> T:
    """Take the steps in the running loop; cancelling the task ends them."""
    try:
        while True:
            pause = next(steps)
            left_ms = pause.remaining_ms()
            over = asyncio.ensure_future(_end_of(pause.future))
            try:
                await asyncio.wait([over], timeout=None if left_ms is None else left_ms / 1000)
            finally:
                over.cancel()
    except StopIteration as done:
        result: T = done.value
        return result
    finally:
        steps.close()


async def _end_of(future: KafkaFuture[Any]) -> None:
    with contextlib.suppress(Exception):  # the steps look at the outcome
        await future


class Producer:
    """Sends from coroutines."""

    def __init__(self, **settings: object) -> None:
        self.core = build_producer(ProducerConfig.parse(None, settings))
        self.placement = Placement(self.core)

    async def send(self, topic: str, value: bytes, key: bytes | None = None) -> Any:
        return await take(self.placement.send(topic, value, key, None))

    async def flush(self) -> None:
        self.core.accumulator.begin_flush()
        try:
            assert await take(self.core.accumulator.queued.incomplete.await_all_until_now(None))
        finally:
            self.core.accumulator.end_flush()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.core.io_thread.begin_close()
        await asyncio.to_thread(self.core.io_thread.join, _CLOSE_MS)


class Consumer:
    """Reads from coroutines, of which one at a time uses it."""

    def __init__(self, **settings: object) -> None:
        self.core = build_consumer(ConsumerConfig.parse(None, settings))
        self.calls = AwaitingCalls(self.core)

    def subscribe(self, topics: Iterable[str], listener: ConsumerRebalanceListener | None = None) -> None:
        self.core.subscribe(topics, listener)

    def assign(self, *partitions: TopicPartition) -> None:
        self.core.assign(partitions)

    async def poll(self, timeout_ms: int) -> ConsumerRecords[bytes, bytes]:
        return await self._read(self.calls.records(self.core.time.timer(timeout_ms)))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> ConsumerRecord[bytes, bytes]:
        record = self.core.cursor.take()
        return await self._read(self.calls.next_record()) if record is None else record

    async def _read(self, steps: Steps[T]) -> T:
        self.core.settle()
        self.calls.begin_poll(self.core.time.monotonic_ms())
        try:
            return await take(steps)
        except BaseException:
            self.core.undo_last = True
            raise

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None = None) -> None:
        self.core.settle()
        await take(self.calls.commit(offsets, self.calls.timer(None)))

    async def committed(self, *partitions: TopicPartition) -> dict[TopicPartition, OffsetAndMetadata | None]:
        return await take(self.calls.committed(partitions, self.calls.timer(None)))

    async def position(self, tp: TopicPartition) -> int:
        self.core.settle()
        return await take(self.calls.position(tp, self.calls.timer(None)))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.core.settle()
        try:
            failure = await take(self.calls.close(self.core.time.timer(_CLOSE_MS)))
        finally:
            self.core.network.close(_CLOSE_MS)
            await asyncio.to_thread(self.core.network.join, _CLOSE_MS)
            self.core.close_parts()
        failure = failure or self.core.queue.run_all_calls()
        if failure is not None:
            raise failure


class AwaitingCalls(ConsumerCalls):
    """Calls whose listeners may be coroutines."""

    def call_listener(
        self, listener: ConsumerRebalanceListener, kind: RebalanceKind, partitions: frozenset[TopicPartition]
    ) -> Steps[None]:
        told: Any = getattr(listener, f"on_partitions_{kind.value}")(partitions)
        if told is None:
            return
        task = asyncio.ensure_future(told)
        done: CompletableFuture[None] = CompletableFuture()
        task.add_done_callback(lambda _: done.complete(None))
        try:
            yield Pause(done, None)
            task.result()
        finally:
            task.cancel()
