"""One real Apache Kafka broker and one cluster for the whole run, started when a test wants them.

Without Java or Maven these tests are skipped (in CI they fail).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import real_cluster
import real_kafka
from faults import FaultProxy
from helpers import skip_if

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.kafka)
            item.add_marker(pytest.mark.xdist_group("kafka"))


@pytest.fixture(scope="session")
def kafka() -> Iterator[real_kafka.RealKafka]:
    skip_if(real_kafka.missing())
    with real_kafka.RealKafka() as running:
        yield running


@pytest.fixture
def kafka_proxy(kafka: real_kafka.RealKafka) -> Iterator[FaultProxy]:
    """A proxy before the real broker: whoever takes it as bootstrap server reaches the broker through it alone."""
    with FaultProxy(("127.0.0.1", kafka.behind_proxy_port), port=kafka.proxy_port) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def kafka_cluster() -> Iterator[real_cluster.RealCluster]:
    """Three brokers and a controller for the whole run; tests leave all of them running, in sync and without rules."""
    skip_if(real_kafka.missing())
    with real_cluster.RealCluster() as running:
        yield running
