"""Deadlines of members: moved by signs of life, looked at by a timer that is touched once a session."""

from __future__ import annotations

import pytest

from harness.mock_time import MockTime
from kclient.broker.group.group import Group
from kclient.broker.group.member import Member
from kclient.broker.group.sessions import NEW_MEMBER_JOIN_TIMEOUT_MS, Sessions
from kclient.broker.timer import SystemTimer

SESSION_MS = 10_000


class Looking:
    """Sessions of one group, and a note of every look that is due."""

    def __init__(self) -> None:
        self.time = MockTime()
        self.timer = SystemTimer("test", self.time)
        self.looks: list[tuple[str, str]] = []
        self.sessions = Sessions(self._look, self.timer, self.time)
        self.group = Group("g", 0)

    def member(self, name: str = "m") -> Member:
        return Member(name, None, "c", "/h", 1000, SESSION_MS, "consumer", [("range", b"")])

    def pass_time(self, duration_ms: int) -> None:
        self.time.advance(duration_ms)
        while self.timer.advance_clock(0):
            pass

    def _look(self, group: Group, member_id: str) -> None:
        self.looks.append((group.id, member_id))


@pytest.fixture
def looking() -> Looking:
    return Looking()


def test_a_session_is_looked_at_when_it_is_over_and_not_before(looking: Looking) -> None:
    looking.sessions.heard_of(looking.group, looking.member())
    looking.pass_time(SESSION_MS - 1)
    assert looking.looks == []
    looking.pass_time(1)
    assert looking.looks == [("g", "m")]


def test_a_sign_of_life_moves_the_deadline_and_leaves_the_timer_alone(looking: Looking) -> None:
    member = looking.member()
    looking.sessions.heard_of(looking.group, member)
    first = member.expiry
    looking.pass_time(4000)
    looking.sessions.heard_of(looking.group, member)
    assert member.expiry is first
    assert looking.sessions.remaining_ms(member) == SESSION_MS
    assert len(looking.timer) == 1


def test_a_deadline_that_comes_sooner_is_looked_at_then_and_only_then(looking: Looking) -> None:
    member = looking.member()
    looking.sessions.begin_join(looking.group, member)
    looking.sessions.heard_of(looking.group, member)
    assert len(looking.timer) == 1
    looking.pass_time(SESSION_MS)
    assert looking.looks == [("g", "m")]
    looking.pass_time(NEW_MEMBER_JOIN_TIMEOUT_MS)
    assert looking.looks == [("g", "m")]


def test_a_new_member_has_minutes_however_short_its_session(looking: Looking) -> None:
    member = looking.member()
    looking.sessions.begin_join(looking.group, member)
    assert looking.sessions.remaining_ms(member) == NEW_MEMBER_JOIN_TIMEOUT_MS
    looking.pass_time(NEW_MEMBER_JOIN_TIMEOUT_MS - 1)
    assert looking.looks == []


def test_time_that_remains_runs_out_and_below_nothing(looking: Looking) -> None:
    member = looking.member()
    looking.sessions.heard_of(looking.group, member)
    looking.pass_time(SESSION_MS - 1)
    assert looking.sessions.remaining_ms(member) == 1
    looking.pass_time(2)
    assert looking.sessions.remaining_ms(member) == -1


@pytest.mark.parametrize(
    ("request_kind", "is_new", "counts"),
    [
        pytest.param("sync", False, True, id="sync"),
        pytest.param("sync", True, True, id="sync of a new member"),
        pytest.param("join", False, True, id="join"),
        pytest.param("join", True, False, id="join of a new member, whose connection may be gone"),
    ],
)
def test_a_parked_request_is_a_sign_of_life(
    looking: Looking, request_kind: str, is_new: bool, counts: bool
) -> None:
    member = looking.member()
    member.is_new = is_new
    looking.sessions.heard_of(looking.group, member)
    setattr(member, f"{request_kind}_callback", lambda _: None)
    looking.pass_time(SESSION_MS)
    assert looking.sessions.remaining_ms(member) == (SESSION_MS if counts else 0)


def test_another_look_takes_the_place_of_the_one_that_was_due(looking: Looking) -> None:
    member = looking.member()
    looking.sessions.heard_of(looking.group, member)
    looking.sessions.look_again(looking.group, member, SESSION_MS + 500)
    looking.pass_time(SESSION_MS)
    assert looking.looks == []
    looking.pass_time(500)
    assert looking.looks == [("g", "m")]


def test_members_are_looked_at_each_in_its_time(looking: Looking) -> None:
    looking.sessions.heard_of(looking.group, looking.member("early"))
    looking.pass_time(100)
    looking.sessions.heard_of(looking.group, looking.member("late"))
    looking.pass_time(SESSION_MS - 100)
    assert looking.looks == [("g", "early")]
    looking.pass_time(100)
    assert looking.looks == [("g", "early"), ("g", "late")]
