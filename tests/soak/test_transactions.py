"""Transactions on three real brokers behind proxies that refuse, delay, cut and lose; killed, paused, fenced.

Writers commit and abort, a group copies what is committed with the offsets in its transactions. In the end every
record that was committed has one copy, and the checker has nothing to say.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.checker.loader import load as load_history
from harness.checker.log import HistoryLog
from harness.checker.report import check
from harness.real_kafka.cluster import RealCluster
from harness.real_kafka.node import missing
from harness.requirements import skip_if
from harness.soak.chaos import NetworkChaos, WorldChaos
from harness.soak.recorded import observe, read_to_end
from harness.soak.transactional_load import Copier, TransactionalClient, Writer
from harness.topics import read_all
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient, NewTopic
from kclient.client.network_client import NetworkClient
from kclient.protocol.api_keys import ApiKeys

_PARTITIONS = 3
_GROUP = "copiers"
_RECREATED = NewTopic("recreated", 2, 3)
_TOPICS = [NewTopic("in", _PARTITIONS, 3), NewTopic("out", _PARTITIONS, 3), _RECREATED]
_APIS = (
    ApiKeys.PRODUCE,
    ApiKeys.INIT_PRODUCER_ID,
    ApiKeys.ADD_PARTITIONS_TO_TXN,
    ApiKeys.ADD_OFFSETS_TO_TXN,
    ApiKeys.TXN_OFFSET_COMMIT,
    ApiKeys.END_TXN,
    ApiKeys.END_TXN,
    ApiKeys.FIND_COORDINATOR,
)
_BROKERS = {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000"}
_SETTINGS: dict[str, object] = {
    "request.timeout.ms": 2000,
    "delivery.timeout.ms": 10_000,
    "transaction.timeout.ms": 10_000,
    "linger.ms": 2,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 200,
    "reconnect.backoff.max.ms": 200,
    "max.block.ms": 3000,
}
_SETTLE_S = 120.0


def _originals(servers: str, topic: str) -> Counter[bytes]:
    records = read_all(servers, topic, isolation_level="read_committed")
    return Counter((record.value or b"").partition(b"|")[0] for record in records)


@pytest.mark.soak(seconds=3600)
@pytest.mark.parametrize("version", ["TV2", "TV1"])
def test_what_is_committed_is_read_once_and_copied_once_and_nothing_else_is(
    tmp_path: Path,
    seconds: float,
    seed: int,
    verdict: Callable[[list[str]], None],
    version: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    skip_if(missing())
    if version == "TV1":  # brokers go along with that for older clients
        monkeypatch.setattr(NetworkClient, "finalized_level", lambda self, feature: 0)
    path = tmp_path / "history.jsonl"
    log = HistoryLog.at(path)
    problems: list[str] = []
    with RealCluster(settings=_BROKERS) as cluster:
        direct = cluster.direct_servers
        with KafkaAdminClient(bootstrap_servers=direct) as admin:
            admin.create_topics(_TOPICS)
            world = WorldChaos(cluster, admin, _RECREATED, random.Random(f"{seed} world"))
            world.heal()
            servers = cluster.bootstrap_servers
            writers: list[TransactionalClient] = [
                Writer(servers, name, random.Random(f"{seed} {name}"), log, "in", _PARTITIONS, **_SETTINGS)
                for name in ("writer-1", "writer-2", "writer-3")
            ]
            copiers: list[TransactionalClient] = [
                Copier(servers, name, random.Random(f"{seed} {name}"), log, "in", "out", _GROUP, **_SETTINGS)
                for name in ("copier-1", "copier-2")
            ]
            network = NetworkChaos(cluster, random.Random(f"{seed} network"), _APIS)
            try:
                world.run(seconds)
                network.stop()
                world.heal()
                for client in writers:
                    client.end()
                for client in writers:
                    client.wait()
                started = time.monotonic()
                expected = _originals(direct, "in")
                wait_until(
                    lambda: (
                        time.monotonic() - started > _SETTLE_S
                        or _originals(direct, "out").keys() >= expected.keys()
                    ),
                    _SETTLE_S * 2,
                    "the copies",
                )
            finally:
                network.stop()
                for client in [*writers, *copiers]:
                    client.end()
            for client in copiers:
                client.wait()
            observe(admin, _GROUP, log)
        for topic in ("in", "out"):
            for read_committed in (True, False):
                read_to_end(direct, topic, log, read_committed=read_committed)
        copies = _originals(direct, "out")
    for client in [*writers, *copiers]:
        print(f"{client.name}: {dict(client.counts)}")
        problems += client.problems
    print(f"brokers: {dict(world.counts)}; network: {dict(sorted(network.counts.items()))}")
    print(f"{expected.total()} records were committed, {copies.total()} copied")
    problems += [f"missing copy: of {value!r}" for value in (expected - copies)]
    problems += [f"doubled copy: of {value!r}" for value in (copies - expected)]
    verdict(problems + [str(anomaly) for anomaly in check(load_history(path))])
