"""FindCoordinator: this broker for groups, in all forms of the request, and an error for all else."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.handlers import Handlers
from kclient.broker.apis.find_coordinator import find_coordinator
from kclient.broker.metadata.topic_names import OFFSETS_TOPIC
from kclient.protocol.messages.find_coordinator import FindCoordinatorRequest

NOT_AVAILABLE, INVALID_GROUP_ID, UNSUPPORTED_VERSION, INVALID_REQUEST = 15, 24, 35, 42
GROUP, TRANSACTION, SHARE = 0, 1, 2


def find(handlers: Handlers, *keys: str, kind: int = GROUP, version: int = 4, listener: int = 0) -> list[Any]:
    if version < 4:
        request = FindCoordinatorRequest(key=keys[0], key_type=kind)
        return [handlers.ask(find_coordinator, request, version, listener=listener)]
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=list(keys))
    found: list[Any] = handlers.ask(find_coordinator, request, version, listener=listener).coordinators
    return found


@pytest.mark.parametrize("version", range(5))
def test_this_broker_coordinates_every_group(handlers: Handlers, version: int) -> None:
    (found,) = find(handlers, "g", version=version)
    assert (found.error_code, found.node_id, found.host, found.port) == (0, 1, "inside", 9092)


def test_a_client_is_told_the_address_of_the_listener_it_came_to(handlers: Handlers) -> None:
    (found,) = find(handlers, "g", listener=1)
    assert (found.host, found.port) == ("outside", 19092)


def test_the_topic_of_offsets_is_made_for_the_first_group(handlers: Handlers) -> None:
    assert handlers.topics.cache.topic(OFFSETS_TOPIC) is None
    find(handlers, "g")
    assert handlers.topics.cache.existing_topic(OFFSETS_TOPIC).partition_count == 1


@pytest.mark.parametrize("version", [0, 3, 4])
def test_an_empty_group_id_is_refused(handlers: Handlers, version: int) -> None:
    (found,) = find(handlers, "", version=version)
    assert (found.error_code, found.node_id, found.host, found.port) == (INVALID_GROUP_ID, -1, "", -1)
    if version:
        assert found.error_message == "The group id is empty"


@pytest.mark.parametrize(
    ("kind", "error"), [(TRANSACTION, UNSUPPORTED_VERSION), (SHARE, INVALID_REQUEST), (-1, INVALID_REQUEST)]
)
@pytest.mark.parametrize("version", [1, 4])
def test_other_kinds_of_coordinators_are_refused_and_make_no_topic(
    handlers: Handlers, version: int, kind: int, error: int
) -> None:
    (found,) = find(handlers, "", kind=kind, version=version)
    assert (found.error_code, found.node_id) == (error, -1)
    assert handlers.topics.cache.topics() == []


def test_each_key_is_found_or_fails_by_itself(handlers: Handlers) -> None:
    found = find(handlers, "a", "", "b", "a")
    assert [(each.key, each.error_code, each.node_id) for each in found] == [
        ("a", 0, 1), ("", INVALID_GROUP_ID, -1), ("b", 0, 1), ("a", 0, 1),
    ]  # fmt: skip
    assert find(handlers) == []


def test_a_group_that_could_not_be_read_has_no_coordinator_for_now(handlers: Handlers) -> None:
    handlers.lose_groups()
    (found,) = find(handlers, "g")
    assert (found.error_code, found.node_id) == (NOT_AVAILABLE, -1)
