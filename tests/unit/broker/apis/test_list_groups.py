"""ListGroups: filters by state and by type."""

from __future__ import annotations

import pytest

from harness.broker.handlers import Handlers
from kclient.broker.apis.list_groups import list_groups
from kclient.broker.group.offsets import Committer, OffsetToCommit
from kclient.common.topic_partition import TopicPartition
from kclient.protocol.messages.list_groups import ListGroupsRequest


@pytest.fixture
def groups(handlers: Handlers) -> Handlers:
    """A group with a member, one with nothing but an offset, and one whose members are no consumers."""
    handlers.topics.create()
    handlers.member("busy")
    handlers.member("connect", protocol_type="connect")
    handlers.groups.offsets.commit("idle", Committer(), {TopicPartition("t", 0): OffsetToCommit(1)})
    return handlers


def listed(handlers: Handlers, version: int = 5, **filters: list[str]) -> dict[str, str]:
    """State by name."""
    answer = handlers.ask(list_groups, ListGroupsRequest(**filters), version)
    assert answer.error_code == 0
    return {group.group_id: group.group_state for group in answer.groups}


def test_without_filters_all_groups_are_listed(groups: Handlers) -> None:
    assert listed(groups) == {"busy": "Stable", "connect": "Stable", "idle": "Empty"}


@pytest.mark.parametrize("version", [0, 3])
def test_versions_without_filters_list_all_groups_without_their_states(
    groups: Handlers, version: int
) -> None:
    assert listed(groups, version) == {"busy": "", "connect": "", "idle": ""}


@pytest.mark.parametrize(
    ("states", "names"),
    [
        (["Stable"], ["busy", "connect"]),
        (["stABLE"], ["busy", "connect"]),
        (["Empty", "Dead"], ["idle"]),
        (["Dead"], []),
        (["no such state"], []),
        ([""], []),
    ],
)
def test_a_state_that_is_named_is_listed_in_upper_or_lower_case(
    groups: Handlers, states: list[str], names: list[str]
) -> None:
    assert sorted(listed(groups, 4, states_filter=states)) == names


@pytest.mark.parametrize(
    ("types", "count"), [(["classic"], 3), (["CLASSIC"], 3), (["consumer"], 0), (["share", "Classic"], 3)]
)
def test_a_type_that_is_named_is_listed_in_upper_or_lower_case(
    groups: Handlers, types: list[str], count: int
) -> None:
    assert len(listed(groups, types_filter=types)) == count


def test_a_group_has_to_pass_both_filters(groups: Handlers) -> None:
    assert list(listed(groups, states_filter=["empty"], types_filter=["classic"])) == ["idle"]
    assert listed(groups, states_filter=["empty"], types_filter=["consumer"]) == {}


def test_the_type_of_protocol_tells_consumers_from_others(groups: Handlers) -> None:
    found = groups.ask(list_groups, ListGroupsRequest(), 0).groups
    assert {group.group_id: group.protocol_type for group in found} == {
        "busy": "consumer",
        "connect": "connect",
        "idle": "",
    }
