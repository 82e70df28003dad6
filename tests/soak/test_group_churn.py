"""A group whose members come, leave and are killed all the time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.broker.process import BrokerProcess
from harness.checker.history import History
from harness.checker.log import HistoryLog
from harness.checker.owners import ownerships
from harness.checker.report import check
from harness.real_kafka.broker import RealKafka, missing
from harness.requirements import skip_if
from harness.soak.churn import MemberProcess, handed_out, history_of, owners_now
from harness.soak.load import Load
from harness.soak.recorded import end_of, observe, read_to_end
from harness.topics import new_topic
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient

_MEMBERS = 5
_PARTITIONS = 6
_SETTLE_S = 60


class Churn:
    """Up to five members at a time; those that are gone are remembered for their histories."""

    def __init__(self, directory: Path, servers: str, topic: str, rng: random.Random, protocol: str) -> None:
        self.members: list[MemberProcess] = []
        self.kills = 0
        self._slots: list[MemberProcess | None] = [None] * _MEMBERS
        self._directory = directory
        self._servers = servers
        self._topic = topic
        self._rng = rng
        self._protocol = protocol
        self._path = directory / "churn.jsonl"
        self.log = HistoryLog.at(self._path)
        """Ends of members, and what was committed."""

    @property
    def group(self) -> str:
        """The group's name."""
        return f"g-{self._topic}"

    def join(self, slot: int) -> None:
        """Start a member. Every other one commits by itself, the others let poll do it."""
        number = len(self.members)
        member = MemberProcess(
            f"member-{number}",
            self._directory,
            self._servers,
            self._topic,
            self.group,
            self.log,
            commit="auto" if number % 2 else "positions",
            protocol=self._protocol,
        )
        self.members.append(member)
        self._slots[slot] = member

    def step(self) -> None:
        """One member comes, or goes one way or the other; the group is never left empty."""
        slot = self._rng.randrange(_MEMBERS)
        member = self._slots[slot]
        if member is None:
            self.join(slot)
        elif self._slots.count(None) < _MEMBERS - 1:
            self._slots[slot] = None
            if self._rng.random() < 0.5:
                member.kill()
                self.kills += 1
            else:
                member.leave()

    def fill(self) -> None:
        """Start what is missing."""
        for slot, member in enumerate(self._slots):
            if member is None:
                self.join(slot)

    def end(self, *, kill: bool) -> None:
        """End all that run."""
        for member in self._slots:
            if member is not None:
                (member.kill if kill else member.leave)()
        self._slots = [None] * _MEMBERS

    def history(self, *others: Path) -> History:
        """Everything that was written so far, and what is in other files."""
        return history_of(self.members, self._path, *others)

    def settled(self) -> bool:
        """Return True if each partition has one owner."""
        owners = owners_now(self.history())
        return len(owners) == _PARTITIONS and all(len(names) == 1 for names in owners.values())


def broker_with(protocol: str, directory: Path) -> BrokerProcess | RealKafka:
    """The embedded broker has the classic protocol alone."""
    if protocol == "classic":
        return BrokerProcess(directory)
    skip_if(missing())
    return RealKafka(settings={"group.consumer.session.timeout.ms": "3000"})


@pytest.mark.soak(seconds=300)
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_in_constant_change_reads_every_record_and_never_has_two_owners(
    tmp_path: Path, seconds: float, rng: random.Random, verdict: Callable[[list[str]], None], protocol: str
) -> None:
    with (
        broker_with(protocol, tmp_path) as broker,
        KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin,
    ):
        servers = broker.bootstrap_servers
        topic = new_topic(servers, _PARTITIONS)
        churn = Churn(tmp_path, servers, topic, rng, protocol)
        sends = tmp_path / "sends.jsonl"
        load = Load(servers, topic, "churn", HistoryLog.at(sends), per_s=200)
        try:
            churn.fill()
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                time.sleep(rng.uniform(0.2, 2.0))
                churn.step()
                observe(admin, churn.group, churn.log)
            churn.fill()
            wait_until(churn.settled, _SETTLE_S, "one owner for each partition")
            load.stop()
            ended, ends = churn.log.now(), end_of(servers, topic)
            wait_until(
                lambda: handed_out(churn.history()) == ends, _SETTLE_S, "the group reading up to the end"
            )
            churn.log.at_end(churn.group, list(ends), at=ended)
            observe(admin, churn.group, churn.log)
            churn.end(kill=False)
        finally:
            churn.end(kill=True)
        records = read_to_end(servers, topic, churn.log)
        committed = observe(admin, churn.group, churn.log)
    history = churn.history(sends)
    owned = ownerships(history)
    lost = sum(each.lost for each in owned)
    print(
        f"{len(churn.members)} members, {churn.kills} kills, {len(owned)} ownerships, {lost} lost, "
        f"{len(records)} records"
    )
    problems = load.recorded.problems + [str(anomaly) for anomaly in check(history)]
    # All left in good order at the end, so what they were handed is committed.
    handed = dict.fromkeys(committed, 0) | handed_out(history)
    if committed != handed:
        problems.append(f"committed at the end: {committed}, handed out up to {handed}")
    verdict(problems)
