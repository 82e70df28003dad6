"""The main job on a real Apache Kafka."""

from __future__ import annotations

import pytest

from main_job import *  # noqa: F403
from real_kafka import RealKafka


@pytest.fixture
def servers(kafka: RealKafka) -> str:
    return kafka.bootstrap_servers
