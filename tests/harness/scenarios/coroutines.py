"""Producers and consumers as coroutines of one asyncio loop."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter

from harness.asyncio_faces import Consumer, Producer
from harness.topics import new_topic
from kclient.common.topic_partition import TopicPartition

_COUNT = 600
_DEADLINE_S = 60.0


def members_read_and_commit_what_coroutines_send(servers: str) -> None:
    """Have three consumers of one group share what a producer sends meanwhile; each has its I/O thread alone."""
    topic = new_topic(servers, 4)
    values: Counter[bytes | None] = Counter()
    threads: set[str] = set()

    def member(number: int) -> Consumer:
        return Consumer(
            bootstrap_servers=servers,
            client_id=f"face-{number}",
            group_id=topic,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )

    async def main() -> None:
        joined, read_all = Gate(3), Gate(3)

        async def read(number: int) -> int:
            share = 0
            async with member(number) as consumer:
                consumer.subscribe([topic])
                while values.total() < _COUNT:
                    records = await consumer.poll(100)
                    values.update(record.value for record in records)
                    share += len(records)
                    threads.update(thread.name for thread in threading.enumerate() if "face" in thread.name)
                    if records:
                        await consumer.commit()
                    # Each has one or two partitions as soon as all are there.
                    if 0 < len(consumer.core.assigned.partitions()) < 3:
                        joined.enter(number)
                    await asyncio.sleep(0)  # a poll that finds records does not wait
                read_all.enter(number)
                await read_all.opened.wait()  # who leaves earlier has the others rebalance
            return share

        async def send() -> None:
            async with Producer(bootstrap_servers=servers, client_id="face-p", linger_ms=2) as producer:
                await joined.opened.wait()
                for number in range(_COUNT):
                    await producer.send(topic, b"%d" % number, b"k%d" % number)
                    if number % 20 == 0:
                        await asyncio.sleep(0.01)
                await producer.flush()

        reading = asyncio.gather(*(read(number) for number in range(3)))
        _, shares = await asyncio.wait_for(asyncio.gather(send(), reading), _DEADLINE_S)
        assert all(shares)
        async with member(9) as consumer:
            committed = await consumer.committed(*(TopicPartition(topic, number) for number in range(4)))
        assert sum(offset.offset for offset in committed.values() if offset) == _COUNT

    asyncio.run(main())
    assert values == Counter(b"%d" % number for number in range(_COUNT))
    assert len(threads) == 4, "the I/O threads alone"


class Gate:
    """Opens when so many have come."""

    def __init__(self, count: int) -> None:
        self.opened = asyncio.Event()
        self._count = count
        self._come: set[int] = set()

    def enter(self, who: int) -> None:
        self._come.add(who)
        if len(self._come) == self._count:
            self.opened.set()
