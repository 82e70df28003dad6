"""Transactions on three real brokers behind proxies that refuse, delay, cut and lose; killed, paused, fenced.

Writers commit and abort, a group copies what is committed with the offsets in its transactions; and a bank, whose
tellers come, leave, are killed and stopped, books what is requested. In the end every record that was committed has one
copy, every request one debit and one credit, and the checker has nothing to say.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from harness.checker.log import HistoryLog
from harness.checker.report import check, permitted
from harness.real_kafka.cluster import RealCluster
from harness.real_kafka.node import missing
from harness.requirements import skip_if
from harness.soak.bank import PARTITIONS, REQUESTS, TELLERS, TRANSFERS, Auditor, Ledger
from harness.soak.chaos import NetworkChaos, WorldChaos
from harness.soak.churn import history_of
from harness.soak.load import Load
from harness.soak.recorded import observe, read_to_end
from harness.soak.tellers import Tellers
from harness.soak.transactional_load import Copier, TransactionalClient, Writer
from harness.topics import read_all
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient, NewTopic
from kclient.client.network_client import NetworkClient
from kclient.protocol.api_keys import ApiKeys

_GROUP = "copiers"
_RECREATED = NewTopic("recreated", 2, 3)
_WRITTEN = ("in", "out", REQUESTS, TRANSFERS)
_TOPICS = [*(NewTopic(name, PARTITIONS, 3) for name in _WRITTEN), _RECREATED]
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
_PATIENCE: dict[str, object] = {
    "request.timeout.ms": 2000,
    "delivery.timeout.ms": 10_000,
    "linger.ms": 2,
    "retry.backoff.ms": 20,
    "retry.backoff.max.ms": 200,
    "reconnect.backoff.max.ms": 200,
    "max.block.ms": 3000,
}
_SETTINGS = {**_PATIENCE, "transaction.timeout.ms": 6000}
_REQUESTS_PER_S = 10
_SETTLE_S = 120.0


def _originals(servers: str, topic: str) -> Counter[bytes]:
    records = read_all(servers, topic, isolation_level="read_committed")
    return Counter((record.value or b"").partition(b"|")[0] for record in records)


def _ledger(servers: str) -> Ledger:
    ledger = Ledger()
    ledger.add(read_all(servers, TRANSFERS, isolation_level="read_committed"))
    return ledger


def _settle(enough: Callable[[], bool], what: str) -> None:
    """Wait for what is still to come, but not for ever: the verdict says what is missing."""
    started = time.monotonic()
    wait_until(lambda: time.monotonic() - started > _SETTLE_S or enough(), _SETTLE_S * 2, what)


@pytest.mark.soak(seconds=3600)
@pytest.mark.parametrize("version", ["TV2", "TV1"])
def test_what_is_committed_is_read_copied_and_booked_once_and_nothing_else_is(
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
    with RealCluster(settings=_BROKERS) as cluster:
        servers, direct = cluster.bootstrap_servers, cluster.direct_servers
        with KafkaAdminClient(bootstrap_servers=direct) as admin:
            admin.create_topics(_TOPICS)
            world = WorldChaos(cluster, admin, _RECREATED, random.Random(f"{seed} world"))
            world.heal()
            writers: list[TransactionalClient] = [
                Writer(servers, name, random.Random(f"{seed} {name}"), log, "in", PARTITIONS, **_SETTINGS)
                for name in ("writer-1", "writer-2", "writer-3")
            ]
            copiers: list[TransactionalClient] = [
                Copier(servers, name, random.Random(f"{seed} {name}"), log, "in", "out", _GROUP, **_SETTINGS)
                for name in ("copier-1", "copier-2")
            ]
            with ExitStack() as ends:
                for client in [*writers, *copiers]:
                    ends.callback(client.end)
                customer = Load(servers, REQUESTS, "customer", log, per_s=_REQUESTS_PER_S, **_PATIENCE)
                tellers = Tellers(tmp_path, servers, seed, version, log, _SETTINGS)
                ends.callback(tellers.end)
                auditor = Auditor(servers, direct, log)
                ends.callback(auditor.stop)
                wait_until(
                    lambda: all(client.counts["committed"] for client in [*writers, *copiers]),
                    _SETTLE_S,
                    "the first commits",
                )
                network = NetworkChaos(cluster, random.Random(f"{seed} network"), _APIS)
                ends.callback(network.stop)
                world.run(seconds)
                network.stop()
                world.heal()
                for client in writers:
                    client.end()
                for client in writers:
                    client.wait()
                customer.stop()
                tellers.stop()
                expected, requests = _originals(direct, "in"), _originals(direct, REQUESTS)
                _settle(lambda: _originals(direct, "out").keys() >= expected.keys(), "the copies")
                _settle(lambda: _ledger(direct).booked.keys() >= requests.keys(), "the bookings")
            for client in copiers:
                client.wait()
            for group in (_GROUP, TELLERS):
                observe(admin, group, log)
        for topic in _WRITTEN:
            for read_committed in (True, False):
                read_to_end(direct, topic, log, read_committed=read_committed)
        copies, ledger = _originals(direct, "out"), _ledger(direct)
    history = history_of(tellers.members, path)
    problems = customer.recorded.problems + tellers.problems + auditor.problems
    for client in [*writers, *copiers]:
        print(f"{client.name}: {dict(client.counts)}")
        problems += client.problems
    booking = Counter(each.outcome for each in history.transactions if each.process.startswith("teller"))
    print(
        f"tellers: {dict(tellers.counts)}, transactions {dict(booking)}; auditor: {dict(auditor.audits.counts)}"
    )
    print(f"brokers: {dict(world.counts)}; network: {dict(sorted(network.counts.items()))}")
    print(f"{expected.total()} records were committed, {copies.total()} copied")
    print(f"{requests.total()} transfers were requested, {len(ledger.booked)} booked")
    print(f"cycles that Kafka permits: {dict(Counter(each.kind for each in permitted(history)))}")
    problems += [f"missing copy: of {value!r}" for value in (expected - copies)]
    problems += [f"doubled copy: of {value!r}" for value in (copies - expected)]
    problems += ledger.problems(requests)
    verdict(problems + [str(anomaly) for anomaly in check(history)])
