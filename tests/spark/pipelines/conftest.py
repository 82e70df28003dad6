"""The session and the broker of a module, for pipelines that need nothing special of either."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harness.spark import sessions
from kclient.broker import EmbeddedKafka


@pytest.fixture(scope="module")
def spark() -> Iterator[Any]:
    with sessions.session() as made:
        yield made


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with EmbeddedKafka() as kafka:
        yield kafka.bootstrap_servers
