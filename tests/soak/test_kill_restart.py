"""kill -9 of the broker under load, again and again."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.broker.process import BrokerProcess
from harness.checker.log import HistoryLog
from harness.checker.report import check
from harness.soak.churn import MemberProcess, handed_out, history_of
from harness.soak.load import Load
from harness.soak.recorded import end_of, observe, read_to_end
from harness.topics import new_topic
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient


@pytest.mark.soak(seconds=180)
def test_nothing_acknowledged_is_lost_doubled_or_out_of_order_when_the_broker_is_killed_again_and_again(
    tmp_path: Path, seconds: float, rng: random.Random, verdict: Callable[[list[str]], None]
) -> None:
    kills = 0
    path = tmp_path / "history.jsonl"
    history = HistoryLog.at(path)
    with (
        BrokerProcess(tmp_path) as broker,
        KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin,
    ):
        servers = broker.bootstrap_servers
        topic = new_topic(servers)
        loads = [Load(servers, topic, name, history, per_s=400) for name in ("a", "b", "c")]
        loads.append(Load(servers, topic, "alone", history, per_s=2000, alone=True))
        group = f"g-{topic}"
        member = MemberProcess("member", tmp_path, servers, topic, group, history, commit="offsets")
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            before = [load.acked for load in loads]
            wait_until(
                lambda: all(load.acked > n for load, n in zip(loads, before, strict=True)),  # noqa: B023
                60,
                "records acknowledged after a restart",
            )
            time.sleep(rng.uniform(0.0, 2.0))
            broker.kill()
            kills += 1
            time.sleep(rng.choice((0.0, rng.uniform(0.0, 1.5))))
            broker.start()
            observe(admin, group, history)
        for load in loads:
            load.stop()
        ended, ends = history.now(), end_of(servers, topic)
        wait_until(lambda: handed_out(history_of([member])) == ends, 60, "the group reading everything")
        history.at_end(group, list(ends), at=ended)
        member.leave()
        observe(admin, group, history)
        records = read_to_end(servers, topic, history)
    print(f"{kills} kills, {len(records)} records")
    told = history_of([member], path)
    problems = [problem for load in loads for problem in load.recorded.problems]
    # They had two minutes each.
    problems += [f"failed: {send}" for send in told.sends if send.outcome != "ok"]
    verdict(problems + [str(anomaly) for anomaly in check(told)])
