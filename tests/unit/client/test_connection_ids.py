from __future__ import annotations

import pytest

from kclient.client.connection_ids import beside, broker_id, for_coordinator, without_coordination
from kclient.common.node import Node


@pytest.mark.parametrize("number", [0, 1, 7, 2**30 - 1])
def test_every_connection_to_a_broker_tells_the_id_it_has_to_have(number: int) -> None:
    node = Node(number, "host", 9092, "rack")

    others = beside(node), for_coordinator(node)

    assert [broker_id(each.id) for each in (node, *others)] == [number] * 3
    assert len({node.id, *(each.id for each in others)}) == 3
    assert without_coordination(for_coordinator(node)) == node
    assert {(each.host, each.port, each.rack) for each in others} == {("host", 9092, "rack")}


@pytest.mark.parametrize("number", [-1, -2, -1000])
def test_a_bootstrap_server_may_be_any_broker(number: int) -> None:
    node = Node(number, "host", 9092)

    assert broker_id(node.id) is None
    assert broker_id(beside(node).id) is None
