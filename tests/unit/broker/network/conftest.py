"""Servers for the tests of connections."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.broker.servers import ServerBed


@pytest.fixture
def bed() -> Iterator[ServerBed]:
    made = ServerBed()
    yield made
    made.close()
