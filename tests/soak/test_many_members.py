"""A hundred members that share a thousand partitions cooperatively: what does not move never stops."""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.broker.process import BrokerProcess
from harness.consumer.owners import Owners
from harness.topics import new_topic
from harness.waiting import wait_until
from kclient import KafkaConsumer, KafkaProducer, TopicPartition
from kclient.consumer.internals.coordinator.classic_membership import ClassicMembership
from kclient.consumer.internals.coordinator.member_state import MemberState

_MEMBERS = 100
_PARTITIONS = 1000
_POLLING = 8
_SETTLE_S = 240


class Members:
    """Consumers of one group, each polled by one of a few threads, but for `by_hand`."""

    def __init__(self, servers: str, topic: str, stack: ExitStack) -> None:
        self.owners = Owners()
        self.read: Counter[tuple[int, int]] = Counter()
        self.errors: list[BaseException] = []
        self.by_hand: list[KafkaConsumer[bytes, bytes]] = []
        self._servers = servers
        self._topic = topic
        self._stack = stack
        self._stopping = threading.Event()
        self._shares: list[list[KafkaConsumer[bytes, bytes]]] = [[] for _ in range(_POLLING)]
        self._threads = [threading.Thread(target=self._poll, args=(share,)) for share in self._shares]
        stack.callback(self._close)
        for thread in self._threads:
            thread.start()

    def join(self, number: int, *, by_hand: bool = False) -> None:
        """Have one more join."""
        consumer: KafkaConsumer[bytes, bytes] = KafkaConsumer(
            bootstrap_servers=self._servers,
            group_id="many",
            client_id=f"member-{number}",
            partition_assignment_strategy=["cooperative-sticky"],
            auto_offset_reset="earliest",
            session_timeout_ms=60_000,
            heartbeat_interval_ms=1000,
        )
        consumer.subscribe([self._topic], self.owners.listener(f"member-{number}"))
        (self.by_hand if by_hand else self._shares[number % _POLLING]).append(consumer)

    def poll(self, consumer: KafkaConsumer[bytes, bytes]) -> None:
        """Read what there is."""
        for record in consumer.poll(0):
            self.read[record.partition, record.offset] += 1

    def joining(self) -> int:
        """Return the number of members that have joined and wait for others."""
        members = [consumer._core.membership for share in self._shares for consumer in share]
        states = [each.state for each in members if isinstance(each, ClassicMembership)]
        return states.count(MemberState.JOINING)

    def _poll(self, consumers: list[KafkaConsumer[bytes, bytes]]) -> None:
        try:
            while not self._stopping.wait(0.02):
                for consumer in list(consumers):
                    self.poll(consumer)
        except BaseException as error:
            self.errors.append(error)

    def _close(self) -> None:
        self._stopping.set()
        for thread in self._threads:
            thread.join(60)
        for share in (*self._shares, self.by_hand):
            for consumer in share:
                consumer.close(0)

    def shares(self) -> list[int]:
        """Return the numbers of partitions that members have, the fewest first."""
        return sorted(Counter(dict(self.owners.now).values()).values())


@pytest.mark.soak
@pytest.mark.timeout(600)
def test_partitions_that_do_not_move_never_stop(tmp_path: Path) -> None:
    with BrokerProcess(tmp_path) as broker, ExitStack() as stack:
        servers = broker.bootstrap_servers
        topic = new_topic(servers, _PARTITIONS)
        members = Members(servers, topic, stack)
        members.join(0, by_hand=True)
        for number in range(1, _MEMBERS):
            members.join(number)
        slow = members.by_hand[0]

        def shared(fewest: int, count: int) -> bool:
            members.poll(slow)
            shares = members.shares()
            return len(shares) == count and shares[0] >= fewest

        wait_until(lambda: shared(10, _MEMBERS), _SETTLE_S, "ten partitions each")
        had = dict(members.owners.now)
        heard = len(members.owners.calls)
        producer = stack.enter_context(KafkaProducer(bootstrap_servers=servers))
        members.join(_MEMBERS)
        # One member does not poll, and so does not take what it is given. The others give up what the new one gets,
        # join once more, and wait for it.
        membership = slow._core.membership
        assert isinstance(membership, ClassicMembership)

        def others_wait() -> bool:
            return membership.state is MemberState.ASSIGNING and members.joining() == _MEMBERS

        wait_until(others_wait, _SETTLE_S, "all others joining")
        reading = {tp.partition for tp, name in members.owners.now.items() if name != "member-0"}
        assert len(reading) > _PARTITIONS - 30
        sent = [producer.send(topic, b"meanwhile", partition=number) for number in reading]
        wanted = {(each.result(60).partition, each.result().offset) for each in sent}
        wait_until(lambda: wanted <= members.read.keys(), _SETTLE_S, "records while the group rebalances")
        assert others_wait()

        def sent_and_shared() -> bool:
            for partition in range(_PARTITIONS):
                producer.send(topic, b"during", partition=partition)
            return shared(9, _MEMBERS + 1)

        wait_until(sent_and_shared, _SETTLE_S, "a share of the new member")
        producer.flush()
        ends = {tp.partition: end for tp, end in _ends(servers, topic).items()}

        def read() -> bool:
            members.poll(slow)
            return len(members.read) == sum(ends.values())

        wait_until(read, _SETTLE_S, "every record")
        calls = members.owners.calls[heard:]
        moved = {tp for _, kind, given in calls if kind == "revoked" for tp in given}
        now = dict(members.owners.now)
        assert members.errors == []
        assert members.owners.doubles == []
        assert not [call for call in calls if call[1] == "lost"]
        # The ninth or tenth part of nothing but what the new one gets.
        assert len(moved) <= 10
        assert moved == {tp for tp in had if now[tp] != had[tp]}
        assert set(members.read.values()) == {1}


def _ends(servers: str, topic: str) -> dict[TopicPartition, int]:
    with KafkaConsumer(bootstrap_servers=servers) as reader:
        return reader.end_offsets([TopicPartition(topic, number) for number in range(_PARTITIONS)])
