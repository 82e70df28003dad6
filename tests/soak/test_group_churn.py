"""A group whose members come, leave and are killed all the time."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.broker.process import BrokerProcess
from harness.checker.log import HistoryLog
from harness.checker.owners import ownerships
from harness.checker.report import check
from harness.soak.churn import handed_out, not_committed
from harness.soak.group_churn import GroupChurn
from harness.soak.load import Load
from harness.soak.recorded import end_of, observe, read_to_end
from harness.topics import new_topic
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient

_PARTITIONS = 6
_SETTLE_S = 60


@pytest.mark.soak(seconds=300)
def test_a_group_in_constant_change_reads_every_record_and_never_has_two_owners(
    tmp_path: Path, seconds: float, rng: random.Random, verdict: Callable[[list[str]], None]
) -> None:
    with (
        BrokerProcess(tmp_path) as broker,
        KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin,
    ):
        servers = broker.bootstrap_servers
        topic = new_topic(servers, _PARTITIONS)
        churn = GroupChurn(tmp_path, servers, topic, rng)
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
            wait_until(lambda: churn.settled(_PARTITIONS), _SETTLE_S, "one owner for each partition")
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
        f"{len(churn.members)} members, {churn.steps['kill']} kills, {len(owned)} ownerships, {lost} lost, "
        f"{len(records)} records"
    )
    problems = load.recorded.problems + [str(anomaly) for anomaly in check(history)]
    problems += not_committed(history, churn.names("kclient"))
    # All left in good order at the end, so what they were handed is committed.
    handed = dict.fromkeys(committed, 0) | handed_out(history)
    if committed != handed:
        problems.append(f"committed at the end: {committed}, handed out up to {handed}")
    verdict(problems)
