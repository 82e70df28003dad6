"""Three real brokers behind proxies that refuse, delay, cut and lose; killed, paused; and a topic that comes and goes.

Kafka's own tool reads the logs at the end, those of the deleted topics included.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import pytest

from harness.real_kafka.cluster import RealCluster
from harness.real_kafka.logs import read_logs
from harness.real_kafka.node import missing
from harness.requirements import skip_if
from harness.soak.chaos import NetworkChaos, WorldChaos
from harness.soak.checker import UNKNOWN, check_accounts
from harness.soak.numbered_load import NumberedLoad
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


@pytest.mark.soak(seconds=3600)
def test_every_record_is_written_once_and_in_order_or_failed_to_its_caller(
    seconds: float, seed: int, verdict: Callable[[list[str]], None]
) -> None:
    skip_if(missing())
    with RealCluster(settings=_KEEP_DELETED) as cluster:
        with KafkaAdminClient(bootstrap_servers=cluster.direct_servers) as admin:
            admin.create_topics(_TOPICS)
            world = WorldChaos(cluster, admin, _RECREATED, random.Random(f"{seed} world"))
            world.heal()
            loads = [
                _load(cluster, seed, "at once", **{"linger.ms": 0}),
                _load(cluster, seed, "lingering", **{"linger.ms": 5, "compression.type": "lz4"}),
                _load(cluster, seed, "expiring", **{"linger.ms": 5, **_EXPIRING}),
                _load(cluster, seed, "impatient", **{"linger.ms": 0, **_EXPIRING}),
                _load(cluster, seed, "alone", alone=True, **{"linger.ms": 0}),
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
    _tell(network, world, loads)
    problems = [problem for load in loads for problem in load.problems]
    verdict(problems + check_accounts([load.account for load in loads], logs))


def _load(
    cluster: RealCluster, seed: int, name: str, *, alone: bool = False, **settings: object
) -> NumberedLoad:
    places = [(topic.name, partition) for topic in _TOPICS for partition in range(topic.num_partitions)]
    rng = random.Random(f"{seed} {name}")
    return NumberedLoad(
        cluster.bootstrap_servers, name, places, rng, per_s=100, alone=alone, **{**_SETTINGS, **settings}
    )


def _tell(network: NetworkChaos, world: WorldChaos, loads: list[NumberedLoad]) -> None:
    """Print what happened."""
    print(f"brokers and topics: {dict(world.counts)}")
    print(f"network: {dict(sorted(network.counts.items()))}")
    for load in loads:
        errors = load.account.errors.values()
        kinds = Counter(error.partition(":")[0] for error in errors)
        unknown = sum(UNKNOWN in error for error in errors)
        print(
            f"{load.account.name}: {len(load.account)} records, failed {dict(kinds)}, {unknown} of them may have been "
            "written"
        )
