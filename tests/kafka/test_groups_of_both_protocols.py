"""Members of several clients and of both protocols in one group on a real broker."""

from __future__ import annotations

import importlib.util
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.consumer.group import Group, values
from harness.programs import environment
from harness.real_kafka.broker import RealKafka
from harness.real_kafka.node import SHORT_LIVED, classpath
from harness.topics import DEADLINE_S, new_topic
from harness.waiting import wait_until
from kclient.producer import KafkaProducer


@pytest.fixture
def group(kafka: RealKafka) -> Iterator[Group]:
    """A group of a topic with six partitions, without members."""
    with ExitStack() as stack:
        yield Group(kafka.bootstrap_servers, new_topic(kafka.bootstrap_servers, 6), stack)


class Load(threading.Thread):
    """Sends numbers, each once, until told to stop; in bursts, between which a member finds the time to leave."""

    def __init__(self, servers: str, topic: str) -> None:
        super().__init__(daemon=True)
        self.sent = 0
        self._servers = servers
        self._topic = topic
        self._stopping = threading.Event()
        self.start()

    def run(self) -> None:
        with KafkaProducer(bootstrap_servers=self._servers) as producer:
            while not self._stopping.wait(0.25):
                for _ in range(30):
                    producer.send(self._topic, b"%d" % self.sent, partition=self.sent % 6)
                    self.sent += 1

    def stop(self) -> set[bytes]:
        """Return what was sent."""
        self._stopping.set()
        self.join(DEADLINE_S)
        return {b"%d" % number for number in range(self.sent)}


@contextmanager
def load(group: Group) -> Iterator[Load]:
    running = Load(group.servers, group.topic)
    try:
        yield running
    finally:
        running.stop()


class JavaConsole:
    """Java's console consumer, whose lines are what it read."""

    def __init__(self, group: Group, directory: Path) -> None:
        self._output = directory / "console.txt"
        command = [
            *("java", *SHORT_LIVED, "-Xmx128m", "-cp", classpath()),
            "org.apache.kafka.tools.consumer.ConsoleConsumer",
            *("--bootstrap-server", group.servers, "--topic", group.topic, "--group", group.id),
            *("--consumer-property", "group.protocol=consumer", "--from-beginning"),
        ]
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(command, stdout=output, stderr=subprocess.DEVNULL)

    def values(self) -> Counter[bytes]:
        return Counter(self._output.read_bytes().split())

    def stop(self) -> None:
        """Have it leave the group."""
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(30)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(30)


class Librdkafka(threading.Thread):
    """A consumer of confluent-kafka, in the same group."""

    def __init__(self, group: Group) -> None:
        super().__init__(daemon=True)
        self.read: Counter[bytes] = Counter()
        self.held = 0
        self._group = group
        self._stopping = threading.Event()
        self.start()

    def run(self) -> None:
        import confluent_kafka

        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": self._group.servers,
                "group.id": self._group.id,
                "group.protocol": "consumer",
                "auto.offset.reset": "earliest",
            }
        )
        consumer.subscribe([self._group.topic])
        while not self._stopping.is_set():
            message = consumer.poll(0.1)
            self.held = len(consumer.assignment())
            if message is not None and message.error() is None:
                self.read[message.value()] += 1
        consumer.close()

    def stop(self) -> None:
        """Have it leave the group."""
        self._stopping.set()
        self.join(DEADLINE_S)


@pytest.mark.peers
@pytest.mark.heavy
@pytest.mark.skipif(
    importlib.util.find_spec("confluent_kafka") is None, reason="confluent-kafka is not installed"
)
def test_members_of_java_librdkafka_and_kclient_share_a_topic(group: Group, tmp_path: Path) -> None:
    with ExitStack() as stack:
        running = stack.enter_context(load(group))
        first = group.join("a")
        group.has_shared(6)
        java = JavaConsole(group, tmp_path)
        stack.callback(java.kill)
        wait_until(lambda: len(group.owners.now) == 3 and java.values(), DEADLINE_S, "the share of Java")
        librdkafka = Librdkafka(group)
        stack.callback(librdkafka.stop)
        wait_until(
            lambda: librdkafka.held == 2 and len(group.owners.now) == 2, DEADLINE_S, "librdkafka's share"
        )
        wait_until(lambda: librdkafka.read, DEADLINE_S, "records of librdkafka")
        second = group.join("b")
        wait_until(lambda: set(group.owners.now.values()) == {"a", "b"}, DEADLINE_S, "four shares")
        java.stop()
        librdkafka.stop()
        group.has_shared(3, 3)
        sent = running.stop()

        def read() -> Counter[bytes]:
            return values(first, second) + java.values() + librdkafka.read

        wait_until(lambda: read().keys() >= sent, DEADLINE_S, "all records")
    assert group.owners.doubles == []
    assert {value for value, count in read().items() if count > 1} == set()


@pytest.mark.parametrize("cooperative", [False, True])
def test_a_group_moves_to_the_consumer_protocol_and_back_under_load(group: Group, cooperative: bool) -> None:
    assignor = "cooperative-sticky" if cooperative else "range"
    classic: dict[str, Any] = {"group.protocol": "classic", "partition.assignment.strategy": [assignor]}
    with load(group) as running:
        members = [group.join("a", **classic), group.join("b", **classic)]
        group.has_shared(3, 3)
        for there, back in (({}, "consumer"), (classic, "classic")):
            for name in "ab":
                before = sum(len(member.records) for member in members)
                group.leave(name)
                group.has_shared(6)
                members.append(group.join(name, **there))
                group.has_shared(3, 3)
                wait_until(
                    lambda: sum(len(member.records) for member in members) > before + 100,  # noqa: B023
                    DEADLINE_S,
                    f"records on the way to {back}",
                )
        sent = running.stop()
        wait_until(lambda: values(*members).keys() >= sent, DEADLINE_S, "all records")
    assert group.owners.doubles == []
    assert not any(kind == "lost" for _, kind, _ in group.owners.calls)
    assert {value for value, count in values(*members).items() if count > 1} == set()


def test_two_bounces_lead_from_eager_to_cooperative_rebalancing_under_load(group: Group) -> None:
    names = "abc"

    def classic(*assignors: str) -> dict[str, Any]:
        return {"group.protocol": "classic", "partition.assignment.strategy": list(assignors)}

    with load(group) as running:
        members = [group.join(name, **classic("range")) for name in names]
        group.has_shared(2, 2, 2)
        for assignors in (("range", "cooperative-sticky"), ("cooperative-sticky",)):
            for name in names:
                group.leave(name)
                group.has_shared(3, 3)
                members.append(group.join(name, **classic(*assignors)))
                group.has_shared(2, 2, 2)
        had = {name: {tp for tp, owner in group.owners.now.items() if owner == name} for name in names}
        heard = len(group.owners.calls)
        members.append(group.join("d", **classic("cooperative-sticky")))
        group.has_shared(1, 1, 2, 2)
        # Now nobody gives up what stays.
        revoked = [
            (name, tp)
            for name, kind, given in group.owners.calls[heard:]
            if kind == "revoked"
            for tp in given
        ]
        assert len(revoked) == 1
        assert all(tp in had[name] for name, tp in revoked)
        sent = running.stop()
        wait_until(lambda: values(*members).keys() >= sent, DEADLINE_S, "all records")
    assert group.owners.doubles == []
    assert not any(kind == "lost" for _, kind, _ in group.owners.calls)
    assert {value for value, count in values(*members).items() if count > 1} == set()


@pytest.mark.parametrize("strategy", ["range", "sticky", "cooperative-sticky"])
def test_a_static_member_that_bounces_takes_nothing_from_live_members(group: Group, strategy: str) -> None:
    classic = {"group.protocol": "classic", "partition.assignment.strategy": [strategy]}
    for name in "abc":
        group.join(name, **classic, **{"group.instance.id": name})
    group.has_shared(2, 2, 2)
    had = dict(group.owners.now)
    heard = len(group.owners.calls)
    group.leave("b")
    group.join("b", **classic, **{"group.instance.id": "b"})
    group.has_shared(2, 2, 2)
    assert group.owners.now == had
    assert {name for name, _, _ in group.owners.calls[heard:]} == {"b"}


MEMBER = """
import sys
from kclient import ConsumerRebalanceListener, KafkaConsumer

servers, topic, group = sys.argv[1:]

class Tells(ConsumerRebalanceListener):
    def on_partitions_assigned(self, partitions):
        print("assigned", len(partitions), flush=True)

    def on_partitions_revoked(self, partitions):
        print("revoked", len(partitions), flush=True)

    def on_partitions_lost(self, partitions):
        print("lost", len(partitions), flush=True)

with KafkaConsumer(bootstrap_servers=servers, group_id=group, group_protocol="consumer") as consumer:
    consumer.subscribe([topic], Tells())
    while True:
        consumer.poll(100)
"""


class Process:
    """A member in a process of its own, which can be stopped and killed."""

    def __init__(self, group: Group, directory: Path) -> None:
        self._output = directory / "member.txt"
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-c", MEMBER, group.servers, group.topic, group.id],
                stdout=output,
                env=environment(),
            )

    def heard(self) -> list[str]:
        return self._output.read_text().splitlines()

    def signal(self, number: int) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait(30)


@pytest.mark.heavy
def test_a_member_that_is_stopped_loses_its_partitions_and_joins_again(group: Group, tmp_path: Path) -> None:
    group.join("a")
    group.has_shared(6)
    process = Process(group, tmp_path)
    try:
        wait_until(lambda: "assigned 3" in process.heard(), DEADLINE_S, "the share of the process")
        process.signal(signal.SIGSTOP)
        group.has_shared(6)  # when its session has ended
        process.signal(signal.SIGCONT)
        wait_until(lambda: "lost 3" in process.heard(), DEADLINE_S, "the loss")
        wait_until(lambda: process.heard()[-1] == "assigned 3", DEADLINE_S, "the share again")
        assert "revoked 3" not in process.heard()
        group.has_shared(3)
    finally:
        process.kill()
    group.has_shared(6)
