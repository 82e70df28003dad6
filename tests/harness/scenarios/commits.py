"""Commits of a consumer that ends, as scenarios for the embedded broker and a real one."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

from harness.network.proxy import FaultProxy
from harness.topics import new_topic, produce
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRebalanceListener, KafkaConsumer
from kclient.consumer.internals.coordinator.member_state import MemberState
from kclient.errors import KafkaError
from kclient.protocol.api_keys import ApiKeys

COUNT = 20
PER_POLL = 5


class Reading:
    """A topic with `COUNT` records in one partition, and a group of its own."""

    def __init__(self, servers: str) -> None:
        self.servers = servers
        self.topic = new_topic(servers, 1)
        self.tp = TopicPartition(self.topic, 0)
        self.group = f"g-{uuid.uuid4().hex[:8]}"
        produce(servers, self.topic, COUNT)

    def consumer(self, way: str = "subscribed", **settings: object) -> KafkaConsumer[bytes, bytes]:
        """A consumer of the topic: subscribed (by either protocol), static or assigned.

        It commits only at its end, if by itself.
        """
        consumer: KafkaConsumer[bytes, bytes] = KafkaConsumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": self.group,
                "auto.offset.reset": "earliest",
                "auto.commit.interval.ms": 600_000,
                "max.poll.records": PER_POLL,
                **({"group.instance.id": self.group} if way == "static" else {}),
                **({"group.protocol": "consumer"} if way == "consumer protocol" else {}),
                **settings,
            }
        )
        if way == "assigned":
            consumer.assign([self.tp])
        else:
            consumer.subscribe([self.topic])
        return consumer

    def committed(self) -> int | None:
        """Offsets that another consumer finds committed."""
        with KafkaConsumer(bootstrap_servers=self.servers, group_id=self.group) as reader:
            found = reader.committed([self.tp])[self.tp]
        return None if found is None else found.offset

    def members(self) -> int:
        with KafkaAdminClient(bootstrap_servers=self.servers) as admin:
            return len(admin.describe_groups([self.group])[self.group].members)


def poll(consumer: KafkaConsumer[bytes, bytes]) -> list[Any]:
    """The records of the next poll that has any."""
    found: list[Any] = []
    wait_until(lambda: found.extend(consumer.poll(500)) or found, 60, "records")
    return found


def commits_asked_for_before_the_end(servers: str, way: str, end: str) -> None:
    """commit_async() and then `end` (close or unsubscribe) at once, without a poll between."""
    reading = Reading(servers)
    heard: list[tuple[int, object]] = []
    consumer = reading.consumer(way, **{"enable.auto.commit": False})
    try:
        poll(consumer)
        for offset in range(1, PER_POLL + 1):
            consumer.commit_async(
                {reading.tp: offset},
                lambda offsets, error: heard.append((offsets[reading.tp].offset, error)),
            )
        getattr(consumer, end)()
        assert heard == [(offset, None) for offset in range(1, PER_POLL + 1)]
        assert reading.committed() == PER_POLL
        assert way != "subscribed" or reading.members() == 0
    finally:
        consumer.close()


def commits_that_are_never_answered(servers: str, proxy: FaultProxy) -> None:
    """commit_async(), whose answer is lost, and then close() with a timeout; `proxy` stands before the broker."""
    reading = Reading(servers)
    heard: list[KafkaError | None] = []
    settings = {"bootstrap.servers": proxy.bootstrap, "enable.auto.commit": False}
    with reading.consumer(**settings) as consumer:
        poll(consumer)
        lost = proxy.swallow(ApiKeys.OFFSET_COMMIT, times=-1)
        consumer.commit_async(on_commit=lambda _, error: heard.append(error))
        wait_until(lambda: lost.hits, what="the answer that is lost")
        consumer.commit_async(on_commit=lambda _, error: heard.append(error))
        started = time.monotonic()
        consumer.close(timeout_ms=700)
        assert time.monotonic() - started < 20  # request.timeout.ms is 30 s
    assert [error is None for error in heard] == [False, False]
    assert "may have been committed" in str(heard[0])
    wait_until(lambda: reading.members() == 0, 5, "the group without members")


class BlockError(Exception):
    """An error of the application's own code."""


def _poll_twice(consumer: KafkaConsumer[bytes, bytes]) -> None:
    poll(consumer)
    poll(consumer)


def _iterate(consumer: KafkaConsumer[bytes, bytes]) -> None:
    for record in consumer:
        if record.offset == 6:
            break


def _leave_by(error: type[BaseException], read: Callable[[Any], None]) -> Callable[[Any], None]:
    def leave(consumer: KafkaConsumer[bytes, bytes]) -> None:
        with suppress(error), consumer:
            read(consumer)
            raise error

    return leave


def _close(consumer: KafkaConsumer[bytes, bytes]) -> None:
    _poll_twice(consumer)
    consumer.close()


def _unsubscribe(consumer: KafkaConsumer[bytes, bytes]) -> None:
    _poll_twice(consumer)
    consumer.unsubscribe()


def _finally_close(consumer: KafkaConsumer[bytes, bytes]) -> None:
    with suppress(BlockError):
        try:
            _poll_twice(consumer)
            raise BlockError
        finally:
            consumer.close()


def _with(read: Callable[[Any], None]) -> Callable[[Any], None]:
    def leave(consumer: KafkaConsumer[bytes, bytes]) -> None:
        with consumer:
            read(consumer)

    return leave


ENDS: dict[str, tuple[Callable[[Any], None], int]] = {
    "close": (_close, 10),
    "unsubscribe": (_unsubscribe, 10),
    "finally close": (_finally_close, 10),
    "with": (_with(_poll_twice), 10),
    "with, left by an error": (_leave_by(BlockError, _poll_twice), 5),
    "with, left by Ctrl-C": (_leave_by(KeyboardInterrupt, _poll_twice), 5),
    "iteration, left by break": (_with(_iterate), 7),
    "iteration, left by an error": (_leave_by(BlockError, _iterate), 6),
}
"""Ways in which a consumer that commits by itself ends, and what is committed then."""


def automatic_commits_at_the_end(servers: str, way: str, end: str) -> None:
    """A consumer with enable.auto.commit ends in one of the `ENDS`."""
    reading = Reading(servers)
    consumer = reading.consumer(way)
    read, expected = ENDS[end]
    try:
        read(consumer)
        assert reading.committed() == expected
    finally:
        consumer.close()


def close_during_a_join_that_waits_for_others(servers: str) -> None:
    """One member does not poll, so that the group waits for it, and a second one leaves while it joins."""
    reading = Reading(servers)
    with reading.consumer() as first, reading.consumer() as second:
        poll(first)
        membership = second._core.membership
        assert membership is not None

        def joins() -> bool:
            second.poll(50)
            return membership.state is MemberState.JOINING and membership.generation.member_id != ""

        wait_until(joins, 30, "the second member in its join")
        assert not second.poll(300), "the group waits for the first one"
        started = time.monotonic()
        second.close()
        assert time.monotonic() - started < 20  # 30 s if it waits for the group
        wait_until(lambda: reading.members() == 1, 10, "the group without the second member")


class _Committing(ConsumerRebalanceListener):
    def __init__(self, consumer: KafkaConsumer[bytes, bytes]) -> None:
        self._consumer = consumer

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._consumer.commit_sync()


def close_in_a_cooperative_rebalance_that_waits_for_others(servers: str, automatic: bool) -> None:
    """A member has joined again, and reads on, while another one does not poll; then it closes."""
    reading = Reading(servers)
    settings = {
        "partition.assignment.strategy": ["cooperative-sticky"],
        "heartbeat.interval.ms": 200,
        "enable.auto.commit": automatic,
    }
    with reading.consumer(**settings) as first, reading.consumer(**settings) as second:
        if not automatic:
            first.subscribe([reading.topic], listener=_Committing(first))
        poll(first)
        joining, waiting = first._core.membership, second._core.membership
        assert joining is not None
        assert waiting is not None

        def polled(consumer: KafkaConsumer[bytes, bytes], membership: Any, state: MemberState) -> bool:
            consumer.poll(50)
            return membership.state is state

        wait_until(lambda: polled(second, waiting, MemberState.JOINING), 30, "a second member")
        # From here on the second one does not poll, and so does not take its share, not even of nothing.
        wait_until(lambda: polled(first, waiting, MemberState.ASSIGNING), 30, "its share")
        first.enforce_rebalance()
        wait_until(lambda: polled(first, joining, MemberState.JOINING), 30, "the first member joining again")
        first.seek(reading.tp, 7)
        assert poll(first)[-1].offset == 11
        assert joining.state is MemberState.JOINING
        started = time.monotonic()
        first.close()
        assert time.monotonic() - started < 20  # 30 s if it waits for the group
        assert reading.committed() == 12
