"""The benchmark runs and reports; what it measures is nobody's business here."""

from __future__ import annotations

import json
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from real_kafka import RealKafka

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

pytestmark = [pytest.mark.peers, pytest.mark.heavy]


@pytest.mark.timeout(300)
def test_every_client_produces_and_consumes_and_is_reported(
    kafka: RealKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("kafka.producer", "aiokafka", "confluent_kafka"):  # a folder here is called kafka, too
        pytest.importorskip(module)
    from benchmarks import report
    from benchmarks.case import Case
    from benchmarks.comparison import CLIENTS, OPERATIONS, Comparison

    told: list[str] = []
    comparison = Comparison(
        kafka.bootstrap_servers, CLIENTS, OPERATIONS, records=3000, runs=1, tell=told.append
    )
    lines = comparison.of(Case(size=50, codec="lz4", partitions=2))
    assert [(line.operation, line.client) for line in lines] == [
        (operation, client) for operation in OPERATIONS for client in CLIENTS
    ]
    assert len(told) == len(lines)

    output = StringIO()
    Console(width=160, file=output).print(report.table(lines))
    text = output.getvalue()
    assert text.count("50 B, lz4, 2 partitions") == len(lines)
    assert "of 4x" in text
    assert "of 3x" in text

    monkeypatch.setattr(report, "RESULTS", tmp_path / "results")
    written = json.loads(report.write(lines).read_text(encoding="utf-8"))
    assert [line["client"] for line in written["lines"]] == [line.client for line in lines]
