"""A scripted broker with three partitions, and producers for it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.network.scripted_broker import ScriptedBroker
from harness.producer.model import Server


@pytest.fixture
def server() -> Iterator[Server]:
    with ScriptedBroker(topics={"t": 3}) as broker:
        yield Server(broker)
