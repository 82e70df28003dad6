"""A group's states, and how its members choose a protocol."""

from __future__ import annotations

import pytest

from kclient.broker.group.group import VALID_PREVIOUS, Group, GroupState
from kclient.broker.group.member import Member
from kclient.errors import FencedInstanceIdError, IllegalStateError, UnknownMemberIdError


def member(name: str, *protocols: str, instance: str | None = None) -> Member:
    return Member(
        name, instance, "c", "/h", 1000, 1000, "consumer", [(p, b"") for p in protocols or ("range",)]
    )


@pytest.mark.parametrize("target", GroupState)
@pytest.mark.parametrize("source", GroupState)
def test_a_state_is_reached_only_from_those_the_table_names(source: GroupState, target: GroupState) -> None:
    group = Group("g", 0, source)
    if source in VALID_PREVIOUS[target]:
        group.transition_to(target, 7)
        assert (group.state, group.state_timestamp_ms) == (target, 7)
    else:
        with pytest.raises(IllegalStateError, match=f"from {source.value} to {target.value}"):
            group.transition_to(target, 7)


def test_the_table_is_that_of_the_classic_protocol() -> None:
    s = GroupState
    assert {target: set(sources) for target, sources in VALID_PREVIOUS.items()} == {
        s.EMPTY: {s.PREPARING_REBALANCE},
        s.PREPARING_REBALANCE: {s.STABLE, s.COMPLETING_REBALANCE, s.EMPTY},
        s.COMPLETING_REBALANCE: {s.PREPARING_REBALANCE},
        s.STABLE: {s.COMPLETING_REBALANCE},
        s.DEAD: set(s),
    }


def test_the_protocol_is_the_favourite_of_most_among_those_that_all_have() -> None:
    group = Group("g", 0)
    group.add(member("a", "sticky", "range", "roundrobin"))
    group.add(member("b", "roundrobin", "range"))
    group.add(member("c", "roundrobin", "range", "other"))
    assert group.select_protocol() == "roundrobin"


def test_a_newcomer_needs_a_protocol_that_all_members_have() -> None:
    group = Group("g", 0)
    assert group.supports("consumer", [("any", b"")])
    assert not group.supports("consumer", [])
    assert not group.supports("", [("any", b"")])
    group.add(member("a", "range", "sticky"))
    group.add(member("b", "range"))
    assert group.supports("consumer", [("range", b"")])
    assert not group.supports("consumer", [("sticky", b"")])
    assert not group.supports("connect", [("range", b"")])


def test_a_protocol_counts_again_when_the_member_without_it_is_gone() -> None:
    group = Group("g", 0)
    group.add(member("a", "range", "sticky"))
    without = member("b", "range")
    group.add(without)
    group.remove(without)
    assert group.supports("consumer", [("sticky", b"")])


def test_the_leader_is_succeeded_by_a_member_that_waits_for_the_next_generation() -> None:
    group = Group("g", 0)
    leader, idle, waiting = member("a"), member("b"), member("c")
    for one in (leader, idle, waiting):
        group.add(one)
    waiting.join_callback = lambda _: None
    assert group.is_leader("a")
    group.remove(leader)
    assert group.is_leader("c")


def test_a_static_members_new_id_fences_the_old_one() -> None:
    group = Group("g", 0)
    group.add(member("a-1", instance="a"))
    group.replace_static_member(group.members["a-1"], "a-2")
    assert group.validated_member("a-2", "a").member_id == "a-2"
    with pytest.raises(FencedInstanceIdError):
        group.validated_member("a-1", "a")
    with pytest.raises(UnknownMemberIdError):
        group.validated_member("a-1", None)
    with pytest.raises(UnknownMemberIdError):
        group.validated_member("a-2", "b")
    assert group.is_leader("a-2")
