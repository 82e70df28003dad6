"""A fresh embedded broker for each module of this suite."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kclient.broker import EmbeddedKafka


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    """The bootstrap servers of a broker that the tests of a module share."""
    with EmbeddedKafka() as kafka:
        yield kafka.bootstrap_servers
