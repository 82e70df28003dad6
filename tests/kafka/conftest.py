"""One real Apache Kafka broker for the whole run; without Java or Maven these tests are skipped (in CI they fail)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import real_kafka
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
