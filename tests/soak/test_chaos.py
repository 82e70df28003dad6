"""Three real brokers behind proxies that refuse, delay, cut and lose; killed, paused; and a topic that comes and goes.

Kafka's own tool reads the logs at the end, those of the deleted topics included.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.checker.history import Anomaly, History, Place, Read
from harness.checker.loader import load as load_history
from harness.checker.log import HistoryLog
from harness.checker.report import check
from harness.real_kafka.cluster import RealCluster
from harness.real_kafka.logs import PartitionLog, read_logs
from harness.real_kafka.node import missing
from harness.requirements import skip_if
from harness.soak.chaos import NetworkChaos, WorldChaos
from harness.soak.numbered_load import NumberedLoad
from harness.soak.recorded import write_logs
from kclient.admin import KafkaAdminClient, NewTopic

_SETTINGS: dict[str, object] = {
    "request.timeout.ms": 2000,
    "delivery.timeout.ms": 30_000,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 200,
    "reconnect.backoff.max.ms": 200,
    "max.block.ms": 2000,
}
_EXPIRING = {"request.timeout.ms": 700, "delivery.timeout.ms": 1500}
_KEEP_DELETED = {"log.segment.delete.delay.ms": "1000000000"}
_RECREATED = NewTopic("recreated", 2, 3)
_TOPICS = [
    NewTopic("plain", 3, 3),
    NewTopic("narrow", 2, 3, configs={"max.message.bytes": "2000"}),  # batches are split
    _RECREATED,
]
_PLACES = [Place(topic.name, partition) for topic in _TOPICS for partition in range(topic.num_partitions)]


@pytest.mark.soak(seconds=3600)
def test_every_record_is_written_once_and_in_order_or_failed_to_its_caller(
    tmp_path: Path, seconds: float, seed: int, verdict: Callable[[list[str]], None]
) -> None:
    skip_if(missing())
    path = tmp_path / "history.jsonl"
    log = HistoryLog.at(path)
    with RealCluster(settings=_KEEP_DELETED) as cluster:
        with KafkaAdminClient(bootstrap_servers=cluster.direct_servers) as admin:
            admin.create_topics(_TOPICS)
            world = WorldChaos(cluster, admin, _RECREATED, random.Random(f"{seed} world"))
            world.heal()
            loads = [
                _load(cluster, seed, log, "at once", **{"linger.ms": 0}),
                _load(cluster, seed, log, "lingering", **{"linger.ms": 5, "compression.type": "lz4"}),
                _load(cluster, seed, log, "expiring", **{"linger.ms": 5, **_EXPIRING}),
                _load(cluster, seed, log, "impatient", **{"linger.ms": 0, **_EXPIRING}),
                _load(cluster, seed, log, "alone", alone=True, **{"linger.ms": 0}),
            ]
            network = NetworkChaos(cluster, random.Random(f"{seed} network"))
            try:
                world.run(seconds)
                network.stop()
                world.heal()
            finally:
                network.stop()
                for load in loads:
                    load.end()
            for load in loads:
                load.wait()
            world.heal()
        for broker in cluster.brokers:
            broker.kill()
        topics = [topic.name for topic in _TOPICS]
        logs = read_logs([broker.log_dir for broker in cluster.brokers], topics)
    write_logs(log, logs, _PLACES)
    history = load_history(path)
    _tell(network, world, history)
    problems = [problem for load in loads for problem in load.problems]
    problems += [f"damaged: {each.topic}-{each.partition}: {what}" for each in logs for what in each.damage]
    verdict(problems + [_with_batches(anomaly, logs) for anomaly in check(history)])


def _load(
    cluster: RealCluster, seed: int, log: HistoryLog, name: str, *, alone: bool = False, **settings: object
) -> NumberedLoad:
    rng = random.Random(f"{seed} {name}")
    return NumberedLoad(
        cluster.bootstrap_servers,
        name,
        _PLACES,
        rng,
        log,
        per_s=100,
        alone=alone,
        **{**_SETTINGS, **settings},
    )


def _tell(network: NetworkChaos, world: WorldChaos, history: History) -> None:
    """Print what happened."""
    print(f"brokers and topics: {dict(world.counts)}")
    print(f"network: {dict(sorted(network.counts.items()))}")
    for name in history.clients:
        sends = [send for send in history.sends if send.process == name]
        if sends:
            kinds = Counter(send.error.partition(":")[0] for send in sends if send.outcome != "ok")
            unknown = sum(send.outcome == "unknown" for send in sends)
            print(
                f"{name}: {len(sends)} records, failed {dict(kinds)}, {unknown} of them may have been written"
            )


def _with_batches(anomaly: Anomaly, logs: list[PartitionLog]) -> str:
    """Text of an anomaly with the batches of the records that prove it."""
    lines = [str(anomaly)]
    for read in [each for each in anomaly.evidence if isinstance(each, Read)]:
        for log in logs:
            if (log.topic, log.partition, log.topic_id) == read.place:
                found = (record for record in log.records if record.offset == read.offset)
                lines += [f"{read.place}@{read.offset} is of {record.batch}" for record in found]
    return "\n    ".join(lines)
