"""Rounds in which a broker is killed in the middle of its work, and what it has kept is looked at."""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from harness.broker.ledger import Ledger
from harness.broker.mortal import MortalBroker
from harness.topics import new_topic
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient
from kclient.consumer import KafkaConsumer
from kclient.errors import KafkaError
from kclient.producer import KafkaProducer, RecordMetadata

PARTITIONS = 3

BROKER = {
    "log.segment.bytes": "6000",
    "log.index.interval.bytes": "300",
    "log.flush.offset.checkpoint.interval.ms": "40",
    "log.flush.start.offset.checkpoint.interval.ms": "40",
    "replica.high.watermark.checkpoint.interval.ms": "40",
    "log.flush.scheduler.interval.ms": "20",
    "log.retention.check.interval.ms": "20",
    "log.cleaner.backoff.ms": "5",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.segment.delete.delay.ms": "10",
    "metadata.log.max.record.bytes.between.snapshots": "3000",
}
"""Settings with which all that a broker does now and then is done all the time."""

_PRODUCER = {
    "linger.ms": 1,
    "batch.size": 600,
    "max.request.size": 5000,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 100,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 100,
    "request.timeout.ms": 10_000,
}
_PER_S = 300
_CLOSE_S = 60.0
_ALL_EVERY = 20


class _Writer(threading.Thread):
    """Writes numbered records to the partitions of a ledger's topic in turn, until it is stopped."""

    def __init__(self, servers: str, ledger: Ledger, **settings: object) -> None:
        super().__init__(name=f"writer-{ledger.topic}", daemon=True)
        self.failed: list[str] = []
        self._settings = {"bootstrap.servers": servers, **_PRODUCER, **settings}
        self._ledger = ledger
        self._stopping = threading.Event()
        self.start()

    def run(self) -> None:
        with KafkaProducer(self._settings) as producer:
            number = 0
            while not self._stopping.wait(1 / _PER_S):
                self._send(producer, number)
                number += 1

    def stop(self) -> None:
        """Deliver the rest."""
        self._stopping.set()
        self.join(_CLOSE_S)
        assert not self.is_alive(), f"{self.name} did not close in time"

    def _send(self, producer: KafkaProducer[bytes, bytes], number: int) -> None:
        key, value = b"k%d" % (number % 20), b"%d" % number + b" " * (number % 50)

        def delivered(metadata: RecordMetadata, error: KafkaError | None) -> None:
            if error is None:
                self._ledger.acked(metadata, key, value)
            else:
                self.failed.append(f"failed: {value!r}: {error}")

        producer.send(
            self._ledger.topic, value, key=key, partition=number % PARTITIONS, on_delivery=delivered
        )


class _TopicChurn(threading.Thread):
    """Makes topics and deletes them, and remembers which there must be."""

    def __init__(self, servers: str) -> None:
        super().__init__(name="topic-churn", daemon=True)
        self.there: set[str] = set()
        self.gone: set[str] = set()
        self._servers = servers
        self._stopping = threading.Event()
        self.start()

    def run(self) -> None:
        with KafkaAdminClient(bootstrap_servers=self._servers, retries=0) as admin:
            while not self._stopping.wait(0.05):
                name = f"churn-{uuid.uuid4().hex[:8]}"
                if self._done(lambda name=name: admin.create_topics([name], timeout_ms=5000)):  # type: ignore[misc]
                    self.there.add(name)
                if len(self.there) > 3:
                    name = self.there.pop()
                    if self._done(lambda name=name: admin.delete_topics([name], timeout_ms=5000)):  # type: ignore[misc]
                        self.gone.add(name)

    def stop(self) -> None:
        """End."""
        self._stopping.set()
        self.join(_CLOSE_S)
        assert not self.is_alive(), "the admin client did not end in time"

    @staticmethod
    def _done(call: Callable[[], object]) -> bool:
        try:
            call()
        except KafkaError:
            return False  # it may be done all the same
        return True


def kill_again_and_again(
    directory: Path, chance: random.Random, *, rounds: int, until: float = float("inf")
) -> tuple[list[str], str]:
    """Kill a broker, twice a round, before or in the middle of an operation on files or at any moment.

    Ends after so many rounds, or at `until` on the monotonic clock. Returns what was wrong, and what was done.
    """
    deaths = in_starts = done = 0
    with ExitStack() as stack:
        broker = stack.enter_context(MortalBroker(directory, **BROKER))
        servers = broker.bootstrap_servers
        ledgers = {
            "idempotent": Ledger(new_topic(servers, PARTITIONS, flush_messages="7")),
            "plain": Ledger(new_topic(servers, PARTITIONS), once=False),
            "compacted": Ledger(new_topic(servers, PARTITIONS, cleanup_policy="compact"), compacted=True),
            "retained": Ledger(new_topic(servers, PARTITIONS, retention_bytes="15000")),
        }
        writers = [
            _Writer(
                servers,
                ledger,
                **(
                    {"enable.idempotence": False, "max.in.flight.requests.per.connection": 1}
                    if name == "plain"
                    else {}
                ),
            )
            for name, ledger in ledgers.items()
        ]
        churn = _TopicChurn(servers)
        try:
            while done < rounds and time.monotonic() < until:
                broker.kill()
                broker.set("kclient.ack.policy", chance.choice(("none", "batch", "always")))
                operations = int(2 ** chance.uniform(2, 11)) * chance.choice((1, -1, -1))
                if broker.start_mortal(operations, chance.randrange(1 << 30)):
                    deaths += broker.dies_within(chance.uniform(0.1, 1.5))
                    broker.kill()
                else:
                    in_starts += 1
                there, gone = set(churn.there), set(churn.gone)
                broker.start()
                before = [ledger.count for ledger in ledgers.values()]
                _look(servers, ledgers, all_of_it=done % _ALL_EVERY == _ALL_EVERY - 1)
                _look_for_topics(servers, churn, there, gone, next(iter(ledgers.values())).problems)
                wait_until(
                    lambda: all(l.count > n for l, n in zip(ledgers.values(), before, strict=True)),  # noqa: B023, E741
                    _CLOSE_S,
                    "new records being acknowledged",
                )
                done += 1
                if any(ledger.problems for ledger in ledgers.values()):
                    break
        finally:
            churn.stop()
            for writer in writers:
                writer.stop()
        _look(servers, ledgers, all_of_it=True)
    problems = [problem for ledger in ledgers.values() for problem in ledger.problems]
    problems += [failed for writer in writers for failed in writer.failed]
    acked = {name: ledger.count for name, ledger in ledgers.items()}
    return problems, (
        f"{done} rounds: {deaths} deaths in an operation, {in_starts} while starting; acknowledged {acked}, "
        f"looked at {sum(ledger.looked_at for ledger in ledgers.values())}, "
        f"{len(churn.gone)} topics deleted"
    )


def _look(servers: str, ledgers: dict[str, Ledger], *, all_of_it: bool) -> None:
    settings = {"bootstrap.servers": servers, "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    with KafkaConsumer(settings) as consumer:
        for ledger in ledgers.values():
            ledger.look(consumer, all_of_it=all_of_it)


def _look_for_topics(
    servers: str, churn: _TopicChurn, there: set[str], gone: set[str], problems: list[str]
) -> None:
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        listed = set(admin.list_topics())
    # Some of those that were there are being deleted by now.
    lost = (there & churn.there) - listed
    if lost:
        problems.append(f"topics lost: {sorted(lost)}")
    if gone & listed:
        problems.append(f"topics came back: {sorted(gone & listed)}")
