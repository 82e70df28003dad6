"""SyncGroup: what versions 5 and later compare, and when a member gets its assignment."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.handlers import Exchange, Handlers
from kclient.broker.apis.join_group import join_group
from kclient.broker.apis.sync_group import sync_group
from kclient.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from kclient.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment

pytestmark = pytest.mark.usefixtures("coordinator")

ILLEGAL_GENERATION, INCONSISTENT_PROTOCOL, INVALID_GROUP_ID = 22, 23, 24
UNKNOWN_MEMBER, REBALANCE_IN_PROGRESS = 25, 27
NAMED = {"protocol_type": "consumer", "protocol_name": "range"}


def join(handlers: Handlers, member_id: str = "") -> Exchange:
    protocol = JoinGroupRequestProtocol(name="range", metadata=b"topics")
    request = JoinGroupRequest(
        group_id="g", session_timeout_ms=10_000, rebalance_timeout_ms=25_000, member_id=member_id,
        protocol_type="consumer", protocols=[protocol],
    )  # fmt: skip
    exchange = handlers.send(join_group, request, 3)
    handlers.run_due()
    return exchange


def sync(handlers: Handlers, joined: Any, version: int = 5, /, **fields: Any) -> Exchange:
    given = {"group_id": "g", "generation_id": joined.generation_id, "member_id": joined.member_id}
    if version >= 5:
        given |= NAMED
    parts = fields.pop("parts", {})
    assignments = [
        SyncGroupRequestAssignment(member_id=name, assignment=assigned) for name, assigned in parts.items()
    ]
    return handlers.send(
        sync_group, SyncGroupRequest(**{**given, **fields}, assignments=assignments), version
    )


@pytest.fixture
def two(handlers: Handlers) -> list[Any]:
    """The leader and another member of one generation, which wait for their assignment."""
    first = join(handlers).message
    second = join(handlers)
    leader = join(handlers, first.member_id).message
    assert leader.leader == leader.member_id
    return [leader, second.message]


@pytest.mark.parametrize("version", range(6))
def test_the_leader_gets_its_own_part_in_every_version(handlers: Handlers, version: int) -> None:
    leader = join(handlers).message
    answer = sync(handlers, leader, version, parts={leader.member_id: b"mine", "nobody": b"x"}).message
    assert (answer.error_code, answer.assignment) == (0, b"mine")
    named = (answer.protocol_type, answer.protocol_name)
    assert named == (("consumer", "range") if version >= 5 else (None, None))


def test_others_wait_until_the_leader_has_spoken(handlers: Handlers, two: list[Any]) -> None:
    leader, other = two
    waiting = sync(handlers, other)
    assert waiting.waiting
    parts = {leader.member_id: b"one", other.member_id: b"two"}
    answer = sync(handlers, leader, parts=parts)
    assert [exchange.message.assignment for exchange in (answer, waiting)] == [b"one", b"two"]
    assert sync(handlers, other).message.assignment == b"two", "who comes later does not wait"


def test_a_part_for_everybody_is_taken_from_the_leader_alone(handlers: Handlers, two: list[Any]) -> None:
    leader, other = two
    greedy = sync(handlers, other, parts={other.member_id: b"all"})
    assert greedy.waiting
    assert sync(handlers, leader).message.assignment == b""
    assert (greedy.message.error_code, greedy.message.assignment) == (0, b"")


@pytest.mark.parametrize("missing", list(NAMED))
def test_version_5_has_to_name_the_protocol(handlers: Handlers, missing: str) -> None:
    leader = join(handlers).message
    answer = sync(handlers, leader, 5, **{missing: None}, parts={leader.member_id: b"mine"}).message
    assert (answer.error_code, answer.assignment) == (INCONSISTENT_PROTOCOL, b"")
    assert sync(handlers, leader).message.error_code == 0, "the group goes on"


@pytest.mark.parametrize(
    "wrong", [{"protocol_type": "connect"}, {"protocol_name": "sticky"}, {"protocol_name": ""}]
)
def test_a_protocol_that_is_not_the_groups_is_refused(handlers: Handlers, wrong: dict[str, str]) -> None:
    leader = join(handlers).message
    assert sync(handlers, leader, 5, **wrong).message.error_code == INCONSISTENT_PROTOCOL


@pytest.mark.parametrize("version", [0, 4])
def test_older_versions_cannot_name_a_protocol_and_need_not(handlers: Handlers, version: int) -> None:
    leader = join(handlers).message
    assert sync(handlers, leader, version).message.error_code == 0


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"group_id": "none"}, UNKNOWN_MEMBER),
        ({"group_id": ""}, INVALID_GROUP_ID),
        ({"member_id": "nobody"}, UNKNOWN_MEMBER),
        ({"member_id": ""}, UNKNOWN_MEMBER),
        ({"generation_id": 0}, ILLEGAL_GENERATION),
        ({"generation_id": 2}, ILLEGAL_GENERATION),
    ],
)
def test_who_is_not_of_this_generation_is_told_at_once(
    handlers: Handlers, fields: dict[str, Any], error: int
) -> None:
    leader = join(handlers).message
    answer = sync(handlers, leader, 5, **fields, parts={leader.member_id: b"mine"}).message
    assert (answer.error_code, answer.assignment) == (error, b"")


def test_who_waits_is_sent_to_join_again_when_somebody_else_joins(handlers: Handlers, two: list[Any]) -> None:
    waiting = sync(handlers, two[1])
    join(handlers)
    assert waiting.message.error_code == REBALANCE_IN_PROGRESS
    assert sync(handlers, two[0]).message.error_code == REBALANCE_IN_PROGRESS


def test_of_two_requests_of_a_member_the_first_is_given_up_and_each_is_answered_once(
    handlers: Handlers, two: list[Any]
) -> None:
    leader, other = two
    given_up, waiting = sync(handlers, other), sync(handlers, other)
    assert given_up.message.error_code == REBALANCE_IN_PROGRESS
    sync(handlers, leader, parts={other.member_id: b"two"})
    assert waiting.message.assignment == b"two"
    assert len(given_up.responses) == 1
