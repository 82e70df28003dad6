"""JoinGroup: what each version of the request means, and when the answer comes."""

from __future__ import annotations

from typing import Any

import pytest

from harness.broker.handlers import CLIENT_HOST, CLIENT_ID, Exchange, Handlers
from kclient.broker.apis.join_group import join_group
from kclient.broker.group.group import Group
from kclient.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol

pytestmark = pytest.mark.usefixtures("coordinator")

INVALID_GROUP_ID, UNKNOWN_MEMBER, INVALID_SESSION_TIMEOUT, MEMBER_ID_REQUIRED = 24, 25, 26, 79


def join(handlers: Handlers, version: int, member_id: str = "", **fields: Any) -> Exchange:
    given = {
        "group_id": "g", "session_timeout_ms": 10_000, "rebalance_timeout_ms": 25_000, "member_id": member_id,
        "protocol_type": "consumer", "protocols": [JoinGroupRequestProtocol(name="range", metadata=b"topics")],
        **fields,
    }  # fmt: skip
    exchange = handlers.send(join_group, JoinGroupRequest(**given), version)
    handlers.run_due()
    return exchange


def group(handlers: Handlers) -> Group:
    found = handlers.groups.group("g")
    assert found is not None
    return found


def test_the_first_member_leads_in_every_version(handlers: Handlers) -> None:
    for version in range(10):
        group_id = f"in version {version}"
        answer = join(handlers, version, group_id=group_id).message
        if version >= 4:
            assert (answer.error_code, answer.generation_id) == (MEMBER_ID_REQUIRED, -1)
            answer = join(handlers, version, answer.member_id, group_id=group_id).message
        assert (answer.error_code, answer.generation_id, answer.protocol_name) == (0, 1, "range")
        assert answer.leader == answer.member_id
        assert [(member.member_id, member.metadata) for member in answer.members] == [
            (answer.member_id, b"topics")
        ]


def test_a_static_member_needs_no_id_first(handlers: Handlers) -> None:
    assert join(handlers, 5, group_instance_id="static").message.error_code == 0


@pytest.mark.parametrize(("version", "name"), [(0, ""), (6, ""), (7, None), (9, None)])
def test_an_answer_without_a_protocol_says_so_as_its_version_can(
    handlers: Handlers, version: int, name: str | None
) -> None:
    answer = join(handlers, version, "nobody").message
    assert (answer.error_code, answer.member_id, answer.protocol_name) == (UNKNOWN_MEMBER, "nobody", name)


@pytest.mark.parametrize(
    ("fields", "error"),
    [({"group_id": ""}, INVALID_GROUP_ID), ({"session_timeout_ms": 2**31 - 1}, INVALID_SESSION_TIMEOUT)],
    ids=["no group id", "a session of weeks"],
)
def test_what_cannot_be_joined_is_answered_at_once(
    handlers: Handlers, fields: dict[str, Any], error: int
) -> None:
    assert join(handlers, 3, **fields).message.error_code == error


@pytest.mark.parametrize(("version", "rebalance_ms"), [(0, 10_000), (1, 25_000), (3, 25_000)])
def test_version_0_gives_a_rebalance_the_time_of_a_session(
    handlers: Handlers, version: int, rebalance_ms: int
) -> None:
    join(handlers, version)
    (member,) = group(handlers).members.values()
    assert (member.session_timeout_ms, member.rebalance_timeout_ms) == (10_000, rebalance_ms)


def test_a_member_is_known_by_the_client_it_came_from(handlers: Handlers) -> None:
    join(handlers, 3)
    (member,) = group(handlers).members.values()
    assert (member.client_id, member.client_host) == (CLIENT_ID, f"/{CLIENT_HOST}")
    assert member.member_id.startswith(CLIENT_ID)


def test_a_member_waits_for_those_of_the_last_generation(handlers: Handlers) -> None:
    first = join(handlers, 3).message
    second = join(handlers, 3)
    assert second.waiting
    again = join(handlers, 3, first.member_id)
    assert again.message.generation_id == second.message.generation_id == 2
    assert [len(exchange.message.members) for exchange in (again, second)] == [2, 0]


@pytest.mark.parametrize(("version", "skips"), [(8, False), (9, True)])
def test_a_static_leader_that_comes_back_skips_the_assignment_if_its_version_can(
    handlers: Handlers, version: int, skips: bool
) -> None:
    joined = handlers.member("g", instance_id="static")
    answer = join(handlers, version, group_instance_id="static").message
    assert (answer.error_code, answer.generation_id) == (0, joined.generation_id)
    assert answer.skip_assignment == skips
    assert (answer.leader == answer.member_id) == skips


def test_a_reason_of_any_length_and_content_is_taken(handlers: Handlers) -> None:
    assert join(handlers, 9, group_instance_id="static", reason="%s\n" * 10_000).message.error_code == 0
