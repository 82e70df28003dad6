"""Rebalance listeners and poll loops, by each protocol of groups: what they may do, and what comes of it.

A case gets a `Table`. The embedded broker has the classic protocol, eager and cooperative; a real Kafka has all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack
from typing import Any

import pytest

from harness.broker.wire import Wire
from harness.topics import end_offsets, new_topic, produce
from harness.waiting import wait_until
from kclient import ConsumerRebalanceListener, KafkaConsumer, TopicPartition
from kclient.admin import KafkaAdminClient, NewTopic
from kclient.errors import (
    CommitFailedError,
    FencedInstanceIdError,
    IllegalStateError,
    KafkaError,
    WakeupError,
)
from kclient.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic

_PARTITIONS = 4
_WAIT_S = 40
_LONG_S = 1.0
_CLASSIC = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 100}

FACES: Mapping[str, Mapping[str, object]] = {
    "eager": {"partition.assignment.strategy": ["range"], **_CLASSIC},
    "cooperative": {"partition.assignment.strategy": ["cooperative-sticky"], **_CLASSIC},
    "consumer": {"group.protocol": "consumer"},
}
"""Settings of members, by the way in which their group rebalances."""


class Listener(ConsumerRebalanceListener):
    """Calls what a case wants to happen, and writes down what it has heard of."""

    def __init__(self, **does: Callable[[Collection[TopicPartition]], object]) -> None:
        self.heard: list[tuple[str, frozenset[TopicPartition]]] = []
        self._does = does

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self._hear("assigned", partitions)

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._hear("revoked", partitions)

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        self._hear("lost", partitions)

    def _hear(self, call: str, partitions: Collection[TopicPartition]) -> None:
        if partitions:
            self.heard.append((call, frozenset(partitions)))
            self._does.get(call, lambda _: None)(partitions)

    def calls(self) -> list[str]:
        """Return the calls about any partitions, without these."""
        return [call for call, _ in self.heard]


class Table:
    """Consumers of one group, which one thread polls in turns."""

    def __init__(self, servers: str, face: str, stack: ExitStack) -> None:
        self.servers = servers
        self.face = face
        self.topic = new_topic(servers, _PARTITIONS)
        self.read: dict[str, list[tuple[int, int]]] = {}
        self.consumers: dict[str, KafkaConsumer[bytes, bytes]] = {}
        self._stack = stack

    def join(
        self, name: str, listener: Listener | None = None, **settings: object
    ) -> KafkaConsumer[bytes, bytes]:
        """Have a consumer subscribe; it joins when it is polled."""
        consumer: KafkaConsumer[bytes, bytes] = KafkaConsumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": f"g-{self.topic}",
                "client.id": name,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **FACES[self.face],
                **settings,
            }
        )
        self._stack.callback(consumer.close, 5000)
        consumer.subscribe([self.topic], listener)
        self.consumers[name] = consumer
        self.read[name] = []
        return consumer

    def leave(self, name: str) -> None:
        """Have a consumer close."""
        self.consumers.pop(name).close()

    def poll(self, until: Callable[[], object], what: str, names: Collection[str] | None = None) -> None:
        """Poll all in turns, or those of `names`, until something has come true."""

        def polled() -> bool:
            for name, consumer in list(self.consumers.items()):
                if names is None or name in names:
                    self.read[name] += [(each.partition, each.offset) for each in consumer.poll(20)]
            return bool(until())

        wait_until(polled, _WAIT_S, what)

    def shares(self, *counts: int) -> Callable[[], bool]:
        """Return a condition: the consumers have so many partitions, the fewest first."""
        return lambda: sorted(len(each.assignment()) for each in self.consumers.values()) == sorted(counts)

    def tp(self, partition: int) -> TopicPartition:
        """A partition of the topic."""
        return TopicPartition(self.topic, partition)


def commits_while_partitions_are_revoked(table: Table) -> None:
    """Offsets committed in on_partitions_revoked are where the next owner begins."""
    produce(table.servers, table.topic, 40)
    listener = Listener(
        revoked=lambda partitions: first.commit_sync({tp: first.position(tp) for tp in partitions})
    )
    first = table.join("a", listener)
    table.poll(lambda: len(table.read["a"]) == 40, "all records")
    table.join("b")
    table.poll(table.shares(2, 2), "two shares")
    assert "revoked" in listener.calls()
    produce(table.servers, table.topic, 8)
    table.poll(lambda: sum(map(len, table.read.values())) >= 48, "the rest")
    both = table.read["a"] + table.read["b"]
    given_up = {tp.partition for call, given in listener.heard if call == "revoked" for tp in given}
    kept = [place for place in both if place[0] not in given_up or table.face != "eager"]
    assert len(kept) == len(set(kept))


def seeks_and_pauses_while_partitions_are_assigned(table: Table) -> None:
    """A position that is sought and a pause in on_partitions_assigned hold from the first record on."""
    produce(table.servers, table.topic, 200)
    ends = end_offsets(table.servers, table.topic)
    assert min(ends.values()) > 8

    def assigned(partitions: Collection[TopicPartition]) -> None:
        for tp in partitions:
            consumer.seek(tp, 7)
        consumer.pause([table.tp(0)])

    consumer = table.join("a", Listener(assigned=assigned))
    wanted = {(tp.partition, offset) for tp, end in ends.items() for offset in range(7, end)}
    others = {place for place in wanted if place[0] != 0}
    table.poll(lambda: set(table.read["a"]) == others, "what was not paused")
    consumer.resume([table.tp(0)])
    table.poll(lambda: set(table.read["a"]) == wanted, "what was paused")


def is_woken_up_in_a_listener(table: Table) -> None:
    """A wakeup from within ends the poll, and nothing else."""
    consumer = table.join("a", Listener(assigned=lambda _: consumer.wakeup()))
    with pytest.raises(WakeupError):
        table.poll(lambda: False, "the wakeup")
    table.poll(table.shares(_PARTITIONS), "all partitions")


def raises_in_each_call(table: Table) -> None:
    """An error of the listener comes out of poll, and the member goes on as if there had been none."""
    failing: list[str] = ["assigned", "revoked"]

    def fail(call: str) -> Callable[[object], None]:
        def do(_: object) -> None:
            if call in failing:
                failing.remove(call)
                raise ValueError(f"in {call}")

        return do

    table.join("a", Listener(assigned=fail("assigned"), revoked=fail("revoked")))
    with pytest.raises(ValueError, match="in assigned"):
        table.poll(lambda: False, "the error")
    table.poll(table.shares(_PARTITIONS), "all partitions")
    table.join("b")
    with pytest.raises(ValueError, match="in revoked"):
        table.poll(lambda: False, "the other error")
    table.poll(table.shares(2, 2), "two shares")
    assert failing == []


def calls_what_it_must_not(table: Table) -> None:
    """A poll and a close from within are refused, and harm nothing."""
    refused: list[str] = []

    def assigned(_: object) -> None:
        for call in (lambda: consumer.poll(0), consumer.close):
            with pytest.raises(IllegalStateError) as caught:
                call()
            refused.append(str(caught.value))

    consumer = table.join("a", Listener(assigned=assigned))
    table.poll(table.shares(_PARTITIONS), "all partitions")
    assert len(refused) == 2


def subscribes_to_another_set_in_mid_rebalance(table: Table) -> None:
    """A subscription that changes while the group rebalances is the one that counts in the end."""
    other = new_topic(table.servers, 2)
    first = table.join("a")
    table.poll(table.shares(_PARTITIONS), "all partitions")
    second = table.join("b")
    table.poll(lambda: True, "a turn, in which the second one joins")
    first.subscribe([table.topic, other])
    second.subscribe([other])

    def settled() -> bool:
        a, b = first.assignment(), second.assignment()
        everything = {table.tp(number) for number in range(_PARTITIONS)} | {
            TopicPartition(other, n) for n in (0, 1)
        }
        return a | b == everything and not a & b and {tp.topic for tp in b} == {other}

    table.poll(settled, "what is subscribed to at last")


def the_last_member_leaves(table: Table) -> None:
    """A group without members keeps its offsets, and the next member begins there."""
    produce(table.servers, table.topic, 20)
    first = table.join("a")
    table.poll(lambda: len(table.read["a"]) == 20, "all records")
    first.commit_sync()
    table.leave("a")
    produce(table.servers, table.topic, 4)
    table.join("b")
    table.poll(lambda: len(table.read["b"]) == 4, "the new records")
    assert not set(table.read["a"]) & set(table.read["b"])


def is_too_slow_for_the_group(table: Table) -> None:
    """A member that does not poll for max.poll.interval.ms leaves; others go on; it hears of its loss, joins again."""
    produce(table.servers, table.topic, 40)
    listener = Listener()
    slow = table.join("slow", listener, **{"max.poll.interval.ms": 1500})
    table.poll(lambda: len(table.read["slow"]) == 40, "all records")
    positions = {table.tp(number): slow.position(table.tp(number)) for number in range(_PARTITIONS)}
    table.join("b")
    table.poll(lambda: len(table.consumers["b"].assignment()) == _PARTITIONS, "the share of who polls", {"b"})
    # Nothing was committed, so the other one begins where the first one did.
    table.poll(lambda: len(table.read["b"]) == 40, "all records once more", {"b"})
    with pytest.raises(CommitFailedError):
        slow.commit_sync(positions)
    table.poll(table.shares(2, 2), "two shares again")
    assert "lost" in listener.calls()


def takes_its_time_in_a_listener(table: Table) -> None:
    """A call that takes long costs no place in the group, and nobody has the partitions before it is over."""
    ended: dict[str, float] = {}

    def revoked(partitions: Collection[TopicPartition]) -> None:
        until = time.monotonic() + _LONG_S
        wait_until(lambda: time.monotonic() > until, what="the end of a long call")
        ended.update(first=time.monotonic())

    given: list[float] = []
    listener = Listener(revoked=revoked)
    table.join("a", listener)
    table.poll(table.shares(_PARTITIONS), "all partitions")
    table.join("b", Listener(assigned=lambda _: given.append(time.monotonic())))
    table.poll(table.shares(2, 2), "two shares")
    assert ended["first"] < given[0]
    assert "lost" not in listener.calls()


def reads_topics_that_grow_go_and_come_again(table: Table) -> None:
    """New partitions are read, a topic that goes is given up, and one created again is read from its beginning."""
    grows, goes = table.topic, new_topic(table.servers, 2)
    consumer = table.join("a", Listener(), **{"metadata.max.age.ms": 300, "allow.auto.create.topics": False})
    consumer.subscribe([grows, goes])
    table.poll(table.shares(_PARTITIONS + 2), "all partitions")
    with KafkaAdminClient(bootstrap_servers=table.servers) as admin:
        grown = CreatePartitionsTopic(name=grows, count=_PARTITIONS + 1, assignments=None)
        with Wire(table.servers) as wire:
            answer = wire.ask(CreatePartitionsRequest(topics=[grown], timeout_ms=10_000), 3)
            assert not answer.results[0].error_code
        table.poll(table.shares(_PARTITIONS + 3), "the new partition")
        produce(table.servers, goes, 10)
        table.poll(lambda: len(table.read["a"]) == 10, "its records")
        admin.delete_topics([goes])
        table.poll(table.shares(_PARTITIONS + 1), "the end of the topic")
        wait_until(lambda: goes not in admin.list_topics(), _WAIT_S, "its end everywhere")
        admin.create_topics([NewTopic(goes, 1, 1)])
    table.poll(table.shares(_PARTITIONS + 2), "the topic again")
    produce(table.servers, goes, 3)
    table.poll(lambda: len(table.read["a"]) == 13, "its new records")
    assert table.read["a"][-3:] == [(0, 0), (0, 1), (0, 2)]


def another_one_takes_its_name(table: Table) -> None:
    """Of two members with one group.instance.id one is refused, in every call from then on."""
    table.join("a", **{"group.instance.id": "seat"})
    table.poll(table.shares(_PARTITIONS), "all partitions")
    second = table.join("b", **{"group.instance.id": "seat"})
    if table.face == "consumer":  # where the newer one is refused as long as the older one lives
        with pytest.raises(KafkaError, match="seat"):
            table.poll(lambda: False, "the refusal", {"b"})
        return
    table.poll(lambda: len(second.assignment()) == _PARTITIONS, "the seat", {"b"})
    for _ in range(2):
        with pytest.raises(FencedInstanceIdError):
            table.poll(lambda: False, "the refusal", {"a"})


CASES: Mapping[str, Callable[[Table], Any]] = {
    case.__name__: case
    for case in (
        commits_while_partitions_are_revoked,
        seeks_and_pauses_while_partitions_are_assigned,
        is_woken_up_in_a_listener,
        raises_in_each_call,
        calls_what_it_must_not,
        subscribes_to_another_set_in_mid_rebalance,
        the_last_member_leaves,
        is_too_slow_for_the_group,
        takes_its_time_in_a_listener,
        reads_topics_that_grow_go_and_come_again,
        another_one_takes_its_name,
    )
}
"""The cases by name."""
