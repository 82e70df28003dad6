"""The main job on the embedded broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.scenarios.main_job import *  # noqa: F403
from kclient.broker.embedded import EmbeddedKafka


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with EmbeddedKafka() as kafka:
        yield kafka.bootstrap_servers
