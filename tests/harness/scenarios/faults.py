"""Producers and groups under a fault of a cluster, and a verdict on what they saw by the checker of histories."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from harness.broker.wire import Wire
from harness.checker.history import Place, Turn
from harness.checker.loader import load
from harness.checker.log import ConsumerLog, HistoryLog
from harness.checker.report import check
from harness.network.proxy import FaultProxy, Rule
from harness.real_kafka.broker import RealKafka
from harness.soak.churn import owners_now
from harness.soak.load import Load
from harness.soak.recorded import RecordingListener, end_of, read_to_end, write_poll
from harness.topics import DEADLINE_S, partitions_of
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient
from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRecords, KafkaConsumer
from kclient.errors import CommitFailedError, KafkaError, RebalanceInProgressError
from kclient.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)

QUICK = {
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 200,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
}
REQUEST_MS = 700
"""The time that clients behind a proxy give a request."""

_CLASSIC = {"heartbeat.interval.ms": 300, "session.timeout.ms": 20_000}
_LOOK_S = 0.25
_FAULT_S = 30.0
_SHOWN = 10


class RecordedMember(threading.Thread):
    """A member of a group that writes down what it has and what it reads.

    It commits automatically; or, where that is off, every poll's end, and writes that down too. Errors of the classes
    in `tolerated` are kept in `errors`, and it goes on as an application would that logs them.
    """

    def __init__(
        self,
        log: ConsumerLog,
        topic: str,
        settings: dict[str, object],
        tolerated: tuple[type[Exception], ...] = (),
    ) -> None:
        super().__init__(name=log.name, daemon=True)
        self.error: BaseException | None = None
        self.errors: list[Exception] = []
        self.handed: dict[Place, int] = {}
        """Partition -> the offset after the last record that it was handed."""
        self.consumer: KafkaConsumer[bytes, bytes] | None = None
        self.resting = threading.Event()
        """Set while it must not poll."""
        self.before_poll: Callable[[], object] = lambda: None
        self._log = log
        self._topic = topic
        self._group = str(settings["group.id"])
        self._commits = settings.get("enable.auto.commit") is False
        self._settings = settings
        self._tolerated = tolerated
        self._stopping = threading.Event()
        self.start()

    def run(self) -> None:
        try:
            with KafkaConsumer(self._settings) as consumer:
                self.consumer = consumer
                consumer.subscribe([self._topic], self.listener())
                while not self._stopping.is_set():
                    if self.resting.is_set():
                        self._stopping.wait(0.01)
                        continue
                    try:
                        self.poll(consumer)
                    except self._tolerated as error:
                        self.errors.append(error)
            self._log.closed()
        except BaseException as error:
            self.error = error

    def listener(self) -> RecordingListener:
        """Return what writes down the partitions that come and go."""
        return RecordingListener(self._log)

    def poll(self, consumer: KafkaConsumer[bytes, bytes]) -> None:
        """Take what there is, write it down, and commit it, unless the consumer does so itself."""
        self.before_poll()
        records = consumer.poll(100)
        write_poll(self._log, records)
        for tp, batch in records.by_partition().items():
            self.handed[Place(*tp)] = batch[-1].offset + 1
        if records and self._commits:
            self._commit(consumer, records)

    def _commit(self, consumer: KafkaConsumer[bytes, bytes], records: ConsumerRecords[bytes, bytes]) -> None:
        ends = {tp: batch[-1].offset + 1 for tp, batch in records.by_partition().items()}
        number = self._log.commit(self._group, {Place(*tp): offset for tp, offset in ends.items()})
        try:
            consumer.commit_sync({tp: OffsetAndMetadata(offset) for tp, offset in ends.items()})
        except (CommitFailedError, RebalanceInProgressError):
            # One whose answer was lost may have been done before the group moved on.
            self._log.committed(number, "unknown")
        except KafkaError:
            self._log.committed(number, "unknown")
            raise
        else:
            self._log.committed(number)

    def stop(self) -> None:
        """Leave the group; raises what ended the member, if something did."""
        self._stopping.set()
        self.join(DEADLINE_S)
        assert not self.is_alive(), f"{self.name} did not close in time"
        if self.error is not None:
            raise self.error


class CommitsObserver(threading.Thread):
    """Asks again and again, past all faults, what groups have committed, and writes it down."""

    def __init__(self, servers: str, topic: str, groups: Collection[str], log: HistoryLog) -> None:
        super().__init__(name="commits-observer", daemon=True)
        self.seen = 0
        self._servers = servers
        self._topic = topic
        self._groups = groups
        self._log = log
        self._stopping = threading.Event()
        self.start()

    def run(self) -> None:
        impatient = {"request.timeout.ms": 2000, "default.api.timeout.ms": 3000}
        partitions = partitions_of(self._servers, self._topic)
        with KafkaAdminClient({"bootstrap.servers": self._servers, **impatient}) as admin:
            while not self._stopping.wait(_LOOK_S):
                for group in self._groups:
                    try:
                        committed_by(admin, group, partitions, self._log)
                    except KafkaError:
                        continue  # its coordinator is away
                    self.seen += 1

    def stop(self) -> None:
        """Look no more."""
        self._stopping.set()
        self.join(DEADLINE_S)
        assert not self.is_alive(), f"{self.name} did not end in time"


def committed_by(
    admin: KafkaAdminClient, group: str, partitions: Collection[TopicPartition], log: HistoryLog
) -> dict[Place, int]:
    """Note and return what a group has committed by now."""
    started = log.now()
    found = admin.list_consumer_group_offsets({group: list(partitions)})[group]
    committed = {Place(*tp): one.offset for tp, one in found.items() if one is not None}
    log.observed(group, started, committed)
    return committed


class UnderFault:
    """A producer that sends all the time and a group that reads it, for the time of a `with` block.

    `servers` is what they are told, `direct` reaches the same brokers whatever happens. With `all_kinds` there are a
    producer that waits for each record and one that is not idempotent as well, and a second group: the first is of the
    classic protocol and commits automatically, the other of the consumer protocol, and its member commits what it
    reads. `settings` are all clients', `producing` and `consuming` those of the loads and the members alone, and
    `tolerated` the errors after which an application goes on polling. At the end of the block all is read and
    committed, and `check` has nothing to say about it.
    """

    def __init__(
        self,
        directory: Path,
        servers: str,
        topic: str,
        *,
        direct: str | None = None,
        members: int = 2,
        all_kinds: bool = False,
        producing: dict[str, object] | None = None,
        consuming: dict[str, object] | None = None,
        tolerated: tuple[type[Exception], ...] = (),
        **settings: object,
    ) -> None:
        self.topic = topic
        self.group = f"g-{topic}"
        self.log = HistoryLog.at(directory / "history.jsonl")
        self._path = directory / "history.jsonl"
        self._servers = servers
        self._direct = direct or servers
        protocol = settings.pop("group.protocol", "classic")
        self._given: dict[str, object] = {**QUICK, **settings}
        self._producing = producing or {}
        self._consuming = {**(_CLASSIC if protocol == "classic" else {}), **(consuming or {})}
        self._tolerated = tolerated
        self._whole = True
        self.loads: list[Load] = []
        self.load = self.more_load("load")
        self.members: dict[str, RecordedMember] = {}
        self._groups: dict[str, list[RecordedMember]] = {}
        for name in "abc"[:members]:
            self.more_members(name, self.group, **{"group.protocol": protocol, **self._consuming})
        if all_kinds:
            self.more_load("alone", alone=True)
            self.more_load("plain", **{"enable.idempotence": False})
            more = {"group.protocol": "consumer", "enable.auto.commit": False, **(consuming or {})}
            self.more_members("committing", f"h-{topic}", **more)
        self._observer = CommitsObserver(self._direct, topic, list(self._groups), self.log)

    def more_load(
        self, name: str, *, per_s: int = 200, alone: bool = False, size: int = 0, **settings: object
    ) -> Load:
        """Start another producer, which is stopped and judged with the others."""
        given = {**self._given, **self._producing, **settings}
        made = Load(
            self._servers,
            self.topic,
            f"{name}-{self.topic}",
            self.log,
            per_s=per_s,
            alone=alone,
            size=size,
            **given,
        )
        self.loads.append(made)
        return made

    def more_members(
        self,
        name: str,
        group: str,
        kind: type[RecordedMember] = RecordedMember,
        tolerated: tuple[type[Exception], ...] | None = None,
        **settings: object,
    ) -> RecordedMember:
        """Start another member of a group, which is stopped and judged with the others."""
        given = {
            "bootstrap.servers": self._servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 200,
            **self._given,
            **settings,
        }
        log = self.log.consumer(
            f"{name}-{self.topic}", group=group, auto_commit=given.get("enable.auto.commit") is not False
        )
        made = kind(log, self.topic, given, self._tolerated if tolerated is None else tolerated)
        self.members[name] = made
        self._groups.setdefault(group, []).append(made)
        return made

    def until(self, condition: Callable[[], bool], what: str, timeout_s: float = DEADLINE_S) -> None:
        """Wait for a condition; raises what ended a load or a member meanwhile, if something did."""

        def came() -> bool:
            for each in (*self.loads, *self.members.values()):
                if each.error is not None:
                    raise each.error
            return condition()

        wait_until(came, timeout_s, what)

    def happened(self, *rules: Rule) -> None:
        """Wait until all that these rules of a proxy wanted has come to pass."""
        try:
            self.until(lambda: all(rule.hits >= rule.times for rule in rules), "the fault", _FAULT_S)
        except AssertionError as error:
            left = [f"{rule.fault.name} {rule.api}" for rule in rules if rule.hits < rule.times]
            raise AssertionError(f"{error}: {left}") from None

    def wait_for_progress(self, records: int = 100) -> None:
        """Wait until so many more records were acknowledged, and as many handed out to each group."""
        acked = self.load.acked + records
        read = {group: sum(self.handed(group).values()) + records for group in self._groups}
        self.until(lambda: self.load.acked >= acked, "acknowledgements")
        self.until(
            lambda: all(sum(self.handed(group).values()) >= read[group] for group in read),
            "records for the groups",
        )

    def stop_loads(self) -> None:
        """Deliver what is to be sent, and end it."""
        for each in self.loads:
            each.stop()

    def wait_for_shares(self) -> None:
        """Wait until all members have partitions."""

        def shared() -> bool:
            owners = owners_now(load(self._path)).values()
            return {name for each in owners for name in each} == {
                member.name for member in self.members.values()
            }

        self.until(shared, "a share for each member")

    def delete_records(self) -> dict[TopicPartition, int]:
        """Delete what all groups have read, after it was written down; returns where the partitions begin now."""
        read_to_end(self._direct, self.topic, self.log)
        self._whole = False
        partitions = [
            DeleteRecordsPartition(partition_index=place.partition, offset=end)
            for place, end in self.read_by_all().items()
        ]
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=self.topic, partitions=partitions)], timeout_ms=10_000
        )
        with Wire(self._direct) as wire:
            (answered,) = wire.ask(request, 2).topics
        assert [each.error_code for each in answered.partitions if each.error_code] == []
        return {
            TopicPartition(self.topic, each.partition_index): each.low_watermark
            for each in answered.partitions
        }

    def turns(self) -> Counter[str]:
        """Return how often members were given partitions, gave some up and lost some."""
        return Counter(
            each.kind for each in load(self._path).reading if isinstance(each, Turn) and each.places
        )

    def handed(self, group: str) -> dict[Place, int]:
        """Partition -> the offset after the last record that any member of a group was handed."""
        ends: dict[Place, int] = {}
        for member in self._groups[group]:
            for place, end in member.handed.copy().items():
                ends[place] = max(ends.get(place, 0), end)
        return ends

    def read_by_all(self) -> dict[Place, int]:
        """Partition -> the offset up to which every group was handed its records."""
        ends = [self.handed(group) for group in self._groups]
        return {place: min(each.get(place, 0) for each in ends) for place in ends[0]}

    def errors(self) -> Counter[str]:
        """Errors that members were told and that they tolerated, by their names."""
        return Counter(type(error).__name__ for member in self.members.values() for error in member.errors)

    def __enter__(self) -> Self:
        try:
            self.wait_for_shares()
            self.wait_for_progress()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.stop_loads()
            if error is None:
                self._judge()
        finally:
            self._observer.stop()
            for member in self.members.values():
                member.stop()

    def _judge(self) -> None:
        ended, ends = self.log.now(), end_of(self._direct, self.topic)
        for group in self._groups:
            self.until(lambda group=group: self.handed(group) == ends, "groups reading up to the end")  # type: ignore[misc]
            self.log.at_end(group, list(ends), at=ended)
        for member in self.members.values():
            member.stop()
        left = [each.name for group in self._groups.values() for each in group if each.is_alive()]
        assert not left, f"{left} were not stopped"
        self._observer.stop()
        read_to_end(self._direct, self.topic, self.log, whole=self._whole)
        with KafkaAdminClient(bootstrap_servers=self._direct) as admin:
            partitions = [TopicPartition(*place[:2]) for place in ends]
            committed = {group: committed_by(admin, group, partitions, self.log) for group in self._groups}
        wrong = [problem for each in self.loads for problem in each.recorded.problems]
        wrong += [str(anomaly) for anomaly in check(load(self._path))]
        assert not wrong, "\n".join(wrong[:_SHOWN])
        assert committed == dict.fromkeys(self._groups, ends)
        assert self._observer.seen > 0


@contextmanager
def judged_behind(
    proxy: FaultProxy, kafka: RealKafka, directory: Path, topic: str, **more: Any
) -> Iterator[UnderFault]:
    """Clients of all kinds that reach a real broker through the proxy alone.

    After the block the proxy is clear again, and they have to go on before they are judged.
    """
    with UnderFault(
        directory,
        proxy.bootstrap,
        topic,
        direct=kafka.bootstrap_servers,
        all_kinds=True,
        **{"request.timeout.ms": REQUEST_MS},
        **more,
    ) as running:
        yield running
        proxy.clear()
        running.wait_for_progress()
        running.stop_loads()
        # Requests that the proxy held back reach the broker late, and add to what the groups have to read.
        running.until(lambda: not proxy.produces, "the end of the producers' connections")
