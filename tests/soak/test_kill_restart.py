"""kill -9 of the broker under load, again and again."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.broker.process import BrokerProcess
from harness.consumer.member import Member
from harness.soak.checker import check_log, check_reader
from harness.soak.load import Load
from harness.topics import new_topic, read_all
from harness.waiting import wait_until


@pytest.mark.soak(seconds=180)
def test_nothing_acknowledged_is_lost_doubled_or_out_of_order_when_the_broker_is_killed_again_and_again(
    tmp_path: Path, seconds: float, rng: random.Random, verdict: Callable[[list[str]], None]
) -> None:
    kills = 0
    with BrokerProcess(tmp_path) as broker:
        servers = broker.bootstrap_servers
        topic = new_topic(servers)
        loads = [Load(servers, topic, name, per_s=400) for name in ("a", "b", "c")]
        loads.append(Load(servers, topic, "alone", per_s=2000, alone=True))
        member = Member(servers, topic, f"g-{topic}")
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            before = [len(load.acked) for load in loads]
            wait_until(
                lambda: all(len(load.acked) > n for load, n in zip(loads, before, strict=True)),  # noqa: B023
                60,
                "records acknowledged after a restart",
            )
            time.sleep(rng.uniform(0.0, 2.0))
            broker.kill()
            kills += 1
            time.sleep(rng.choice((0.0, rng.uniform(0.0, 1.5))))
            broker.start()
        for load in loads:
            load.stop()
        sent = {value for load in loads for value in load.sent}
        wait_until(
            lambda: sent <= {record.value for record in member.records}, 60, "the group reading everything"
        )
        member.stop()
        records = read_all(servers, topic)
    print(f"{kills} kills, {len(sent)} records")
    problems = check_log(loads, records)
    problems += [
        f"failed: {value!r}: {error}" for load in loads for value, error in load.failed.items()
    ]  # they had two minutes each
    problems += check_reader("a second reader", records)
    held = {(record.partition, record.offset): record.value for record in records}
    problems += [
        f"inconsistent offset: the group read {record.value!r} at {record.partition}@{record.offset}"
        for record in member.records
        if held.get((record.partition, record.offset)) != record.value
    ]
    verdict(problems)
