"""The classic group protocol, with time passing only when told."""

from __future__ import annotations

import pytest

from harness.broker.groups import RANGE, REBALANCE_MS, SESSION_MS, GroupHarness
from kclient.broker.group.sessions import NEW_MEMBER_JOIN_TIMEOUT_MS
from kclient.errors import (
    Errors,
    FencedInstanceIdError,
    GroupIdNotFoundError,
    GroupNotEmptyError,
    IllegalGenerationError,
    InvalidGroupIdError,
    NotCoordinatorError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)


@pytest.fixture
def harness() -> GroupHarness:
    return GroupHarness()


def test_a_lone_member_leads_the_first_generation_and_gets_its_own_assignment(harness: GroupHarness) -> None:
    joined = harness.join().result
    assert (joined.error_code, joined.generation_id, joined.protocol_name) == (0, 1, "range")
    assert joined.leader == joined.member_id
    assert [(m.member_id, m.metadata) for m in joined.members] == [(joined.member_id, b"topics")]
    assert harness.state == "CompletingRebalance"
    assert harness.sync(joined, {joined.member_id: b"all"}).result.assignment == b"all"  # type: ignore[attr-defined]
    assert harness.state == "Stable"


def test_only_the_leader_is_told_the_members(harness: GroupHarness) -> None:
    leader, follower = harness.stable(2)
    assert len(leader.members) == 2
    assert follower.members == []
    assert follower.leader == leader.member_id


def test_an_assignment_is_stored_before_anyone_gets_it(harness: GroupHarness) -> None:
    joined = harness.join().result
    harness.store.fail_with = NotCoordinatorError()
    assert harness.sync(joined, {joined.member_id: b"all"}).error == Errors.NOT_COORDINATOR
    assert harness.state == "PreparingRebalance"


def test_followers_wait_for_the_leaders_assignment(harness: GroupHarness) -> None:
    first = harness.join().result
    second = harness.join()
    rejoined = harness.join(first.member_id).result
    waiting = harness.sync(second.result)
    assert waiting.waiting
    harness.sync(rejoined, {second.result.member_id: b"yours"})
    assert waiting.result.assignment == b"yours"  # type: ignore[attr-defined]


def test_a_member_must_come_back_with_the_id_it_is_given(harness: GroupHarness) -> None:
    refused = harness.join(known_id=True).result
    assert refused.error_code == Errors.MEMBER_ID_REQUIRED
    assert refused.member_id.startswith("client-")
    assert harness.group.members == {}
    assert harness.join(refused.member_id, known_id=True).result.generation_id == 1


def test_a_rebalance_does_not_wait_for_ever_for_an_id_that_nobody_uses(harness: GroupHarness) -> None:
    (leader,) = harness.stable(1)
    harness.join(known_id=True)
    rejoined = harness.join(leader.member_id)
    assert rejoined.waiting
    harness.pass_time(SESSION_MS)
    assert rejoined.result.generation_id == 2


def test_an_unknown_member_id_is_refused(harness: GroupHarness) -> None:
    assert harness.join("ghost").error == Errors.UNKNOWN_MEMBER_ID
    harness.stable(1)
    assert harness.join("ghost").error == Errors.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("session_ms", [999, 60_001])
def test_a_session_timeout_out_of_range_is_refused(harness: GroupHarness, session_ms: int) -> None:
    assert harness.join(session_ms=session_ms).error == Errors.INVALID_SESSION_TIMEOUT


def test_an_empty_group_id_is_refused(harness: GroupHarness) -> None:
    assert harness.join(group="").error == Errors.INVALID_GROUP_ID
    with pytest.raises(InvalidGroupIdError):
        harness.coordinator.heartbeat("", 1, "m", None)


def test_members_without_a_common_protocol_do_not_join(harness: GroupHarness) -> None:
    harness.stable(1)
    assert harness.join(protocols=[("roundrobin", b"")]).error == Errors.INCONSISTENT_GROUP_PROTOCOL
    assert harness.join(protocol_type="connect").error == Errors.INCONSISTENT_GROUP_PROTOCOL
    assert harness.join(protocols=[]).error == Errors.INCONSISTENT_GROUP_PROTOCOL


def test_a_full_group_takes_nobody_in(harness: GroupHarness) -> None:
    full = GroupHarness(max_size=2)
    full.stable(2)
    assert full.join().error == Errors.GROUP_MAX_SIZE_REACHED
    assert len(full.group.members) == 2


def test_the_first_delay_collects_members_and_each_newcomer_prolongs_it(harness: GroupHarness) -> None:
    slow = GroupHarness(initial_delay_ms=3000)
    first = slow.join()
    slow.pass_time(2000)
    second = slow.join()
    slow.pass_time(1000)  # the first delay is over, but somebody came meanwhile
    assert first.waiting
    slow.pass_time(3000)
    assert first.result.generation_id == second.result.generation_id == 1
    assert len(slow.group.members) == 2


def test_heartbeats_keep_a_session_and_their_lack_ends_it(harness: GroupHarness) -> None:
    leader, follower = harness.stable(2)
    for _ in range(3):
        harness.pass_time(SESSION_MS - 1)
        harness.heartbeat(leader)
        harness.heartbeat(follower)
    harness.pass_time(SESSION_MS - 1)
    harness.heartbeat(leader)
    harness.pass_time(1)
    assert set(harness.group.members) == {leader.member_id}
    with pytest.raises(RebalanceInProgressError):
        harness.heartbeat(leader)
    with pytest.raises(UnknownMemberIdError):
        harness.heartbeat(follower)


def test_heartbeats_are_welcome_while_the_assignment_is_awaited(harness: GroupHarness) -> None:
    joined = harness.join().result
    assert harness.state == "CompletingRebalance"
    harness.heartbeat(joined)


def test_a_heartbeat_of_another_generation_or_group_is_refused(harness: GroupHarness) -> None:
    (leader,) = harness.stable(1)
    with pytest.raises(IllegalGenerationError):
        harness.heartbeat(leader, generation_id=leader.generation_id - 1)
    with pytest.raises(UnknownMemberIdError):
        harness.coordinator.heartbeat("none", 1, leader.member_id, None)


def test_a_rebalance_ends_without_those_who_do_not_rejoin_in_time(harness: GroupHarness) -> None:
    leader, follower = harness.stable(2)
    newcomer = harness.join()
    again = harness.join(leader.member_id)
    for _ in range(4):
        harness.pass_time(REBALANCE_MS // 4)
        if follower.member_id in harness.group.members:
            with pytest.raises(RebalanceInProgressError):
                harness.heartbeat(follower)  # alive, but busy
    assert again.result.generation_id == newcomer.result.generation_id
    assert follower.member_id not in harness.group.members


def test_a_new_member_whose_connection_broke_is_not_waited_for_for_ever(harness: GroupHarness) -> None:
    slow = GroupHarness(initial_delay_ms=0)
    (leader,) = slow.stable(1)
    slow.join(rebalance_ms=2 * NEW_MEMBER_JOIN_TIMEOUT_MS)  # and is never heard of again
    waited = 0
    while waited < NEW_MEMBER_JOIN_TIMEOUT_MS:
        slow.pass_time(SESSION_MS // 2)
        waited += SESSION_MS // 2
        if slow.state == "PreparingRebalance":
            with pytest.raises(RebalanceInProgressError):
                slow.heartbeat(leader)
    assert set(slow.group.members) == {leader.member_id}


def test_a_follower_that_asks_again_gets_the_generation_there_is(harness: GroupHarness) -> None:
    leader, follower = harness.stable(2)
    again = harness.join(follower.member_id).result
    assert (again.generation_id, again.leader, again.members) == (
        follower.generation_id,
        leader.member_id,
        [],
    )
    assert harness.state == "Stable"


def test_a_leader_that_asks_again_rebalances(harness: GroupHarness) -> None:
    leader, follower = harness.stable(2)
    again = harness.join(leader.member_id)
    assert harness.state == "PreparingRebalance"
    harness.join(follower.member_id)
    assert again.result.generation_id == leader.generation_id + 1


def test_a_follower_with_other_metadata_rebalances(harness: GroupHarness) -> None:
    _, follower = harness.stable(2)
    assert harness.join(follower.member_id, protocols=[("range", b"other topics")]).waiting
    assert harness.state == "PreparingRebalance"


def test_joining_twice_answers_both_requests_once(harness: GroupHarness) -> None:
    leader, follower = harness.stable(2)
    abandoned = harness.join(leader.member_id)
    again = harness.join(leader.member_id)
    assert abandoned.error == Errors.REBALANCE_IN_PROGRESS
    harness.join(follower.member_id)
    assert again.error == 0


def test_a_rebalance_that_begins_while_followers_wait_for_an_assignment_tells_them(
    harness: GroupHarness,
) -> None:
    first = harness.join().result
    second = harness.join()
    harness.join(first.member_id)
    waiting = harness.sync(second.result)
    harness.join()
    assert waiting.error == Errors.REBALANCE_IN_PROGRESS


def test_members_that_never_ask_for_their_assignment_are_removed(harness: GroupHarness) -> None:
    leader = harness.join().result
    silent = harness.join()
    rejoined = harness.join(leader.member_id).result
    harness.sync(rejoined, {})
    for _ in range(4):
        harness.pass_time(REBALANCE_MS // 4)
        for one in (rejoined, silent.result):
            if one.member_id in harness.group.members and harness.state == "Stable":
                harness.heartbeat(one)
    assert set(harness.group.members) == {rejoined.member_id}


def test_sync_of_an_unchanged_group_returns_what_was_assigned(harness: GroupHarness) -> None:
    _, follower = harness.stable(2)
    assert harness.sync(follower).result.assignment == b"part of " + follower.member_id.encode()  # type: ignore[attr-defined]


def test_sync_is_refused_with_another_generation_or_protocol_and_during_a_rebalance(
    harness: GroupHarness,
) -> None:
    leader, _ = harness.stable(2)
    assert harness.sync(leader, generation_id=9).error == Errors.ILLEGAL_GENERATION
    assert harness.sync(leader, protocol_name="sticky").error == Errors.INCONSISTENT_GROUP_PROTOCOL
    assert harness.sync(leader, protocol_type="connect").error == Errors.INCONSISTENT_GROUP_PROTOCOL
    assert harness.sync(leader, group_id="none").error == Errors.UNKNOWN_MEMBER_ID
    harness.join()
    assert harness.sync(leader).error == Errors.REBALANCE_IN_PROGRESS


def test_leaving_rebalances_the_rest_and_empties_the_group_in_the_end(harness: GroupHarness) -> None:
    leader, follower = harness.stable(2)
    assert harness.coordinator.leave("g", [(leader.member_id, None)]) == [0]
    assert harness.state == "PreparingRebalance"
    again = harness.join(follower.member_id).result
    assert again.leader == follower.member_id
    assert harness.coordinator.leave("g", [(follower.member_id, None)]) == [0]
    assert harness.state == "Empty"
    assert harness.coordinator.leave("g", [(follower.member_id, None)]) == [int(Errors.UNKNOWN_MEMBER_ID)]
    with pytest.raises(UnknownMemberIdError):
        harness.coordinator.leave("none", [])


def test_a_member_that_was_only_expected_can_leave(harness: GroupHarness) -> None:
    (leader,) = harness.stable(1)
    pending = harness.join(known_id=True).result.member_id
    again = harness.join(leader.member_id)
    assert again.waiting
    assert harness.coordinator.leave("g", [(pending, None)]) == [0]
    assert again.error == 0


def test_a_static_member_that_restarts_goes_on_without_a_rebalance(harness: GroupHarness) -> None:
    old = harness.join(instance="i").result
    harness.sync(old, {old.member_id: b"mine"}, instance_id="i")
    new = harness.join(instance="i", skip=True).result
    assert new.member_id != old.member_id
    assert (new.generation_id, new.skip_assignment, new.leader) == (old.generation_id, True, new.member_id)
    assert harness.state == "Stable"
    assert harness.sync(new, instance_id="i").result.assignment == b"mine"  # type: ignore[attr-defined]
    with pytest.raises(FencedInstanceIdError):
        harness.heartbeat(old, instance_id="i")


def test_a_restarted_static_leader_that_cannot_skip_the_assignment_takes_itself_for_a_follower(
    harness: GroupHarness,
) -> None:
    old = harness.join(instance="i").result
    harness.sync(old, {old.member_id: b"mine"}, instance_id="i")
    new = harness.join(instance="i").result
    assert (new.leader, new.members, new.skip_assignment) == (old.member_id, [], False)


def test_a_static_members_new_id_is_durable_or_not_there(harness: GroupHarness) -> None:
    old = harness.join(instance="i").result
    harness.sync(old, {old.member_id: b"mine"}, instance_id="i")
    harness.store.fail_with = NotCoordinatorError()
    assert harness.join(instance="i").error == Errors.NOT_COORDINATOR
    harness.store.fail_with = None
    harness.heartbeat(old, instance_id="i")


def test_a_static_member_that_wants_another_protocol_rebalances(harness: GroupHarness) -> None:
    old = harness.join(instance="i").result
    harness.sync(old, {}, instance_id="i")
    prefers_sticky = [("sticky", b""), *RANGE]
    assert harness.join(instance="i", protocols=prefers_sticky).result.generation_id == old.generation_id + 1


def test_a_static_member_leaves_by_its_name_alone(harness: GroupHarness) -> None:
    harness.join(instance="i")
    assert harness.coordinator.leave("g", [("", "other"), ("", "i")]) == [int(Errors.UNKNOWN_MEMBER_ID), 0]
    assert harness.state == "Empty"


def test_a_static_member_that_is_away_is_kept_over_a_rebalance(harness: GroupHarness) -> None:
    away = harness.join(instance="i", session_ms=60_000).result
    joining = harness.join()
    harness.pass_time(REBALANCE_MS)
    assert joining.result.leader == joining.result.member_id
    assert away.member_id in harness.group.members


def test_groups_are_listed_and_described(harness: GroupHarness) -> None:
    leader, _ = harness.stable(2)
    described = harness.coordinator.describe("g")
    assert described is not None
    assert (described.group_state, described.protocol_type, described.protocol_data) == (
        "Stable",
        "consumer",
        "range",
    )
    by_id = {member.member_id: member for member in described.members}
    assert by_id[leader.member_id].client_host == "/127.0.0.1"
    assert by_id[leader.member_id].member_metadata == RANGE[0][1]
    assert [(group.group_id, group.group_state) for group in harness.coordinator.list()] == [("g", "Stable")]
    assert harness.coordinator.describe("none") is None


def test_only_groups_without_members_can_be_deleted(harness: GroupHarness) -> None:
    (leader,) = harness.stable(1)
    with pytest.raises(GroupNotEmptyError):
        harness.coordinator.delete("g")
    harness.coordinator.leave("g", [(leader.member_id, None)])
    harness.coordinator.delete("g")
    assert harness.store.batches[-1][1][-1][1] is None, "no tombstone"
    with pytest.raises(GroupIdNotFoundError):
        harness.coordinator.delete("g")
    assert harness.join().result.generation_id == 1, "the id cannot be used again"


class TestTimersDoNotPileUp:
    def test_of_members_that_join_with_their_id_and_leave(self, harness: GroupHarness) -> None:
        harness.stable(1)
        before = len(harness.coordinator.rebalancer.timer)
        for _ in range(50):
            member_id = harness.join(known_id=True, session_ms=60_000).result.member_id
            harness.coordinator.leave("g", [(member_id, None)])
        for _ in range(50):
            member_id = harness.join(known_id=True, session_ms=60_000).result.member_id
            harness.join(member_id, known_id=True)
            harness.coordinator.leave("g", [(member_id, None)])
        assert len(harness.coordinator.rebalancer.timer) <= before + 2

    def test_of_generations_whose_members_may_take_long(self, harness: GroupHarness) -> None:
        long_ms = 2**31 - 1
        joined = harness.join(rebalance_ms=long_ms).result
        before = len(harness.coordinator.rebalancer.timer)
        for number in range(50):
            joined = harness.join(
                joined.member_id, rebalance_ms=long_ms, protocols=[("range", b"%d" % number)]
            ).result
        assert joined.generation_id == 51
        assert len(harness.coordinator.rebalancer.timer) <= before
