"""The main job on a real Apache Kafka."""

from __future__ import annotations

import pytest

from harness.real_kafka.broker import RealKafka
from harness.scenarios.main_job import *  # noqa: F403


@pytest.fixture
def servers(kafka: RealKafka) -> str:
    return kafka.bootstrap_servers


@pytest.fixture(params=["classic", "consumer"])
def protocol(request: pytest.FixtureRequest) -> str:
    return str(request.param)
