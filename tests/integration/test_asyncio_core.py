"""The core never waits: a face of sixty lines on asyncio sends through it without a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from types import TracebackType
from typing import Any, Self, TypeVar

import pytest

from harness.topics import new_topic, read_all
from kclient.broker.embedded import EmbeddedKafka
from kclient.errors import BufferExhaustedError, KafkaTimeoutError
from kclient.producer.config import ProducerConfig
from kclient.producer.internals.assembly import build_producer
from kclient.producer.internals.buffer_pool import Claim
from kclient.producer.internals.placement import Placement
from kclient.utils.steps import Steps

T = TypeVar("T")


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with EmbeddedKafka() as kafka:
        yield kafka.bootstrap_servers


async def take(steps: Steps[T]) -> T:
    """Take the steps in the running loop; cancelling the task ends them."""
    try:
        while True:
            pause = next(steps)
            left_ms = pause.remaining_ms()
            over = asyncio.ensure_future(pause.future)
            await asyncio.wait([over], timeout=None if left_ms is None else left_ms / 1000)
            over.cancel()
    except StopIteration as done:
        result: T = done.value
        return result
    finally:
        steps.close()


class Producer:
    """Sends from coroutines."""

    def __init__(self, **settings: object) -> None:
        self._core = build_producer(ProducerConfig.parse(None, settings))
        self._placement = Placement(self._core)

    async def send(self, topic: str, value: bytes, key: bytes | None = None) -> Any:
        return await take(self._placement.send(topic, value, key, None))

    async def flush(self) -> None:
        self._core.accumulator.begin_flush()
        try:
            assert await take(self._core.accumulator.queued.incomplete.await_all_until_now(None))
        finally:
            self._core.accumulator.end_flush()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._core.io_thread.begin_close()
        await asyncio.to_thread(self._core.io_thread.join, 30_000)


def test_coroutines_send_at_the_same_time_and_await_the_outcome(servers: str) -> None:
    topic = new_topic(servers, 2)
    threads: set[threading.Thread] = set()

    async def send(producer: Producer, number: int) -> int:
        future = await producer.send(topic, b"%d" % number, b"k%d" % number)
        threads.update(threading.enumerate())
        return int((await future).offset)

    async def main() -> list[int]:
        async with Producer(bootstrap_servers=servers, client_id="face", linger_ms=5) as producer:
            offsets = await asyncio.gather(*(send(producer, number) for number in range(300)))
            await producer.send(topic, b"last")
            await producer.flush()
            return offsets

    before = set(threading.enumerate())
    offsets = asyncio.run(main())
    assert len(offsets) == 300
    assert min(offsets) == 0
    assert len(read_all(servers, topic)) == 301
    assert len({thread for thread in threads - before if "face" in thread.name}) == 1, "its I/O thread alone"


def test_the_loop_goes_on_while_a_send_waits_for_memory_or_a_topic(servers: str) -> None:
    topic = new_topic(servers, 1)
    turns = 0

    async def tick() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0.001)

    async def main() -> None:
        ticking = asyncio.ensure_future(tick())
        async with Producer(
            bootstrap_servers=servers, max_block_ms=300, buffer_memory=100_000, linger_ms=60_000
        ) as producer:
            with pytest.raises(KafkaTimeoutError, match="Partition 7 of topic"):
                await take(producer._placement.topic(topic, 7))
            seen = turns
            assert seen > 1
            pool = producer._core.accumulator.pool
            claim = Claim()
            assert pool.try_allocate(claim, 100_000)
            with pytest.raises(BufferExhaustedError, match=r"max\.block\.ms"):
                await producer.send(topic, b"x")
            assert turns > seen + 1
            cancelled = asyncio.ensure_future(producer.send(topic, b"x"))
            while not pool.waiting:
                await asyncio.sleep(0.001)
            cancelled.cancel()
            await asyncio.wait([cancelled])
            assert not pool.waiting
            pool.give_back(claim)
            await producer.send(topic, b"x")
        ticking.cancel()

    asyncio.run(main())
