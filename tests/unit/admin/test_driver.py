"""Calls to coordinators: who waits for the same lookup, and what becomes of them. Rounds of the loop by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.mock_client import MockClient, SentRequest
from harness.mock_time import MockTime
from kclient.admin.internals.driver import AdminDriver, Call, Target
from kclient.client.api_versions import NodeApiVersions
from kclient.client.metadata import Metadata
from kclient.client.metadata_schedule import MetadataSchedule
from kclient.common.node import Node
from kclient.errors import Errors, GroupAuthorizationError, KafkaTimeoutError, NotCoordinatorError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from kclient.protocol.messages.find_coordinator import Coordinator, FindCoordinatorResponse
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.futures import CompletableFuture
from kclient.utils.log_context import LogContext

BACKOFF_MS = 100


class Rig:
    """A driver without its thread, whose calls delete groups."""

    def __init__(self, *, retries: int = 1000) -> None:
        self.time = MockTime()
        metadata = Metadata(MetadataSchedule(ExponentialBackoff(5, 50), 300_000))
        metadata.bootstrap([("mock", 9092)])
        self.client = MockClient(self.time, metadata)
        self.driver = AdminDriver(
            self.client,
            metadata,
            client_id="test",
            request_timeout_ms=30_000,
            retry_backoff=ExponentialBackoff(BACKOFF_MS, 1000, jitter=0),
            retries=retries,
            time=self.time,
            log_context=LogContext(""),
        )

    def submit(
        self, group_id: str, *, timeout_ms: int = 60_000, owner: object = "owner"
    ) -> CompletableFuture[Any]:
        def moved(message: Any) -> Any:
            code = message.results[0].error_code
            return Errors.for_code(code) if code == Errors.NOT_COORDINATOR else None

        request = DeleteGroupsRequest(groups_names=[group_id])
        deadline_ms = self.time.monotonic_ms() + timeout_ms
        target = Target.of_group(group_id)
        return self.driver.submit(
            Call(ApiKeys.DELETE_GROUPS, lambda _version: request, target, deadline_ms, owner, moved)
        )

    def find_coordinator(self, group_id: str) -> CompletableFuture[Any]:
        deadline_ms = self.time.monotonic_ms() + 1000
        return self.driver.submit(
            Call(ApiKeys.FIND_COORDINATOR, None, Target.of_group(group_id), deadline_ms, "owner")
        )

    def rounds(self, count: int = 3) -> None:
        for _ in range(count):
            self.driver._step()

    def waiting(self, api_key: ApiKeys) -> list[SentRequest]:
        return [sent for sent in self.client.requests if sent.request.api_key is api_key]

    def found(self, codes: dict[str, int] | None = None, *, node_id: int = 1) -> None:
        """Answer the lookups that wait."""

        def place(name: str) -> Coordinator:
            code = (codes or {}).get(name, 0)
            return Coordinator(key=name, node_id=node_id, host="there", port=9092, error_code=code)

        self._answer(
            ApiKeys.FIND_COORDINATOR,
            lambda sent: (
                FindCoordinatorResponse(coordinators=list(map(place, sent.message.coordinator_keys)))
                if sent.version >= 4
                else FindCoordinatorResponse(node_id=node_id, host="there", port=9092)
            ),
        )

    def deleted(self, code: int = 0) -> None:
        """Answer the calls that were sent."""
        self._answer(
            ApiKeys.DELETE_GROUPS,
            lambda sent: DeleteGroupsResponse(
                results=[DeletableGroupResult(group_id=sent.message.groups_names[0], error_code=code)]
            ),
        )

    def _answer(self, api_key: ApiKeys, response: Callable[[SentRequest], Any]) -> None:
        self.rounds()
        for sent in self.waiting(api_key):
            self.client.respond(response(sent), matcher=lambda message, sent=sent: message is sent.message)
        self.rounds()

    @property
    def asked(self) -> list[list[str]]:
        sent = [each for each in self.client.sent if each.request.api_key is ApiKeys.FIND_COORDINATOR]
        return [each.message.coordinator_keys or [each.message.key] for each in sent]


def test_calls_for_the_same_group_wait_for_one_lookup_and_other_groups_are_looked_up_with_it() -> None:
    rig = Rig()
    calls = [rig.submit(group_id) for group_id in ("a", "b", "a")]
    rig.found()
    assert rig.asked == [["a", "b"]]
    assert {sent.request.node_id for sent in rig.waiting(ApiKeys.DELETE_GROUPS)} == {1}
    rig.deleted()
    assert [call.result(0).results[0].group_id for call in calls] == ["a", "b", "a"]


def test_an_old_broker_is_asked_for_one_group_after_the_other() -> None:
    rig = Rig()
    rig.client.set_api_versions(
        NodeApiVersions({ApiKeys.FIND_COORDINATOR: (0, 3), ApiKeys.DELETE_GROUPS: (0, 2)})
    )
    calls = [rig.submit(group_id) for group_id in ("a", "b", "c")]
    rig.found()
    rig.found()
    rig.deleted()
    assert rig.asked == [["a"], ["b"], ["c"]]
    assert all(call.exception(0) is None for call in calls)


def test_the_coordinator_that_answered_is_known_without_another_request() -> None:
    rig = Rig()
    rig.submit("a")
    rig.found(node_id=5)
    rig.deleted()
    sent = len(rig.client.sent)
    found = rig.find_coordinator("a")
    rig.rounds()
    assert found.result(0) == Node(5, "there", 9092)
    assert len(rig.client.sent) == sent
    assert rig.driver._waiting == []


def test_one_that_is_not_known_is_looked_up() -> None:
    rig = Rig()
    found = rig.find_coordinator("a")
    rig.found(node_id=5)
    assert found.result(0) == Node(5, "there", 9092)
    assert rig.asked == [["a"]]


def test_a_lookup_that_is_refused_fails_the_calls_of_that_group_alone() -> None:
    rig = Rig()
    refused, fine, too = rig.submit("a"), rig.submit("b"), rig.submit("a")
    rig.found({"a": Errors.GROUP_AUTHORIZATION_FAILED})
    for call in (refused, too):
        assert isinstance(call.exception(0), GroupAuthorizationError)
    rig.deleted()
    assert fine.exception(0) is None


def test_who_gives_up_leaves_the_lookup_to_the_others_that_wait_for_it() -> None:
    rig = Rig()
    impatient, patient = rig.submit("a", timeout_ms=1000), rig.submit("a")
    rig.rounds()
    rig.time.advance(1000)
    rig.rounds()
    assert isinstance(impatient.exception(0), KafkaTimeoutError)
    assert not patient.done()
    rig.found()
    rig.deleted()
    assert patient.exception(0) is None


def test_a_call_that_times_out_says_why_its_coordinator_was_not_found() -> None:
    rig = Rig()
    call = rig.submit("a", timeout_ms=1000)
    rig.found({"a": Errors.COORDINATOR_NOT_AVAILABLE})
    rig.time.advance(1000)
    rig.rounds()
    text = str(call.exception(0))
    assert "the coordinator of group 'a' could not be reached" in text
    assert "internal topic may not be ready" in text


@pytest.mark.parametrize("by_deadline", [True, False])
def test_a_lookup_that_nobody_waits_for_is_not_repeated(by_deadline: bool) -> None:
    rig = Rig()
    rig.submit("a", timeout_ms=50)
    rig.found({"a": Errors.COORDINATOR_NOT_AVAILABLE})
    if by_deadline:
        rig.time.advance(50)
    else:
        rig.driver.abandon("owner")
    for _ in range(10):
        rig.rounds()
        rig.time.advance(1000)
    assert rig.asked == [["a"]]


def test_a_coordinator_that_moved_is_looked_up_again() -> None:
    rig = Rig()
    call = rig.submit("a")
    rig.found(node_id=1)
    rig.deleted(Errors.NOT_COORDINATOR)
    rig.time.advance(BACKOFF_MS)
    rig.found(node_id=2)
    assert [sent.request.node_id for sent in rig.waiting(ApiKeys.DELETE_GROUPS)] == [2]
    rig.deleted()
    assert call.exception(0) is None


def test_the_call_after_one_that_met_the_wrong_broker_and_may_not_be_retried_looks_it_up_again() -> None:
    rig = Rig(retries=0)
    call = rig.submit("a")
    rig.found()
    rig.deleted(Errors.NOT_COORDINATOR)
    assert isinstance(call.exception(0), NotCoordinatorError)
    again = rig.submit("a")
    rig.found(node_id=2)
    assert [sent.request.node_id for sent in rig.waiting(ApiKeys.DELETE_GROUPS)] == [2]
    rig.deleted()
    assert again.exception(0) is None
