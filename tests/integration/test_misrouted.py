"""Connections that lead to another broker than the one that is meant (KIP-1242), with scripted brokers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harness.network.driven_client import DrivenClient
from harness.network.scripted_broker import Reply, ScriptedBroker
from kclient.errors import DisconnectError, Errors
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.header import RequestHeader
from kclient.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from kclient.protocol.messages.heartbeat import HeartbeatRequest


@pytest.fixture
def broker() -> Iterator[ScriptedBroker]:
    with ScriptedBroker(node_id=5) as made:
        yield made


def asked(broker: ScriptedBroker) -> list[tuple[str | None, int]]:
    """Cluster and broker that each connection asked for."""
    return [(request.cluster_id, request.node_id) for request in broker.received(ApiKeys.API_VERSIONS)]


def refuse_meant(broker: ScriptedBroker, times: int) -> None:
    """Refuse the first `times` connections that say which broker they mean."""
    left = [times]

    def answer(header: RequestHeader, message: ApiVersionsRequest) -> Any:
        if message.node_id >= 0 and left[0]:
            left[0] -= 1
            return ApiVersionsResponse(error_code=Errors.REBOOTSTRAP_REQUIRED)
        return broker._answer_api_versions(header, message)

    broker.on(ApiKeys.API_VERSIONS, answer)


def test_a_broker_is_asked_for_itself_once_its_cluster_is_known(broker: ScriptedBroker) -> None:
    with DrivenClient(broker.bootstrap) as driven:
        driven.node(5)

    assert asked(broker) == [(None, -1), ("scripted", 5)]


@pytest.mark.parametrize(
    "settings", [{"metadata_cluster_check_enable": False}, {"metadata_recovery_strategy": "none"}]
)
def test_nothing_is_asked_where_that_is_switched_off(
    broker: ScriptedBroker, settings: dict[str, Any]
) -> None:
    with DrivenClient(broker.bootstrap, **settings) as driven:
        driven.node(5)

    assert asked(broker) == [(None, -1)] * 2


def test_a_refused_connection_is_followed_by_a_new_beginning(broker: ScriptedBroker) -> None:
    refuse_meant(broker, 2)

    with DrivenClient(broker.bootstrap) as driven:
        driven.node(5)

        driven.update_metadata()

    # Also the retries say who is meant, and the metadata come from the bootstrap servers again.
    found = asked(broker)
    assert found.count(("scripted", 5)) >= 3
    assert found.count((None, -1)) >= 2


def test_what_is_in_flight_elsewhere_when_a_connection_is_misrouted_ends_as_disconnected(
    broker: ScriptedBroker,
) -> None:
    with ScriptedBroker(node_id=6) as other:
        broker.brokers = other.brokers = [broker, other]
        refuse_meant(other, 1)
        broker.answer(ApiKeys.HEARTBEAT, Reply.NOTHING)
        with DrivenClient(broker.bootstrap) as driven:
            driven.send(HeartbeatRequest(group_id="g", member_id="m"), node_id=5)
            driven.poll_until(lambda: broker.received(ApiKeys.HEARTBEAT))
            driven.node(6)

            response = driven.take()

    assert response.disconnected
    assert isinstance(response.failure(), DisconnectError)
