"""The core never waits: faces of a few dozen lines send and read in an asyncio loop, without threads of their own."""

from __future__ import annotations

import asyncio
import threading
import uuid
from collections import Counter
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager

import pytest

from harness.asyncio_faces import Consumer, Producer, take
from harness.scenarios.coroutines import members_read_and_commit_what_coroutines_send
from harness.topics import new_topic, produce, read_all
from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRebalanceListener
from kclient.errors import BufferExhaustedError, IllegalStateError, KafkaTimeoutError, WakeupError
from kclient.producer.internals.buffer_pool import Claim


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


@asynccontextmanager
async def ticking() -> AsyncIterator[list[int]]:
    """A task that counts the turns the loop gives it."""
    turns = [0]

    async def tick() -> None:
        while True:
            turns[0] += 1
            await asyncio.sleep(0.001)

    task = asyncio.ensure_future(tick())
    try:
        yield turns
    finally:
        task.cancel()


def test_the_loop_goes_on_while_a_send_waits_for_memory_or_a_topic(servers: str) -> None:
    topic = new_topic(servers, 1)

    async def main() -> None:
        async with (
            ticking() as turns,
            Producer(
                bootstrap_servers=servers, max_block_ms=300, buffer_memory=100_000, linger_ms=60_000
            ) as producer,
        ):
            with pytest.raises(KafkaTimeoutError, match="Partition 7 of topic"):
                await take(producer.placement.topic(topic, 7))
            seen = turns[0]
            assert seen > 1
            pool = producer.core.accumulator.pool
            claim = Claim()
            assert pool.try_allocate(claim, 100_000)
            with pytest.raises(BufferExhaustedError, match=r"max\.block\.ms"):
                await producer.send(topic, b"x")
            assert turns[0] > seen + 1
            cancelled = asyncio.ensure_future(producer.send(topic, b"x"))
            while not pool.waiting:
                await asyncio.sleep(0.001)
            cancelled.cancel()
            await asyncio.wait([cancelled])
            assert not pool.waiting
            pool.give_back(claim)
            await producer.send(topic, b"x")

    asyncio.run(main())


def reader(servers: str, *partitions: TopicPartition, **settings: object) -> Consumer:
    """A consumer of partitions, which commits only what it is asked to."""
    consumer = Consumer(
        bootstrap_servers=servers,
        group_id=f"g-{uuid.uuid4().hex[:8]}",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        **settings,
    )
    if partitions:
        consumer.assign(*partitions)
    return consumer


def test_consumers_in_one_loop_share_what_a_producer_sends_and_commit_it(servers: str) -> None:
    members_read_and_commit_what_coroutines_send(servers)


def test_the_loop_goes_on_while_a_poll_waits_and_what_comes_ends_it(servers: str) -> None:
    topic = new_topic(servers, 1)

    async def main() -> None:
        async with ticking() as turns, reader(servers, TopicPartition(topic, 0)) as consumer:
            assert not await consumer.poll(100)
            seen = turns[0]
            assert seen > 1
            polling = asyncio.ensure_future(consumer.poll(60_000))
            while turns[0] < seen + 10:
                await asyncio.sleep(0.001)
            assert not polling.done()
            async with Producer(bootstrap_servers=servers) as producer:
                await producer.send(topic, b"x")
                await producer.flush()
            assert [record.value for record in await polling] == [b"x"]

    asyncio.run(main())


def test_a_poll_that_is_cancelled_loses_no_record(servers: str) -> None:
    topic = new_topic(servers, 1)
    tp = TopicPartition(topic, 0)

    async def main() -> None:
        offsets: list[int] = []
        cancelled = 0
        async with (
            Producer(bootstrap_servers=servers, linger_ms=1) as producer,
            reader(servers, tp, max_poll_records=3) as consumer,
        ):
            for number in range(60):
                polling = asyncio.ensure_future(consumer.poll(30_000))
                await producer.send(topic, b"%d" % number)
                await asyncio.sleep(number % 6 / 1000)
                polling.cancel()
                await asyncio.wait([polling])
                if polling.cancelled():
                    cancelled += 1
                else:
                    offsets.extend(record.offset for record in polling.result())
                assert await consumer.position(tp) == len(offsets)
            while len(offsets) < 60:
                offsets.extend(record.offset for record in await consumer.poll(30_000))
        assert offsets == list(range(60))
        assert cancelled

    asyncio.run(main())


def test_iteration_waits_for_records_and_commits_those_that_were_given_out(servers: str) -> None:
    topic = new_topic(servers, 1)
    tp = TopicPartition(topic, 0)
    produce(servers, topic, 20)

    async def main() -> None:
        async with reader(servers, tp) as consumer:
            seen: list[int] = []
            async for record in consumer:
                seen.append(record.offset)
                if record.offset == 4:
                    await consumer.commit()
                    committed = (await consumer.committed(tp))[tp]
                    assert committed is not None
                    assert committed.offset == 5
                if record.offset == 19:
                    break
            assert seen == list(range(20))
            waiting = asyncio.ensure_future(anext(consumer))
            await asyncio.sleep(0.01)
            waiting.cancel()
            await asyncio.wait([waiting])
            assert await consumer.position(tp) == 20

    asyncio.run(main())


def test_a_wakeup_ends_what_a_coroutine_waits_for(servers: str) -> None:
    topic = new_topic(servers, 1)

    async def main() -> None:
        async with reader(servers, TopicPartition(topic, 0)) as consumer:
            polling = asyncio.ensure_future(consumer.poll(60_000))
            await asyncio.sleep(0.05)
            consumer.core.wakeup.wakeup()
            with pytest.raises(WakeupError):
                await polling
            consumer.core.wakeup.wakeup()
            with pytest.raises(WakeupError):
                await consumer.commit({TopicPartition(topic, 0): OffsetAndMetadata(1)})
            assert not await consumer.poll(0)

    asyncio.run(main())


def test_listeners_that_are_coroutines_are_awaited_before_anything_is_read(servers: str) -> None:
    topic = new_topic(servers, 2)
    produce(servers, topic, 10)
    told: Counter[str] = Counter()

    class Listener(ConsumerRebalanceListener):
        async def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:  # type: ignore[override]
            with pytest.raises(IllegalStateError, match="listener"):
                await consumer.poll(0)
            for tp in partitions:
                consumer.core.seek(tp, OffsetAndMetadata(1))
                assert await consumer.position(tp) == 1
            told["assigned"] += 1

        async def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:  # type: ignore[override]
            await consumer.commit()
            told["revoked"] += 1

    consumer = reader(servers)

    async def main() -> None:
        consumer.subscribe([topic], Listener())
        offsets: list[int] = []
        async with consumer:
            while len(offsets) < 8:
                offsets.extend(record.offset for record in await consumer.poll(30_000))
        assert 0 not in offsets

    asyncio.run(main())
    assert told == {"assigned": 1, "revoked": 1}
