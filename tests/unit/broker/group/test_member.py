"""Member: its protocols, and the requests of it that are parked."""

from __future__ import annotations

from typing import Any

import pytest

from kclient.broker.group.member import Member, join_failure
from kclient.errors import Errors
from kclient.protocol.messages.join_group import JoinGroupResponse
from kclient.protocol.messages.sync_group import SyncGroupResponse


def member(*protocols: tuple[str, bytes]) -> Member:
    return Member("m", None, "c", "/h", 1000, 1000, "consumer", protocols)


def test_metadata_is_that_of_the_protocol_and_empty_for_one_it_does_not_have() -> None:
    made = member(("range", b"r"), ("sticky", b"s"))
    assert [made.metadata_for(name) for name in ("sticky", "range", "other", "")] == [b"s", b"r", b"", b""]
    assert member().metadata_for("range") == b""


def test_the_first_of_two_protocols_with_one_name_counts() -> None:
    assert member(("range", b"1"), ("range", b"2")).metadata_for("range") == b"1"


def test_a_request_is_parked_until_it_is_answered() -> None:
    made = member()
    assert (made.awaits_join, made.awaits_sync) == (False, False)
    made.join_callback = made.sync_callback = lambda _: None
    assert (made.awaits_join, made.awaits_sync) == (True, True)
    made.answer_join(JoinGroupResponse())
    assert (made.awaits_join, made.awaits_sync) == (False, True)
    made.answer_sync(SyncGroupResponse())
    assert not made.awaits_sync


def test_a_parked_request_is_answered_once() -> None:
    made = member()
    answers: list[Any] = []
    made.join_callback = made.sync_callback = answers.append
    for _ in range(2):
        made.answer_join(JoinGroupResponse(generation_id=1))
        made.answer_sync(SyncGroupResponse(assignment=b"a"))
    assert answers == [JoinGroupResponse(generation_id=1), SyncGroupResponse(assignment=b"a")]


def test_an_answer_that_goes_nowhere_is_no_error() -> None:
    made = member()
    made.fail_join(Errors.REBALANCE_IN_PROGRESS)
    made.fail_sync(Errors.REBALANCE_IN_PROGRESS)


@pytest.mark.parametrize("kind", ["join", "sync"])
def test_a_request_that_comes_while_the_last_one_is_answered_stays_parked(kind: str) -> None:
    made = member()

    def comes_back(_: Any) -> None:
        setattr(made, f"{kind}_callback", later.append)

    later: list[Any] = []
    setattr(made, f"{kind}_callback", comes_back)
    getattr(made, f"fail_{kind}")(Errors.UNKNOWN_MEMBER_ID)
    assert getattr(made, f"awaits_{kind}")
    assert later == []


def test_a_join_that_fails_names_the_member_and_no_protocol() -> None:
    answers: list[JoinGroupResponse] = []
    made = member(("range", b""))
    made.join_callback = answers.append
    made.fail_join(Errors.FENCED_INSTANCE_ID)
    assert answers == [join_failure("m", Errors.FENCED_INSTANCE_ID)]
    failed = answers[0]
    assert (failed.member_id, failed.error_code, failed.protocol_name, failed.generation_id) == (
        "m",
        82,
        None,
        -1,
    )


def test_a_sync_that_fails_has_no_assignment() -> None:
    answers: list[SyncGroupResponse] = []
    made = member()
    made.assignment = b"of the last generation"
    made.sync_callback = answers.append
    made.fail_sync(Errors.REBALANCE_IN_PROGRESS)
    assert [(answer.error_code, answer.assignment) for answer in answers] == [(27, b"")]
