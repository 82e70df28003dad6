"""Servers for the tests of connections."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.broker.servers import ServerHarness


@pytest.fixture
def harness() -> Iterator[ServerHarness]:
    made = ServerHarness()
    yield made
    made.close()
