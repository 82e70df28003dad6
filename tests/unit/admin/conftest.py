"""A scripted broker and an admin client there, for what is seen best on the wire."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.network.scripted_broker import ScriptedBroker
from kclient.admin import KafkaAdminClient


@pytest.fixture
def scripted() -> Iterator[ScriptedBroker]:
    with ScriptedBroker() as made:
        yield made
        assert made.errors == []


@pytest.fixture
def client(scripted: ScriptedBroker) -> Iterator[KafkaAdminClient]:
    settings = {"bootstrap.servers": scripted.bootstrap, "retry.backoff.ms": 1, "retry.backoff.max.ms": 5}
    with KafkaAdminClient(settings) as made:
        yield made
