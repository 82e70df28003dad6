"""One real Apache Kafka broker and one cluster for the whole run, started when a test wants them.

Without Java or Maven these tests are skipped (in CI they fail).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.network.proxy import FaultProxy
from harness.real_kafka.broker import RealKafka
from harness.real_kafka.cluster import RealCluster
from harness.real_kafka.node import missing
from harness.requirements import skip_if

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # or xdist has looked for groups before
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.kafka)
            # Those with the one broker of the whole run go to one worker, those with brokers of their own to another.
            shared = "kafka" in getattr(item, "fixturenames", ())
            item.add_marker(pytest.mark.xdist_group("kafka" if shared else "kafka-apart"))


@pytest.fixture(scope="session")
def kafka() -> Iterator[RealKafka]:
    skip_if(missing())
    # Share groups of tests may lock records for a moment only, and hear of their assignment at once.
    quick = {
        "group.share.min.record.lock.duration.ms": "1000",
        "group.share.min.heartbeat.interval.ms": "200",
        "group.share.heartbeat.interval.ms": "500",
    }
    with RealKafka(settings=quick) as running:
        yield running


@pytest.fixture
def kafka_proxy(kafka: RealKafka) -> Iterator[FaultProxy]:
    """A proxy before the real broker: whoever takes it as bootstrap server reaches the broker through it alone."""
    with FaultProxy(("127.0.0.1", kafka.behind_proxy_port), port=kafka.proxy_port) as proxy:
        yield proxy


@pytest.fixture(scope="session")
def kafka_cluster() -> Iterator[RealCluster]:
    """Three brokers and controllers for the whole run; tests leave all of them running, in sync and without rules."""
    skip_if(missing())
    with RealCluster(controllers=3) as running:
        yield running
