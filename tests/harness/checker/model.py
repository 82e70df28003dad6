"""A small model of Kafka that keeps all its promises, under clients who meet faults by chance."""

from __future__ import annotations

import random

import attrs

from harness.checker.history import Place
from harness.checker.log import ConsumerLog, ProducerLog
from harness.checker.memory import MemoryLog

GROUP = "group"
COPIERS = "copiers", "others"


@attrs.define(eq=False)
class Txn:
    """A transaction in the logs. Its fate is known to the coordinator first, and to each partition by a marker."""

    group: str
    """The group for which it commits a position in partition 0."""
    commits: bool | None = None
    unmarked: set[int] = attrs.Factory(set)
    """Partitions that wait for the marker."""
    offset: int | None = None
    """That position."""


@attrs.define(eq=False)
class Entry:
    """A record, or the marker of a transaction's end, which has no value."""

    value: bytes | None
    txn: Txn | None = None


@attrs.define(eq=False)
class Producer:
    """A producer and what it has not been told yet."""

    log: ProducerLog
    idempotent: bool
    knows_partitions: bool
    untold: list[tuple[int, int, int]] = attrs.Factory(list)


@attrs.define(eq=False)
class Consumer:
    """A consumer with its positions."""

    log: ConsumerLog
    read_committed: bool
    group: str | None
    positions: dict[int, int] = attrs.Factory(dict)


@attrs.define(eq=False)
class Copier:
    """A producer whose transactions write records and commit the position of a group of its own in partition 0."""

    producer: Producer
    reader: Consumer
    group: str
    number: int = 0
    """The transaction's number in the history."""
    txn: Txn | None = None
    """The open transaction."""


class Model:
    """Logs, coordinators, and clients that take one step after another; `log` has the history."""

    def __init__(self, rng: random.Random, partitions: int = 3) -> None:
        self.log = MemoryLog()
        self._rng = rng
        self._logs: list[list[Entry]] = [[] for _ in range(partitions)]
        self._committed: dict[str, dict[int, int]] = {group: {} for group in (GROUP, *COPIERS)}
        self._values = self._names = 0
        self._ending: list[Txn] = []
        self._producers = [self._new_producer(), self._new_producer(), self._new_producer(idempotent=False)]
        self._copiers = [Copier(self._new_producer(), self._new_consumer(group), group) for group in COPIERS]
        self._members = [self._new_consumer(GROUP), self._new_consumer(GROUP)]
        self._readers = [self._new_consumer(None), self._new_consumer(None, read_committed=False)]
        for partition in range(partitions):
            self._give(self._members[partition % 2], partition, 0)
            for reader in self._readers:
                self._give(reader, partition, 0)
        for copier in self._copiers:
            self._give(copier.reader, 0, 0)

    def run(self, steps: int) -> None:
        """Take steps, then let everything come to an end, and everything be read."""
        kinds = [self._send] * 6 + [self._poll] * 6 + [self._transact] * 8 + [self._mark] * 3
        kinds += [
            self._tell,
            self._kill,
            self._seek,
            self._rebalance,
            self._commit,
            self._commit,
            self._observe,
        ]
        for _ in range(steps):
            self._rng.choice(kinds)()
        for copier in self._copiers:
            if copier.txn is not None:
                self._end(copier, copier.txn)
        while self._ending:
            self._mark()
        for producer in [*self._producers, *(copier.producer for copier in self._copiers)]:
            while producer.untold:
                self._tell(producer)
            producer.log.closed()
        for reader in self._readers:
            self._read_to_end(reader)
        # What a seek left out does not count as read to the end, so it is read from the beginning once more.
        last = self._new_consumer(None)
        for partition in range(len(self._logs)):
            self._give(last, partition, 0)
        self._read_to_end(last)
        self.log.at_end(last.log.name, map(place, range(len(self._logs))))
        self._observe()

    def _new_producer(self, *, idempotent: bool = True) -> Producer:
        log = self.log.producer(self._name("p"), idempotent=idempotent)
        return Producer(log, idempotent, knows_partitions=self._rng.random() < 0.7)

    def _new_consumer(self, group: str | None, *, read_committed: bool = True) -> Consumer:
        log = self.log.consumer(self._name("c"), group=group, read_committed=read_committed)
        return Consumer(log, read_committed, group)

    def _name(self, kind: str) -> str:
        self._names += 1
        return f"{kind}{self._names}"

    def _value(self) -> bytes:
        self._values += 1
        return b"v%d" % self._values

    def _partition(self) -> int:
        return self._rng.randrange(len(self._logs))

    def _send(self) -> None:
        """Send one record outside transactions."""
        producer, partition, value = self._rng.choice(self._producers), self._partition(), self._value()
        known = partition if producer.knows_partitions else None
        number = producer.log.send("t", value, known)
        match self._rng.choice(("acked", "acked", "acked", "later", "written", "not written", "refused")):
            case "acked":
                producer.log.acked(number, partition, self._append(producer, partition, value))
            case "later":
                producer.untold.append((number, partition, self._append(producer, partition, value)))
            case "written":
                self._append(producer, partition, value)
                producer.log.failed(number, "timed out", "unknown")
            case "not written":
                producer.log.failed(number, "timed out", "unknown")
            case "refused":
                producer.log.failed(number, "too large", "fail")

    def _append(self, producer: Producer, partition: int, value: bytes) -> int:
        log = self._logs[partition]
        log.append(Entry(value))
        offset = len(log) - 1
        if not producer.idempotent and self._rng.random() < 0.3:
            log.append(Entry(value))
        return self._rng.choice((offset, offset, offset, -1))

    def _tell(self, producer: Producer | None = None) -> None:
        """Tell a producer of a record that was written a while ago."""
        producer = producer or self._rng.choice(self._producers)
        if producer.untold:
            number, partition, offset = producer.untold.pop(self._rng.randrange(len(producer.untold)))
            producer.log.acked(number, partition, offset)

    def _kill(self) -> None:
        """kill -9 of a producer; another one takes its place."""
        slot = self._rng.randrange(len(self._producers))
        old = self._producers[slot]
        self.log.ended(old.log.name)
        self._producers[slot] = self._new_producer(idempotent=old.idempotent)

    def _transact(self) -> None:
        """Take a copier one step further: it begins, and reads; it writes a record; it ends."""
        copier = self._rng.choice(self._copiers)
        if copier.txn is None:
            while any(txn.group == copier.group for txn in self._ending):
                self._mark()  # the coordinator refuses the next one until then
            self._poll(copier.reader)
            copier.txn, copier.number = Txn(copier.group), copier.producer.log.begun()
        elif self._rng.random() < 0.7:
            self._write(copier, copier.txn)
        else:
            self._end(copier, copier.txn)

    def _write(self, copier: Copier, txn: Txn) -> None:
        """Write a record in a transaction."""
        log, partition, value = copier.producer.log, self._partition(), self._value()
        sent = log.send("t", value, partition, copier.number)
        self._logs[partition].append(Entry(value, txn))
        txn.unmarked.add(partition)
        log.acked(sent, partition, len(self._logs[partition]) - 1)

    def _end(self, copier: Copier, txn: Txn) -> None:
        """Commit or abort a transaction, with the position that its copier has."""
        log, number, copier.txn = copier.producer.log, copier.number, None
        txn.offset = copier.reader.positions[0]
        log.committed(log.commit(copier.group, {place(0): txn.offset}, number))
        end = self._rng.choice(("commit", "commit", "abort", "unknown", "killed", "killed in commit"))
        if end != "killed":
            log.ending(number, commit=end != "abort")
        txn.commits = end == "commit" or (end in {"unknown", "killed in commit"} and self._rng.random() < 0.5)
        self._ending.append(txn)
        if self._rng.random() < 0.5:
            self._mark()
        match end:
            case "commit" | "abort":
                log.finished(number, "ok" if txn.commits else "fail")
            case "unknown":
                log.finished(number, "unknown")
            case "killed" | "killed in commit":
                self.log.ended(log.name)
                copier.producer = self._new_producer()

    def _mark(self) -> None:
        """Write one marker of a transaction that has ended; its offsets come last."""
        if not self._ending:
            return
        txn = self._rng.choice(self._ending)
        if txn.unmarked:
            partition = txn.unmarked.pop()
            self._logs[partition].append(Entry(None, txn))
            for entry in self._logs[partition]:
                if entry.txn is txn and entry.value is not None:
                    entry.txn = None if txn.commits else ABORTED
            return
        if txn.commits and txn.offset is not None:
            self._committed[txn.group][0] = txn.offset
        self._ending.remove(txn)

    def _poll(self, consumer: Consumer | None = None) -> int:
        """Hand some records to a consumer; how many."""
        consumer = consumer or self._rng.choice([*self._readers, *self._members])
        found: dict[Place, list[tuple[int, bytes | None]]] = {}
        for partition, position in consumer.positions.items():
            entries, batch = self._logs[partition], []
            end = min(len(entries), position + self._rng.randrange(1, 6))
            while position < end:
                entry = entries[position]
                is_open = entry.txn is not None and entry.txn is not ABORTED and entry.value is not None
                if consumer.read_committed and is_open:
                    break
                hidden = entry.value is None or (consumer.read_committed and entry.txn is ABORTED)
                if not hidden:
                    batch.append((position, entry.value))
                position += 1
            consumer.positions[partition] = position
            if batch:
                found[place(partition)] = batch
        if found:
            consumer.log.polled(found)
        return sum(map(len, found.values()))

    def _read_to_end(self, consumer: Consumer) -> None:
        while any(position < len(self._logs[number]) for number, position in consumer.positions.items()):
            self._poll(consumer)

    def _seek(self) -> None:
        """Move a position of a reader."""
        reader, partition = self._rng.choice(self._readers), self._partition()
        reader.log.sought([place(partition)])
        reader.positions[partition] = self._rng.randint(0, len(self._logs[partition]))

    def _give(self, consumer: Consumer, partition: int, position: int) -> None:
        consumer.log.assigned([place(partition)])
        consumer.positions[partition] = position

    def _rebalance(self) -> None:
        """Move a partition from one member to the other, which goes on where the group has committed."""
        giver, taker = self._rng.sample(self._members, 2)
        if giver.positions:
            partition = self._rng.choice(list(giver.positions))
            if self._rng.random() < 0.5:
                self._commit(giver)
            del giver.positions[partition]
            if self._rng.random() < 0.3:
                giver.log.lost([place(partition)])
            else:
                giver.log.revoked([place(partition)])
            self._give(taker, partition, self._committed[GROUP].get(partition, 0))

    def _commit(self, member: Consumer | None = None) -> None:
        """Commit the positions of a member."""
        member = member or self._rng.choice(self._members)
        number = member.log.commit(GROUP, {place(each): at for each, at in member.positions.items()})
        outcome = self._rng.choice(("ok", "ok", "unknown", "unknown, done", "fail"))
        if outcome in {"ok", "unknown, done"}:
            self._committed[GROUP].update(member.positions)
        member.log.committed(number, "ok" if outcome == "ok" else "fail" if outcome == "fail" else "unknown")

    def _observe(self) -> None:
        """Ask for the committed offsets."""
        for group, offsets in self._committed.items():
            self.log.observed(group, self.log.now(), {place(each): at for each, at in offsets.items()})


ABORTED = Txn("", commits=False)


def place(partition: int) -> Place:
    """Partition of the model's topic, in a history."""
    return Place("t", partition)
