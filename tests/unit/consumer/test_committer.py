"""Asking for commits: of what, as whom, how many at a time, and who hears of the outcome."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.interceptor import ConsumerInterceptor
from kclient.consumer.internals.requests import CommitRequest
from kclient.errors import (
    CommitFailedError,
    ErrorCode,
    IllegalStateError,
    RebalanceInProgressError,
    TopicAuthorizationError,
)
from kclient.protocol.api_keys import ApiKeys

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
INTERVAL_MS = 1000
MakeRig = Callable[..., Any]


def offsets(**numbers: int) -> dict[TopicPartition, OffsetAndMetadata]:
    return {TopicPartition(name[0], int(name[1])): OffsetAndMetadata(at) for name, at in numbers.items()}


def committed(request: CommitRequest) -> dict[TopicPartition, int]:
    return {tp: each.offset for tp, each in request.offsets.items()}


def commit(rig: Any, what: Any = None, **settings: Any) -> CommitRequest:
    made: CommitRequest = rig.core.commits.commit(what, rig.time.monotonic_ms() + 500, **settings)
    return made


def held(rig: Any) -> None:
    """Let the coordinator not answer commits."""
    rig.handlers[ApiKeys.OFFSET_COMMIT] = lambda _request, _version: None


@pytest.fixture
def automatic(make_rig: MakeRig) -> Any:
    """A member that commits by itself, with t-0 and t-1 assigned and five records read."""
    rig = make_rig(group_id="g", auto_commit_interval_ms=INTERVAL_MS)
    rig.fill(T0, 5)
    rig.join()
    rig.consumer.poll(100)
    assert rig.consumer.position(T0) == 5
    return rig


class TestWhat:
    def test_no_offsets_at_all_mean_all_positions(self, automatic: Any) -> None:
        automatic.consumer.seek(T1, 3)
        assert committed(commit(automatic)) == {T0: 5, T1: 3}

    def test_offsets_that_are_given_are_taken_as_they_are(self, automatic: Any) -> None:
        assert committed(commit(automatic, offsets(t1=9))) == {T1: 9}
        assert automatic.committed == {T1: 9}

    @pytest.mark.parametrize(("by_itself", "asked"), [(True, {}), (False, {T0: 0})])
    def test_positions_to_begin_with_are_committed_only_if_the_application_says_so(
        self, rig: Any, by_itself: bool, asked: dict[TopicPartition, int]
    ) -> None:
        rig.fill(T0, 5)
        rig.consumer.assign([T0])
        rig.rounds()
        assert not rig.core.commits.polled
        assert committed(commit(rig, automatic=by_itself)) == asked

    def test_nothing_to_commit_is_a_success_without_a_request(self, rig: Any) -> None:
        request = commit(rig, {})
        assert request.result(0) == {}
        assert rig.core.commits.asked == 0
        assert not rig.sent(ApiKeys.OFFSET_COMMIT)

    def test_topics_go_with_their_ids_as_far_as_these_are_known(self, rig: Any) -> None:
        rig.join()
        request = commit(rig, offsets(t0=1, u0=1))
        assert request.topic_ids == {T0: rig.topic_ids["t"]}, "nobody has asked for the other topic yet"


class TestAsWhom:
    def test_a_member_commits_in_its_generation(self, automatic: Any) -> None:
        generation = commit(automatic).generation
        assert (generation.id, generation.member_id) == (1, "m-1")

    def test_who_assigned_partitions_by_himself_commits_in_none(self, rig: Any) -> None:
        rig.consumer.assign([T0])
        commit(rig, offsets(t0=3))
        (request,) = rig.sent(ApiKeys.OFFSET_COMMIT)
        assert (request.generation_id_or_member_epoch, request.member_id) == (-1, "")
        assert rig.committed == {T0: 3}

    def test_without_a_group_there_is_nowhere_to_commit_to(self, make_rig: MakeRig) -> None:
        rig = make_rig()
        rig.consumer.assign([T0])
        error = commit(rig, offsets(t0=3)).exception(0)
        assert isinstance(error, IllegalStateError)
        assert "group.id" in str(error)

    def test_who_has_not_joined_yet_cannot_commit(self, rig: Any) -> None:
        rig.consumer.subscribe(["t"])
        assert isinstance(commit(rig, offsets(t0=3)).exception(0), CommitFailedError)
        assert rig.core.commits.asked == 0

    def test_in_a_rebalance_the_application_is_told_to_poll_and_commit_again(self, rig: Any) -> None:
        rig.join()
        rig.handlers[ApiKeys.JOIN_GROUP] = lambda _request, _version: None
        rig.consumer.enforce_rebalance()
        rig.consumer.poll(100)
        error = commit(rig, offsets(t0=3)).exception(0)
        assert isinstance(error, RebalanceInProgressError)
        assert "poll()" in str(error)
        assert rig.core.commits.asked == 0

    def test_to_commit_nothing_needs_no_member(self, rig: Any) -> None:
        rig.consumer.subscribe(["t"])
        assert commit(rig, {}).exception(0) is None


class TestAutomatically:
    """auto.commit.interval.ms: when the next commit is due, and what a refusal changes."""

    def due_ms(self, rig: Any) -> int:
        due: int = rig.core.commits.next_auto_ms - rig.time.monotonic_ms()
        return due

    def auto_commit(self, rig: Any) -> None:
        rig.core.commits.auto_commit(rig.time.monotonic_ms())

    def told(self, rig: Any) -> None:
        """Let the application's thread hear of what is through."""
        rig.rounds(1)
        rig.consumer.poll(0)

    def test_the_next_is_an_interval_later_and_not_while_the_last_is_under_way(self, automatic: Any) -> None:
        held(automatic)
        automatic.core.commits.next_auto_ms = 0
        self.auto_commit(automatic)
        asked = automatic.core.commits.asked
        assert self.due_ms(automatic) == INTERVAL_MS
        automatic.time.advance(INTERVAL_MS + 10)
        self.auto_commit(automatic)
        assert automatic.core.commits.asked == asked
        assert self.due_ms(automatic) == -10, "it is due, and goes as soon as the last one is through"

    @pytest.mark.parametrize(
        ("code", "due_ms"),
        [(ErrorCode.COORDINATOR_NOT_AVAILABLE, 100), (ErrorCode.INVALID_COMMIT_OFFSET_SIZE, 1000)],
    )
    def test_what_may_pass_is_tried_again_after_a_backoff_and_what_may_not_after_the_interval(
        self, automatic: Any, code: int, due_ms: int
    ) -> None:
        assert automatic.core.config.retry_backoff_ms == 100
        automatic.on(ApiKeys.OFFSET_COMMIT, automatic.refuse_commit(code))
        self.auto_commit(automatic)
        started_ms = automatic.time.monotonic_ms()
        self.told(automatic)
        passed_ms = automatic.time.monotonic_ms() - started_ms
        assert due_ms - passed_ms <= self.due_ms(automatic) <= due_ms

    def test_a_failure_after_a_success_is_warned_of_again(
        self, automatic: Any, caplog: pytest.LogCaptureFixture
    ) -> None:
        refused = automatic.refuse_commit(ErrorCode.INVALID_COMMIT_OFFSET_SIZE)
        automatic.on(ApiKeys.OFFSET_COMMIT, refused, refused, automatic.offset_commit, refused)
        counts = []
        for _ in range(4):
            automatic.core.commits.auto_commit_now()
            self.told(automatic)
            counts.append(caplog.text.count("The automatic commit failed"))
        assert counts == [1, 1, 1, 2]

    def test_what_nobody_has_read_is_not_committed_and_not_told_of(self, make_rig: MakeRig) -> None:
        noting = Noting()
        rig = make_rig(group_id="g", interceptor_classes=[noting])
        rig.consumer.assign([T0])
        rig.rounds()
        rig.core.commits.auto_commit_now()
        self.told(rig)
        assert not rig.sent(ApiKeys.OFFSET_COMMIT)
        assert noting.commits == []


class Noting(ConsumerInterceptor):
    """Notes what is committed; with `error` it raises that."""

    def __init__(self, error: Exception | None = None) -> None:
        self.commits: list[dict[TopicPartition, int]] = []
        self.error = error

    def on_commit(self, offsets: Any) -> None:
        self.commits.append({tp: each.offset for tp, each in offsets.items()})
        if self.error is not None:
            raise self.error


class TestOutcome:
    def test_interceptors_hear_of_what_was_committed_though_one_of_them_fails(
        self, make_rig: MakeRig, caplog: pytest.LogCaptureFixture
    ) -> None:
        first, second = Noting(LookupError("mine")), Noting()
        rig = make_rig(group_id="g", enable_auto_commit=False, interceptor_classes=[first, second])
        rig.consumer.assign([T0])
        rig.core.commits.committed(offsets(t0=4))
        assert first.commits == second.commits == [{T0: 4}]
        assert "mine" in caplog.text

    def test_interceptors_do_not_hear_of_what_was_refused(self, make_rig: MakeRig) -> None:
        noting = Noting()
        rig = make_rig(group_id="g", enable_auto_commit=False, interceptor_classes=[noting])
        rig.consumer.assign([T0])
        rig.on(ApiKeys.OFFSET_COMMIT, rig.refuse_commit(ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        outcomes: list[Any] = []
        rig.core.commits.commit_in_background(offsets(t0=4), lambda _, error: outcomes.append(error))
        rig.rounds()
        rig.consumer.poll(0)
        assert [type(error) for error in outcomes] == [TopicAuthorizationError]
        assert noting.commits == []

    def test_who_commits_in_the_background_hears_of_it_in_a_call_of_his_own(self, rig: Any) -> None:
        rig.consumer.assign([T0])
        outcomes: list[Any] = []
        rig.core.commits.commit_in_background(offsets(t0=4), lambda *outcome: outcomes.append(outcome))
        rig.rounds(10)
        assert rig.committed == {T0: 4}
        assert outcomes == []
        rig.consumer.poll(0)
        assert outcomes == [(offsets(t0=4), None)]

    def test_who_cannot_commit_in_the_background_is_told_in_the_same_way(self, rig: Any) -> None:
        rig.consumer.subscribe(["t"])
        outcomes: list[Any] = []
        rig.core.commits.commit_in_background(offsets(t0=4), lambda _, error: outcomes.append(error))
        assert outcomes == []
        rig.consumer.poll(0)
        assert [type(error) for error in outcomes] == [CommitFailedError]
