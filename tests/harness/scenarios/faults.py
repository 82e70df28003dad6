"""A producer and a group under a fault of a cluster, and a verdict on what they saw by the checker of histories."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Self

from harness.checker.history import Turn
from harness.checker.loader import load
from harness.checker.log import ConsumerLog, HistoryLog
from harness.checker.report import check
from harness.soak.churn import handed_out, owners_now
from harness.soak.load import Load
from harness.soak.recorded import RecordingListener, end_of, read_to_end, write_poll
from harness.topics import DEADLINE_S
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import KafkaConsumer

QUICK = {
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 200,
    "reconnect.backoff.ms": 20,
    "reconnect.backoff.max.ms": 200,
}


class RecordedMember(threading.Thread):
    """A member of a group that commits automatically and writes down what it has and what it reads."""

    def __init__(self, log: ConsumerLog, topic: str, settings: dict[str, object]) -> None:
        super().__init__(name=log.name, daemon=True)
        self.error: BaseException | None = None
        self._log = log
        self._topic = topic
        self._settings = settings
        self._stopping = threading.Event()
        self.start()

    def run(self) -> None:
        try:
            with KafkaConsumer(self._settings) as consumer:
                consumer.subscribe([self._topic], RecordingListener(self._log))
                while not self._stopping.is_set():
                    write_poll(self._log, consumer.poll(100))
            self._log.closed()
        except BaseException as error:
            self.error = error

    def stop(self) -> None:
        """Leave the group; raises what ended the member, if something did."""
        self._stopping.set()
        self.join(DEADLINE_S)
        assert not self.is_alive(), f"{self.name} did not close in time"
        if self.error is not None:
            raise self.error


class UnderFault:
    """A producer that sends all the time and a group that reads it, for the time of a `with` block.

    `servers` is what they are told, `direct` reaches the same brokers whatever happens. At the end of the block all is
    read and committed, and `check` has nothing to say about it.
    """

    def __init__(
        self,
        directory: Path,
        servers: str,
        topic: str,
        *,
        direct: str | None = None,
        members: int = 2,
        **settings: object,
    ) -> None:
        self.group = f"g-{topic}"
        self._path = directory / "history.jsonl"
        self._log = HistoryLog.at(self._path)
        self._direct = direct or servers
        self._topic = topic
        protocol = settings.pop("group.protocol", "classic")
        classic = {"heartbeat.interval.ms": 300, "session.timeout.ms": 20_000}
        given = {**QUICK, **settings}
        self.load = Load(servers, topic, f"load-{topic}", self._log, per_s=200, **given)
        member = {
            "bootstrap.servers": servers,
            "group.id": self.group,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "auto.commit.interval.ms": 200,
            **(classic if protocol == "classic" else {}),
            **given,
        }
        self._members = [
            RecordedMember(
                self._log.consumer(f"{name}-{topic}", group=self.group, auto_commit=True), topic, member
            )
            for name in "abc"[:members]
        ]

    def wait_for_progress(self, records: int = 100) -> None:
        """Wait until so many more records were acknowledged, and as many handed out to the group."""
        acked, read = self.load.acked + records, self._read() + records
        wait_until(lambda: self.load.acked >= acked, DEADLINE_S, "acknowledgements")
        wait_until(lambda: self._read() >= read, DEADLINE_S, "records for the group")

    def wait_for_shares(self) -> None:
        """Wait until all members have partitions."""

        def shared() -> bool:
            owners = owners_now(load(self._path)).values()
            return {name for each in owners for name in each} == {member.name for member in self._members}

        wait_until(shared, DEADLINE_S, "a share for each member")

    def turns(self) -> Counter[str]:
        """Return how often members were given partitions, gave some up and lost some."""
        return Counter(
            each.kind for each in load(self._path).reading if isinstance(each, Turn) and each.places
        )

    def _read(self) -> int:
        return sum(handed_out(load(self._path)).values())

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
            self.load.stop()
            if error is None:
                self._judge()
        finally:
            for member in self._members:
                member.stop()

    def _judge(self) -> None:
        ended, ends = self._log.now(), end_of(self._direct, self._topic)
        wait_until(
            lambda: handed_out(load(self._path)) == ends, DEADLINE_S, "the group reading up to the end"
        )
        self._log.at_end(self.group, list(ends), at=ended)
        for member in self._members:
            member.stop()
        read_to_end(self._direct, self._topic, self._log)
        with KafkaAdminClient(bootstrap_servers=self._direct) as admin:
            places = {TopicPartition(*place[:2]): place for place in ends}
            found = admin.list_consumer_group_offsets({self.group: list(places)})[self.group]
        committed = {places[tp]: one.offset for tp, one in found.items() if one is not None}
        assert self.load.recorded.problems == []
        assert [str(anomaly) for anomaly in check(load(self._path))] == []
        assert committed == ends
