from __future__ import annotations

import pytest

from harness.network.client_parts import ClientParts
from kclient.client.metadata import Metadata
from kclient.client.metadata_schedule import MetadataSchedule
from kclient.client.node_choice import NodeChoice
from kclient.protocol.messages.fetch import FetchRequest
from kclient.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker
from kclient.utils.backoff import ExponentialBackoff


@pytest.fixture
def choice(parts: ClientParts) -> NodeChoice:
    metadata = Metadata(MetadataSchedule(ExponentialBackoff(5, 50), 300_000))
    brokers = [MetadataResponseBroker(node_id=n, host="host", port=9000 + n) for n in (1, 2, 3)]
    metadata.update(MetadataResponse(brokers=brokers), 0)
    return NodeChoice(metadata, parts.states, parts.pipeline)


def chosen(choice: NodeChoice, now_ms: int = 0) -> set[int]:
    found = [choice.least_loaded(now_ms) for _ in range(50)]
    return {node.id for node in found if node is not None}


def test_a_connected_node_with_the_fewest_requests_is_best(parts: ClientParts, choice: NodeChoice) -> None:
    assert chosen(choice) == {1, 2, 3}
    for node_id in (1, 2):
        parts.make_ready(node_id)
    assert chosen(choice) == {1, 2}
    parts.transmit(node_id=1)
    assert chosen(choice) == {2}
    parts.transmit(node_id=2)
    parts.transmit(node_id=2)
    assert chosen(choice) == {1}


def test_then_one_that_is_being_connected_then_the_one_untried_for_longest(
    parts: ClientParts, choice: NodeChoice
) -> None:
    for node_id, failed_ms in ((1, 20), (2, 10), (3, 30)):
        parts.states.connecting(node_id, "host", 0)
        parts.states.disconnected(node_id, failed_ms)
    assert chosen(choice, 30) == set()
    assert chosen(choice, 5000) == {2}
    parts.states.connecting(3, "host", 5000)
    assert choice.is_any_preparing()
    assert not choice.is_any_connected()
    assert chosen(choice, 5000) == {3}


def test_beside_a_fetch_there_is_a_second_connection(parts: ClientParts, choice: NodeChoice) -> None:
    for node_id in (1, 2, 3):
        parts.make_ready(node_id)
        parts.transmit(FetchRequest(max_wait_ms=60_000), node_id=node_id, version=12)
    assert choice.is_any_connected()
    assert not choice.is_any_preparing()
    beside = choice.least_loaded(0)
    assert beside is not None
    assert beside.id < 0
    parts.states.connecting(beside.id, "host", 0)
    assert choice.is_any_preparing()
    assert chosen(choice) == {beside.id}


def test_without_brokers_there_is_nothing_to_choose(parts: ClientParts) -> None:
    metadata = Metadata(MetadataSchedule(ExponentialBackoff(5, 50), 300_000))
    nobody = NodeChoice(metadata, parts.states, parts.pipeline)
    assert nobody.least_loaded(0) is None
    assert not nobody.is_any_connected()
