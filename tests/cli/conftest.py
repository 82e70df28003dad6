"""A broker and a topic for the commands."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.topics import new_topic
from kclient.broker import EmbeddedKafka


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with EmbeddedKafka() as kafka:
        yield kafka.bootstrap_servers


@pytest.fixture
def topic(servers: str) -> str:
    return new_topic(servers, 2)
