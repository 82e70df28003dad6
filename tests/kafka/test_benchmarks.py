"""The benchmark runs and reports; what it measures is nobody's business here."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.broker.process import BrokerProcess
from harness.real_kafka.broker import RealKafka

pytestmark = [pytest.mark.peers, pytest.mark.heavy]


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_every_client_does_what_it_can_and_is_reported(
    kafka: RealKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("kafka.producer", "aiokafka", "confluent_kafka"):  # a folder here is called kafka, too
        pytest.importorskip(module)
    from benchmarks.case import Case
    from benchmarks.clients import CLIENTS, FIRST
    from benchmarks.comparison import Comparison
    from benchmarks.plan import plan

    # Gigabytes before each run, for figures that nobody reads here.
    monkeypatch.setattr("benchmarks.comparison.make_present", lambda: 0)
    told: list[str] = []
    compared = Comparison(kafka.bootstrap_servers, list(CLIENTS), 1, told.append, 20_000)
    # Of the shapes one that is sent and one that is read: each is a process of its own.
    operations = (*FIRST, "send_headers", "iterate")
    stages = list(plan(operations, [200], ["lz4"], [2], [16_384]))
    assert stages[0].case == Case(200, "lz4", 2)
    lines = [line for stage in stages for line in compared.of(stage)]
    assert compared.failed == []
    # What a build may lack is its native body and pyarrow; the peers are all installed.
    assert {name for _, name in compared.absent} <= {"kclient", "kclient_pure"}
    assert {(line.operation, line.client) for line in lines} == {
        (operation, name)
        for name, client in CLIENTS.items()
        for operation in client.operations
        if operation in operations and (operation, name) not in compared.absent
    }
    assert len(told) >= len(lines)
    for line in lines:
        assert line.rss_bytes > 1_000_000
        assert (line.p50_ms is not None) == (line.operation in {"round_trip", "busy"})


@pytest.mark.soak
@pytest.mark.timeout(300)
def test_the_embedded_broker_is_compared_with_a_real_one(
    kafka: RealKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("confluent_kafka")
    from benchmarks.embedded_comparison import KAFKA, OURS, Server, ServerComparison

    monkeypatch.setattr("benchmarks.embedded_comparison.make_present", lambda: 0)
    told: list[str] = []
    with BrokerProcess(tmp_path) as ours:
        servers = {
            OURS: Server(ours.bootstrap_servers, ours.pid),
            KAFKA: Server(kafka.bootstrap_servers, kafka.pid),
        }
        compared = ServerComparison(servers, 20_000, 1, told.append)
        compared.measure()
    assert compared.failed == []
    assert {name: len(runs) for name, runs in compared.measured.items()} == {
        (operation, name): 1 for operation in ("produce", "consume") for name in servers
    }
    assert len(list(compared.rows())) == len(list(compared.targets())) == 4


@pytest.mark.soak
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["start", "connections", "partitions 1024", "large_log 0.01"])
def test_the_figures_of_the_embedded_broker_are_taken(name: str) -> None:
    from benchmarks import embedded_figures

    figures = embedded_figures.of(*name.split())
    assert figures
    assert all(figure.value >= 0 for figure in figures)
