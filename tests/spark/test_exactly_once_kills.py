"""kill -9 of executors, their Python, driver and broker at random moments: each row is read once in the end.

`SOAK_SECONDS` makes it short; `SOAK_SEED` repeats a run.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.checker.log import HistoryLog
from harness.real_kafka.broker import RealKafka
from harness.real_kafka.node import missing
from harness.requirements import skip_if
from harness.soak.load import Load
from harness.spark import cluster_job, sessions
from harness.spark.cluster_job import ClusterJob, kill_one
from harness.topics import new_topic, read_all
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient, OffsetSpec
from kclient.common.topic_partition import TopicPartition

_SHORT = 5
_LONG = 100
_SEED = int(os.environ.get("SOAK_SEED") or random.SystemRandom().randrange(10**9))
_PARTITIONS = 3
# Not imported: it needs PySpark.
_PROGRAM = Path(cluster_job.__file__).with_name("copy_job.py")
_DEADLINE_S = 300.0
_KINDS = ("executor", "python", "driver", "broker")
_WEIGHTS = (4, 4, 2, 1)


def committed(servers: str, topic: str) -> Counter[bytes]:
    records = read_all(servers, topic, isolation_level="read_committed")
    return Counter(record.value or b"" for record in records)


def end_of(admin: KafkaAdminClient, topic: str) -> int:
    partitions = {TopicPartition(topic, number): OffsetSpec.LATEST for number in range(_PARTITIONS)}
    ends = admin.list_offsets(partitions, isolation_level="read_committed")
    return sum(each.offset for each in ends.values())


class Kills:
    """Kills in an order of chance that has each kind in it."""

    def __init__(self, rng: random.Random, broker: RealKafka, job: ClusterJob) -> None:
        self.counts: Counter[str] = Counter()
        self._rng = rng
        self._broker = broker
        self._job = job

    def order(self, count: int) -> list[str]:
        """Return `count` kinds, each once at least."""
        chosen = [*_KINDS, *self._rng.choices(_KINDS, _WEIGHTS, k=max(count - len(_KINDS), 0))]
        self._rng.shuffle(chosen)
        return chosen

    def kill(self, kind: str) -> None:
        """Kill it, and start what does not start by itself."""
        if kind == "driver":
            self._job.kill()
            self._job.start()
        elif kind == "broker":
            self._broker.kill()
            self._broker.start()
        else:
            pids = self._job.executors() if kind == "executor" else self._job.workers()
            if not kill_one(pids, self._rng.randrange(1000)):
                kind = f"no {kind}"
        self.counts[kind] += 1

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for something that only happens while the program runs."""

        def look() -> bool:
            self._revive()
            return condition()

        try:
            wait_until(look, _DEADLINE_S, what)
        except AssertionError:
            print(self._job.said())
            raise

    def _revive(self) -> None:
        """Start the program again if it has ended by itself, as who runs it would."""
        if self._job.ended:
            self.counts["ended by itself"] += 1
            self._job.kill()
            self._job.start()


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_each_row_is_there_once_whatever_is_killed(tmp_path: Path) -> None:
    sessions.need()
    skip_if(missing())
    rng = random.Random(_SEED)
    print(f"SOAK_SEED={_SEED}")
    kills = _SHORT if os.environ.get("SOAK_SECONDS") else _LONG
    with RealKafka() as broker, KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        servers = broker.bootstrap_servers
        source, sink = new_topic(servers, 2), new_topic(servers, _PARTITIONS)
        arguments = (servers, source, sink, str(tmp_path / "checkpoint"), "exactly_once")
        with ClusterJob(_PROGRAM, tmp_path, *arguments) as job:
            killer = Kills(rng, broker, job)
            load = Load(servers, source, "load", HistoryLog.at(tmp_path / "history.jsonl"), per_s=300)
            try:
                for kind in killer.order(kills):
                    before = end_of(admin, sink)
                    killer.wait(lambda: end_of(admin, sink) > before, f"rows before the kill of {kind}")  # noqa: B023
                    time.sleep(rng.uniform(0.0, 1.5))
                    killer.kill(kind)
                    print(f"{killer.counts.total()} of {kills}: {kind}", flush=True)
            finally:
                load.stop()
            expected = committed(servers, source)
            killer.wait(lambda: committed(servers, sink).total() >= expected.total(), "all rows")
        found = committed(servers, sink)
    print(f"kills: {dict(killer.counts)}; {expected.total()} rows")
    assert (found - expected, expected - found) == (Counter(), Counter()), f"SOAK_SEED={_SEED}"
