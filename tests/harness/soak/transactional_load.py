"""Producers of transactions, and a group that copies them in transactions, which write down what they do."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NamedTuple

from harness.checker.history import Outcome, Place
from harness.checker.log import HistoryLog
from harness.soak.recorded import RecordedProducer, RecordingListener, write_poll
from kclient import (
    ConsumerRecord,
    ConsumerRecords,
    KafkaConsumer,
    KafkaProducer,
    OffsetAndMetadata,
    TopicPartition,
)
from kclient.errors import KafkaError, KafkaTimeoutError, RetriableError, TransactionAbortableError

_CLOSE_S = 120.0
_COMMITTED = 0.8
_ZOMBIES = 0.03
_OVERSLEEPS = 0.02
_MAX_POLL_INTERVAL_MS = 30_000


class TransactionalClient(threading.Thread):
    """Makes transactions until stopped. A producer that has to be closed is followed by another one of its name.

    `name` tells clients apart in the history; the transactional id is the same, unless `settings` have another one.
    """

    def __init__(
        self, servers: str, name: str, rng: random.Random, history: HistoryLog, **settings: object
    ) -> None:
        super().__init__(name=f"client-{name}", daemon=True)
        self.counts: Counter[str] = Counter()
        self.problems: list[str] = []
        self._servers = servers
        self._label = name
        self._rng = rng
        self._history = history
        self._settings = {"bootstrap.servers": servers, "transactional.id": name, **settings}
        self._stopping = threading.Event()

    def run(self) -> None:
        try:
            while not self._stopping.is_set():
                self._live()
        except BaseException as error:
            self.problems.append(f"client: {self._label} ended with {error!r}")

    def end(self) -> None:
        """Begin no more transactions; `wait` for the last one."""
        self._stopping.set()

    def wait(self) -> None:
        """Wait for the end."""
        self.join(_CLOSE_S)
        if self.is_alive():
            self.problems.append(f"client: {self._label} did not end within {_CLOSE_S:.0f} s")

    def _oversleep(self) -> None:
        """Now and then wait within a transaction until the coordinator has aborted it."""
        if self._rng.random() < _OVERSLEEPS:
            self.counts["overslept"] += 1
            timeout_ms = self._settings["transaction.timeout.ms"]
            assert isinstance(timeout_ms, int)
            # The coordinator looks for them once a second.
            self._stopping.wait(timeout_ms / 1000 + self._rng.uniform(0.5, 3.0))

    def _live(self) -> None:
        """One life of the producer."""
        with KafkaProducer(self._settings) as producer:
            recorded = self._new_log()
            try:
                self._insist(producer.init_transactions)
                while not self._stopping.is_set():
                    self._make_transaction(producer, recorded)
            except KafkaError as error:
                self.counts[f"closed after {type(error).__name__}"] += 1
        recorded.closed()
        self.problems += recorded.problems

    def _new_log(self) -> RecordedProducer:
        self.counts["producers"] += 1
        return RecordedProducer(self._history.producer(f"{self._label}.{self.counts['producers']}"))

    def _make_transaction(self, producer: KafkaProducer[bytes, bytes], recorded: RecordedProducer) -> None:
        raise NotImplementedError

    def _insist(self, call: Callable[[], None]) -> None:
        """Call until there is an outcome, as that of a call that took too long is found by the next one."""
        deadline = time.monotonic() + _CLOSE_S / 2
        while True:
            try:
                call()
            except KafkaTimeoutError:
                self.counts["calls repeated"] += 1
                if time.monotonic() > deadline:
                    raise
            else:
                return

    def _finish(
        self, producer: KafkaProducer[bytes, bytes], recorded: RecordedProducer, number: int, *, commit: bool
    ) -> bool:
        """End a transaction; True if it was committed. Raises what the producer has to be closed for."""
        outcome: Outcome = "unknown" if commit else "fail"
        recorded.log.ending(number, commit=commit)
        try:
            try:
                self._insist(producer.commit_transaction if commit else producer.abort_transaction)
                outcome = "ok" if commit else "fail"
            except TransactionAbortableError:
                outcome = "fail"
                recorded.log.ending(number, commit=False)
                self._insist(producer.abort_transaction)
        finally:
            recorded.log.finished(number, outcome)
            recorded.look_at_futures()
        self.counts["committed" if outcome == "ok" else "aborted"] += 1
        return outcome == "ok"


class Writer(TransactionalClient):
    """Sends some records to random partitions of a topic in each transaction.

    Now and then a transaction is still open when the next producer of the name begins, and ends too late; or it takes
    longer than the coordinator waits for it.
    """

    def __init__(
        self,
        servers: str,
        name: str,
        rng: random.Random,
        history: HistoryLog,
        topic: str,
        partitions: int,
        **settings: object,
    ) -> None:
        super().__init__(servers, name, rng, history, **settings)
        self._topic = topic
        self._partitions = partitions
        self._numbers = 0
        self.start()

    def _make_transaction(self, producer: KafkaProducer[bytes, bytes], recorded: RecordedProducer) -> None:
        producer.begin_transaction()
        number = recorded.log.begun()
        for _ in range(self._rng.randint(1, 6)):
            self._numbers += 1
            recorded.send(
                producer,
                self._topic,
                f"{self._label}:{self._numbers}".encode(),
                partition=self._rng.randrange(self._partitions),
                transaction=number,
            )
            if self._rng.random() < 0.2:
                producer.flush(30_000)
        if self._rng.random() < _ZOMBIES:
            self.counts["zombies"] += 1
            with KafkaProducer(self._settings) as newer:
                self._insist(newer.init_transactions)
        self._oversleep()
        self._finish(producer, recorded, number, commit=self._rng.random() < _COMMITTED)
        self._stopping.wait(self._rng.uniform(0.0, 0.1))


class Output(NamedTuple):
    """A record to be written for one that was read."""

    partition: int
    key: bytes | None
    value: bytes


class Copier(TransactionalClient):
    """Copies committed records from one topic to another as a member of a group, with the offsets in each transaction.

    A copy is the value, "|", and what makes it the only one if the transaction is tried again.
    """

    def __init__(
        self,
        servers: str,
        name: str,
        rng: random.Random,
        history: HistoryLog,
        source: str,
        target: str,
        group: str,
        **settings: object,
    ) -> None:
        super().__init__(servers, name, rng, history, **settings)
        self._source = source
        self._target = target
        self._group = group
        self._numbers = 0
        self._consumer: KafkaConsumer[bytes, bytes]
        self.start()

    def _live(self) -> None:
        self._reader = self._history.consumer(
            f"{self._label} as consumer {self.counts['producers'] + 1}",
            group=self._group,
            read_committed=True,
        )
        with KafkaConsumer(
            bootstrap_servers=self._servers,
            group_id=self._group,
            isolation_level="read_committed",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            session_timeout_ms=6000,
            heartbeat_interval_ms=500,
            # As long a JoinGroup may wait for its answer, which a partition may have taken away.
            max_poll_interval_ms=_MAX_POLL_INTERVAL_MS,
            max_poll_records=20,
            request_timeout_ms=2000,
        ) as self._consumer:
            self._consumer.subscribe([self._source], listener=RecordingListener(self._reader))
            super()._live()
        self._reader.closed()

    def _make_transaction(self, producer: KafkaProducer[bytes, bytes], recorded: RecordedProducer) -> None:
        consumer = self._consumer
        records = consumer.poll(200)
        write_poll(self._reader, records)
        if not records:
            return
        producer.begin_transaction()
        number = recorded.log.begun()
        for record in records:
            for partition, key, value in self._outputs(record):
                self._numbers += 1
                copy = value + f"|{self._label}.{self._numbers}".encode()
                recorded.send(producer, self._target, copy, key=key, partition=partition, transaction=number)
        self._oversleep()
        commit = self._rng.random() < _COMMITTED
        ends = {tp: batch[-1].offset + 1 for tp, batch in records.by_partition().items()}
        offered = recorded.log.commit(self._group, {Place(*tp): end for tp, end in ends.items()}, number)
        outcome: Outcome = "unknown"
        try:
            try:
                group = consumer.group_metadata()
                self._insist(lambda: producer.send_offsets_to_transaction(ends, group))
            except TransactionAbortableError:
                commit = False
            outcome = "ok" if self._finish(producer, recorded, number, commit=commit) else "fail"
        finally:
            recorded.log.committed(offered, outcome)
        if outcome != "ok":
            self._rewind(records)

    def _outputs(self, record: ConsumerRecord[bytes, bytes]) -> Iterable[Output]:
        """Return what is to be written for a record."""
        assert record.value is not None
        yield Output(record.partition, None, record.value)

    def _rewind(self, records: ConsumerRecords[bytes, bytes]) -> None:
        """Go back to where the group stands, in the partitions that are still there."""
        consumer = self._consumer
        mine = [tp for tp in records.by_partition() if tp in consumer.assignment()]
        committed: dict[TopicPartition, OffsetAndMetadata | None] = {}
        while mine and not self._stopping.is_set():
            try:
                committed = dict(consumer.committed(mine))
                break
            except RetriableError:
                self.counts["rewinds repeated"] += 1
        for tp, offset in committed.items():
            if offset is None:
                consumer.seek_to_beginning([tp])
            else:
                consumer.seek(tp, offset)
        self._reader.sought(Place(*tp) for tp in committed)
