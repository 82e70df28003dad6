"""Handlers of the embedded broker that fail unexpectedly, as their clients see it."""

from __future__ import annotations

import pytest

from harness.broker import requests
from harness.broker.wire import Wire, batch
from kclient.broker.embedded import EmbeddedKafka
from kclient.broker.group.coordinator import GroupCoordinator
from kclient.broker.replica.replica_manager import ReplicaManager
from kclient.errors import Errors
from kclient.protocol.messages.list_groups import ListGroupsRequest

FAULT = int(Errors.UNKNOWN_SERVER_ERROR)


def fails(*_: object, **__: object) -> None:
    raise RuntimeError("a fault of ours")


def test_a_failed_request_is_answered_and_the_next_one_of_the_connection_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with EmbeddedKafka() as kafka, Wire(kafka.bootstrap_servers) as wire:
        with monkeypatch.context() as broken:
            broken.setattr(GroupCoordinator, "list", fails)
            assert wire.ask(ListGroupsRequest(), 4).error_code == FAULT
        assert wire.ask(ListGroupsRequest(), 4).error_code == 0


def test_a_failed_write_tells_every_partition_and_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with EmbeddedKafka() as kafka, Wire(kafka.bootstrap_servers) as wire:
        requests.create(wire, "t")
        with monkeypatch.context() as broken:
            broken.setattr(ReplicaManager, "append", fails)
            assert requests.try_produce(wire, "t", batch(b"lost")).error_code == FAULT
        requests.produce(wire, "t", batch(b"kept"))
        assert requests.values(wire, "t") == [b"kept"]
