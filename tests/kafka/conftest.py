"""One real Apache Kafka broker for the whole run; without Java or Maven these tests are skipped (in CI they fail)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import real_kafka

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.kafka)
            item.add_marker(pytest.mark.xdist_group("kafka"))


@pytest.fixture(scope="session")
def kafka() -> Iterator[real_kafka.RealKafka]:
    reason = real_kafka.missing()
    if reason is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    with real_kafka.RealKafka() as running:
        yield running
