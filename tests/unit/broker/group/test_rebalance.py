"""From one generation to the next, taken apart: who is waited for, who is told what, and what a full disk changes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harness.broker.groups import MemoryStore
from harness.mock_time import MockTime
from kclient.broker.group.group import Group, GroupState
from kclient.broker.group.member import Member
from kclient.broker.group.rebalance import Rebalancer
from kclient.errors import CoordinatorNotAvailableError, Errors
from kclient.utils.log_context import LogContext

DELAY_MS = 3000
REBALANCE_MS = 10_000
SESSION_MS = 60_000


class Rebalancing:
    """A group and what takes it on; answers are noted by member."""

    def __init__(self, delay_ms: int = 0) -> None:
        self.time = MockTime()
        self.store = MemoryStore()
        self.rebalancer = Rebalancer(
            self.store,  # type: ignore[arg-type]
            self.time,
            LogContext(),
            initial_delay_ms=delay_ms,
            reaper_enabled=False,
        )
        self.group = Group("g", 0)
        self.joins: dict[str, list[Any]] = {}
        self.syncs: dict[str, list[Any]] = {}

    def add(self, name: str, instance_id: str | None = None) -> Member:
        protocols = [("range", b"")]
        member = Member(name, instance_id, "c", "/h", REBALANCE_MS, SESSION_MS, "consumer", protocols)
        with self.group.lock:
            self.rebalancer.add_member(
                self.group, member, self.joins.setdefault(name, []).append, "it is new"
            )
        self.pass_time(0)
        return member

    def again(self, member: Member) -> None:
        """Let a member join again."""
        with self.group.lock:
            member.join_callback = self.joins[member.member_id].append
            self.rebalancer.prepare(self.group, "it asked to")
            self.rebalancer.joined(self.group)

    def prepare(self) -> None:
        with self.group.lock:
            self.rebalancer.prepare(self.group, "because")

    def awaits_sync(self, member: Member) -> None:
        with self.group.lock:
            member.sync_callback = self.syncs.setdefault(member.member_id, []).append

    def assign(self, **parts: bytes) -> None:
        with self.group.lock:
            self.rebalancer.store_assignment(self.group, parts)

    def pass_time(self, duration_ms: int) -> None:
        self.time.advance(duration_ms)
        while self.rebalancer.timer.advance_clock(0):
            pass

    def two(self) -> tuple[Member, Member]:
        """Two members of a generation that waits for its assignment."""
        first, second = self.add("a"), self.add("b")
        self.again(first)
        assert self.group.state is GroupState.COMPLETING_REBALANCE
        return first, second

    @property
    def state(self) -> GroupState:
        return self.group.state


@pytest.fixture
def r() -> Iterator[Rebalancing]:
    made = Rebalancing()
    yield made
    made.rebalancer.purgatory.shutdown()


def test_newcomers_prolong_the_first_delay_only_up_to_the_rebalance_timeout() -> None:
    r = Rebalancing(DELAY_MS)
    for passed_ms in range(0, REBALANCE_MS, 100):
        assert r.state is not GroupState.COMPLETING_REBALANCE
        if passed_ms % 2000 == 0:
            r.add(f"m{passed_ms}")  # always one within the last delay
        r.pass_time(100)
    assert r.state is GroupState.COMPLETING_REBALANCE
    assert [len(answers) for answers in r.joins.values()] == [1] * 5
    r.rebalancer.purgatory.shutdown()


def test_a_rebalance_that_is_under_way_is_not_begun_again(r: Rebalancing) -> None:
    r.two()
    r.prepare()
    watched = r.rebalancer.purgatory.watched
    r.prepare()
    assert r.rebalancer.purgatory.watched == watched
    assert r.group.generation_id == 2


def test_who_waits_for_an_assignment_is_told_of_the_next_rebalance(r: Rebalancing) -> None:
    _, second = r.two()
    r.awaits_sync(second)
    r.prepare()
    assert [answer.error_code for answer in r.syncs["b"]] == [Errors.REBALANCE_IN_PROGRESS]
    assert r.group.pending_sync == set()


class TestAssignments:
    def test_they_are_given_when_they_are_stored_and_who_is_not_named_gets_nothing(
        self, r: Rebalancing
    ) -> None:
        for member in r.two():
            r.awaits_sync(member)
        r.assign(a=b"all of it")
        assert r.state is GroupState.STABLE
        assert [r.syncs[name][0].assignment for name in ("a", "b")] == [b"all of it", b""]
        assert len(r.store.batches) == 1

    def test_one_that_cannot_be_stored_is_told_to_nobody_and_the_group_rebalances(
        self, r: Rebalancing
    ) -> None:
        for member in r.two():
            r.awaits_sync(member)
        r.store.fail_with = CoordinatorNotAvailableError()
        r.assign(a=b"all of it")
        answers = [r.syncs[name][0] for name in ("a", "b")]
        assert [(answer.error_code, answer.assignment) for answer in answers] == [
            (Errors.COORDINATOR_NOT_AVAILABLE, b"")
        ] * 2
        assert r.state is GroupState.PREPARING_REBALANCE

    def test_who_asked_for_it_is_kept_and_who_did_not_in_time_is_removed(self, r: Rebalancing) -> None:
        first, _ = r.two()
        r.awaits_sync(first)
        r.assign(a=b"all of it")
        r.pass_time(REBALANCE_MS)
        assert set(r.group.members) == {"a"}

    def test_the_time_to_ask_for_an_old_one_ends_nobodys_membership(self, r: Rebalancing) -> None:
        first, second = r.two()
        r.pass_time(REBALANCE_MS - 1)
        r.again(first)
        r.again(second)
        assert r.group.generation_id == 3
        r.pass_time(1)
        assert set(r.group.members) == {"a", "b"}


class TestLeaving:
    def test_requests_that_wait_are_answered_and_the_others_go_on(self, r: Rebalancing) -> None:
        first, second = r.two()
        r.awaits_sync(second)
        with r.group.lock:
            r.rebalancer.remove(r.group, [second], "it left")
        assert [answer.error_code for answer in r.syncs["b"]] == [Errors.UNKNOWN_MEMBER_ID]
        assert r.state is GroupState.PREPARING_REBALANCE
        r.again(first)
        assert r.group.generation_id == 3

    def test_the_last_one_leaves_an_empty_generation_that_is_stored(self, r: Rebalancing) -> None:
        only = r.add("a")
        with r.group.lock:
            r.rebalancer.remove(r.group, [only], "it left")
        assert (r.state, r.group.generation_id) == (GroupState.EMPTY, 2)
        assert len(r.store.batches) == 1

    def test_an_empty_generation_that_cannot_be_stored_is_there_all_the_same(
        self, r: Rebalancing, caplog: pytest.LogCaptureFixture
    ) -> None:
        only = r.add("a")
        r.store.fail_with = CoordinatorNotAvailableError()
        with r.group.lock:
            r.rebalancer.remove(r.group, [only], "it left")
        assert (r.state, r.group.generation_id) == (GroupState.EMPTY, 2)
        assert "was not stored" in caplog.text


def test_static_members_that_are_all_away_are_waited_for_beyond_the_timeout(r: Rebalancing) -> None:
    only = r.add("a", "name")
    r.awaits_sync(only)
    r.assign(a=b"all of it")
    r.prepare()
    for _ in range(3):
        r.pass_time(REBALANCE_MS)
        assert (r.state, r.group.generation_id) == (GroupState.PREPARING_REBALANCE, 1)
    r.again(only)
    assert (r.state, r.group.generation_id) == (GroupState.COMPLETING_REBALANCE, 2)


def test_an_id_that_nobody_joins_with_holds_up_a_rebalance_for_the_session_timeout(r: Rebalancing) -> None:
    first = r.add("a")
    with r.group.lock:
        r.rebalancer.expect_member(r.group, "later", 2000)
    r.again(first)
    assert r.state is GroupState.PREPARING_REBALANCE
    r.pass_time(1999)
    assert r.state is GroupState.PREPARING_REBALANCE
    r.pass_time(1)
    assert (r.state, r.group.generation_id) == (GroupState.COMPLETING_REBALANCE, 2)
