"""A bank: what is requested is booked exactly once, as a debit and a credit, which are seen both or not at all."""

from __future__ import annotations

import random
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping

import attrs

from harness.checker.log import HistoryLog
from harness.soak.recorded import write_poll
from harness.soak.transactional_load import Copier, Output
from harness.topics import end_offsets, partitions_of
from kclient import ConsumerRecord, KafkaConsumer, TopicPartition
from kclient.errors import KafkaTimeoutError

REQUESTS = "requests"
TRANSFERS = "transfers"
TELLERS = "tellers"
"""The group of those who book."""
PARTITIONS = 3
_ACCOUNTS = 12


@attrs.frozen
class Transfer:
    """An amount that goes from one account to another; their records have their partitions."""

    request: bytes
    debtor: int
    creditor: int
    amount: int

    @classmethod
    def of(cls, request: bytes) -> Transfer:
        """Return what a request asks for: it has only a name of its own, from which the rest follows."""
        rng = random.Random(request)
        debtor = rng.randrange(_ACCOUNTS)
        others = [account for account in range(_ACCOUNTS) if account % PARTITIONS != debtor % PARTITIONS]
        return cls(request, debtor, rng.choice(others), rng.randint(1, 1000))

    def outputs(self) -> list[Output]:
        """Return the debit and the credit."""
        return [
            Output(account % PARTITIONS, b"account-%d" % account, b"%s|%d" % (self.request, amount))
            for account, amount in ((self.debtor, -self.amount), (self.creditor, self.amount))
        ]


class Teller(Copier):
    """Books what is requested as a member of the group of tellers, in transactions."""

    def __init__(
        self, servers: str, name: str, rng: random.Random, history: HistoryLog, **settings: object
    ) -> None:
        super().__init__(servers, name, rng, history, REQUESTS, TRANSFERS, TELLERS, **settings)

    def _outputs(self, record: ConsumerRecord[bytes, bytes]) -> Iterable[Output]:
        assert record.value is not None
        return Transfer.of(record.value).outputs()


class Ledger:
    """Bookings as somebody who sees only what is committed has read them."""

    def __init__(self) -> None:
        self._booked: defaultdict[bytes, list[Output]] = defaultdict(list)
        self._sums: Counter[bytes] = Counter()
        self._unbalanced: set[bytes] = set()

    @property
    def booked(self) -> Mapping[bytes, list[Output]]:
        """The bookings for each request."""
        return self._booked

    def add(self, records: Iterable[ConsumerRecord[bytes, bytes]]) -> None:
        """Take bookings."""
        for record in records:
            assert record.value is not None
            request, amount, _ = record.value.split(b"|")
            self._booked[request].append(Output(record.partition, record.key, b"%s|%s" % (request, amount)))
            self._sums[request] += int(amount)
            (self._unbalanced.add if self._sums[request] else self._unbalanced.discard)(request)

    def unbalanced(self) -> set[bytes]:
        """Return the requests whose amounts do not add up to zero."""
        return set(self._unbalanced)

    def problems(self, requests: Iterable[bytes]) -> list[str]:
        """Hold the bookings, when all are done, against the requests: each was booked once, and as it asks for."""
        wanted = set(requests)
        found = [f"half transfer: {self._shown(request)}" for request in sorted(self.unbalanced())]
        found += [f"missing transfer: {request!r}" for request in sorted(wanted - self._booked.keys())]
        for request, booked in self._booked.items():
            expected = Counter(Transfer.of(request).outputs())
            if request not in wanted:
                found.append(f"unknown transfer: {self._shown(request)}")
            elif Counter(booked) - expected:
                kind = "false" if set(booked) - set(expected) else "doubled"
                found.append(f"{kind} transfer: {self._shown(request)}")
        return found

    def _shown(self, request: bytes) -> str:
        return f"{request!r} booked as {self._booked[request]}, to be booked as {Transfer.of(request)}"


class Audits:
    """Looks at what is committed while it is booked, and sees no half of a transfer.

    The halves become visible one after the other. But whoever sees one half knows that all of its transaction is in
    the logs, so the other half has been read once the partitions are read to the ends that they had after that.
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        self._ledger = Ledger()
        self._halves: set[bytes] = set()
        """Requests of which a half was seen when the last audit began."""
        self._told: set[bytes] = set()
        """Requests whose halves are among the problems."""
        self._ends: dict[TopicPartition, int] = {}
        """The ends of the partitions after that; empty between audits."""

    def take(self, records: Iterable[ConsumerRecord[bytes, bytes]]) -> None:
        """Take what was read."""
        self._ledger.add(records)

    def go_on(
        self, ends: Callable[[], dict[TopicPartition, int]], position: Callable[[TopicPartition], int]
    ) -> None:
        """Begin an audit if halves were seen, or end the one that was begun if everything is read that it needs.

        `ends` asks for the ends of all partitions, `position` is how far one of them is read.
        """
        if not self._ends:
            self._halves = self._ledger.unbalanced()
            if self._halves:
                self._ends = ends()
            return
        if any(position(tp) < end for tp, end in self._ends.items()):
            return
        self.counts["audits"] += 1
        self.counts["halves seen"] += len(self._halves)
        found = self._halves & self._ledger.unbalanced()
        self.problems += [
            f"half transfer: {request!r} is {self._ledger.booked[request]}, and all is read up to {self._ends}"
            for request in sorted(found - self._told)
        ]
        self._told |= found
        self._ends = {}


class Auditor(threading.Thread):
    """Reads what is committed, and audits it, until stopped."""

    def __init__(self, servers: str, direct_servers: str, history: HistoryLog) -> None:
        super().__init__(name="auditor", daemon=True)
        self.audits = Audits()
        self.problems = self.audits.problems
        self._servers = servers
        self._direct_servers = direct_servers
        self._log = history.consumer("auditor", read_committed=True)
        self._stopping = threading.Event()
        self.start()

    def run(self) -> None:
        try:
            partitions = partitions_of(self._direct_servers, TRANSFERS)
            with KafkaConsumer(
                bootstrap_servers=self._servers,
                client_id="auditor",
                isolation_level="read_committed",
                enable_auto_commit=False,
                auto_offset_reset="none",
                request_timeout_ms=2000,
            ) as consumer:
                consumer.assign(partitions)
                for tp in partitions:
                    consumer.seek(tp, 0)
                while not self._stopping.is_set():
                    self._go_on(consumer)
            self._log.closed()
        except BaseException as error:
            self.problems.append(f"auditor: ended with {error!r}")

    def stop(self) -> None:
        """End it."""
        self._stopping.set()
        self.join(60)
        if self.is_alive():
            self.problems.append("auditor: did not end")

    def _go_on(self, consumer: KafkaConsumer[bytes, bytes]) -> None:
        records = consumer.poll(200)
        write_poll(self._log, records)
        self.audits.take(records)
        try:
            self.audits.go_on(lambda: end_offsets(self._direct_servers, TRANSFERS), consumer.position)
        except KafkaTimeoutError:
            self.audits.counts["answers missing"] += 1
