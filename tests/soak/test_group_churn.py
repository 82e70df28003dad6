"""A group whose members come, leave and are killed all the time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.broker.process import BrokerProcess
from harness.soak.checker import check_log
from harness.soak.churn import (
    MemberProcess,
    check_owners,
    check_reads,
    handed_out,
    owners_now,
    ownerships,
    seen,
)
from harness.soak.load import Load
from harness.topics import new_topic, read_all
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient

_MEMBERS = 5
_PARTITIONS = 6
_SETTLE_S = 60


class Churn:
    """Up to five members at a time; those that are gone are remembered for their journals."""

    def __init__(self, directory: Path, servers: str, topic: str, rng: random.Random) -> None:
        self.members: list[MemberProcess] = []
        self.kills = 0
        self._slots: list[MemberProcess | None] = [None] * _MEMBERS
        self._directory = directory
        self._servers = servers
        self._topic = topic
        self._rng = rng

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
            auto_commit=bool(number % 2),
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


@pytest.mark.soak(seconds=300)
def test_a_group_in_constant_change_reads_every_record_and_never_has_two_owners(
    tmp_path: Path, seconds: float, rng: random.Random, verdict: Callable[[list[str]], None]
) -> None:
    problems: list[str] = []
    with (
        BrokerProcess(tmp_path) as broker,
        KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin,
    ):
        servers = broker.bootstrap_servers
        topic = new_topic(servers, _PARTITIONS)
        churn = Churn(tmp_path, servers, topic, rng)
        load = Load(servers, topic, "churn", per_s=200)
        try:
            churn.fill()
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                time.sleep(rng.uniform(0.2, 2.0))
                churn.step()
                problems += _check_commits(admin, churn)
            churn.fill()
            wait_until(lambda: _settled(churn), _SETTLE_S, "one owner for each partition")
            load.stop()
            expected = {(metadata.partition, metadata.offset) for metadata in load.acked.values()}
            wait_until(lambda: expected <= seen(churn.members), _SETTLE_S, "the group reading everything")
            problems += _check_commits(admin, churn)
            churn.end(kill=False)
        finally:
            churn.end(kill=True)
        records = read_all(servers, topic)
        committed = admin.list_consumer_group_offsets(churn.group)
    owned = ownerships(churn.members)
    lost = sum(each.lost for each in owned)
    print(
        f"{len(churn.members)} members, {churn.kills} kills, {len(owned)} ownerships, {lost} lost, "
        f"{len(records)} records"
    )
    problems += check_log([load], records)
    problems += check_owners(owned)
    for member in churn.members:
        problems += check_reads(member)
    ends = handed_out(churn.members)
    # All left in good order at the end, so what they were handed is committed.
    for tp, entry in committed.items():
        if entry is None or entry.offset != ends.get(tp.partition, 0):
            problems.append(f"committed at the end: {tp} {entry}, handed out up to {ends.get(tp.partition)}")
    verdict(problems)


def _settled(churn: Churn) -> bool:
    owners = owners_now(churn.members)
    return sorted(owners) == list(range(_PARTITIONS)) and all(len(names) == 1 for names in owners.values())


def _check_commits(admin: KafkaAdminClient, churn: Churn) -> list[str]:
    """Nothing is committed that no application was handed. The journals are read second: they may only be ahead."""
    committed = admin.list_consumer_group_offsets(churn.group)
    ends = handed_out(churn.members)
    return [
        f"committed too far: {tp} at {entry.offset}, handed out up to {ends.get(tp.partition, 0)}"
        for tp, entry in committed.items()
        if entry is not None and entry.offset > ends.get(tp.partition, 0)
    ]
