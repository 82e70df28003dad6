"""Negotiations with several nodes: who is to be asked, what is agreed on, and what is told when that fails."""

from __future__ import annotations

import pytest

from kclient.client.negotiations import Negotiations
from kclient.errors import (
    ClusterAuthorizationError,
    DisconnectError,
    Errors,
    KafkaError,
    SchemaError,
    UnsupportedVersionError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse

NEWEST = ApiKeys.API_VERSIONS.max_version
KNOWN = ApiVersionsResponse(api_keys=[ApiVersion(api_key=ApiKeys.HEARTBEAT, min_version=0, max_version=2)])
REFUSAL = ApiVersionsResponse(error_code=Errors.UNSUPPORTED_VERSION, api_keys=[])


@pytest.fixture
def asked() -> Negotiations:
    """Node 1 was asked, over a connection that is there."""
    made = Negotiations(lambda node_id: f"node {node_id} (host:9092)")
    made.begin(1)
    ask(made)
    return made


def ask(negotiations: Negotiations, node_id: int = 1) -> int:
    """Ask as NodeConnections does; returns in which version."""
    negotiation = negotiations.due.pop(node_id)
    negotiation.request()
    return negotiation.version


def test_a_node_is_ready_with_the_versions_of_its_answer(asked: Negotiations) -> None:
    assert asked.answered(1, KNOWN) is None
    assert asked.due == {}
    assert asked.versions[1].usable_version(ApiKeys.HEARTBEAT) == 2


def test_a_node_that_refuses_the_version_is_due_again_in_another_one(asked: Negotiations) -> None:
    assert asked.answered(1, REFUSAL) is None
    assert list(asked.due) == [1]
    assert asked.versions == {}
    assert ask(asked) == 0


def test_a_node_that_refuses_them_all_is_named_with_what_it_should_be(asked: Negotiations) -> None:
    asked.answered(1, REFUSAL)
    ask(asked)
    error = asked.answered(1, REFUSAL)
    assert isinstance(error, UnsupportedVersionError)
    assert str(error).startswith("node 1 (host:9092) understands no version of ApiVersions")
    assert asked.due == {}
    assert asked.versions == {}


def test_after_a_refusal_of_all_the_next_connection_asks_in_the_newest_version(asked: Negotiations) -> None:
    asked.answered(1, REFUSAL)
    ask(asked)
    asked.answered(1, REFUSAL)
    asked.end(1)
    asked.begin(1)
    assert ask(asked) == NEWEST


def test_another_error_is_told_as_it_is(asked: Negotiations) -> None:
    refused = ApiVersionsResponse(error_code=Errors.CLUSTER_AUTHORIZATION_FAILED, api_keys=[])
    assert isinstance(asked.answered(1, refused), ClusterAuthorizationError)
    assert asked.versions == {}
    assert asked.due == {}


def test_after_a_connection_that_broke_the_next_one_asks_in_the_oldest_version(asked: Negotiations) -> None:
    error = DisconnectError("closed")
    assert asked.interrupted(1, error) is error
    asked.end(1)
    asked.begin(1)
    assert ask(asked) == 0


def test_an_answer_that_cannot_be_read_is_only_a_broken_connection_while_the_oldest_version_is_left(
    asked: Negotiations,
) -> None:
    told = asked.interrupted(1, SchemaError("unreadable"))
    assert isinstance(told, DisconnectError)
    assert "unreadable" in str(told)
    asked.begin(1)
    assert ask(asked) == 0


@pytest.mark.parametrize(
    ("error", "told"),
    [(SchemaError("unreadable"), UnsupportedVersionError), (DisconnectError("closed"), None)],
)
def test_after_three_tries_an_answer_nobody_can_read_is_of_no_broker_and_a_broken_connection_is_only_that(
    asked: Negotiations, error: KafkaError, told: type[KafkaError] | None
) -> None:
    for version in (0, 0):
        assert isinstance(asked.interrupted(1, error), DisconnectError)
        asked.begin(1)
        assert ask(asked) == version
    last = asked.interrupted(1, error)
    assert last is error if told is None else isinstance(last, told)
    asked.begin(1)
    assert ask(asked) == NEWEST


def test_an_end_that_was_wished_for_changes_nothing(asked: Negotiations) -> None:
    assert asked.interrupted(1, None) is None
    asked.begin(1)
    assert ask(asked) == NEWEST


def test_a_node_that_was_never_asked_is_told_of_as_it_is() -> None:
    error = DisconnectError("closed")
    assert Negotiations(str).interrupted(5, error) is error


def test_the_end_of_a_connection_takes_what_was_agreed_on_with_it(asked: Negotiations) -> None:
    asked.begin(2)
    asked.answered(1, KNOWN)
    asked.end(1)
    assert asked.versions == {}
    assert list(asked.due) == [2]
    asked.end(2)
    assert asked.due == {}


def test_a_node_that_is_forgotten_begins_anew_when_it_comes_back(asked: Negotiations) -> None:
    asked.interrupted(1, DisconnectError("closed"))
    asked.forget(1)
    asked.forget(9)
    asked.begin(1)
    assert ask(asked) == NEWEST


def test_a_refusal_leaves_the_next_connection_the_newest_version(asked: Negotiations) -> None:
    error = asked.answered(1, ApiVersionsResponse(error_code=Errors.REBOOTSTRAP_REQUIRED))
    assert asked.interrupted(1, error) is error
    asked.end(1)
    asked.begin(1)
    assert ask(asked) == NEWEST
