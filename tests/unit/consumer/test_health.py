"""Health of a consumer: its place in the group, and the clocks of heartbeats and polls."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.consumer.model import NO_ANSWER, ConsumerModel
from kclient.common.topic_partition import TopicPartition
from kclient.errors import FencedInstanceIdError
from kclient.protocol.api_keys import ApiKeys

T0 = TopicPartition("t", 0)


@pytest.fixture
def joined(make_rig: Callable[..., ConsumerModel]) -> ConsumerModel:
    """A stable member."""
    made = make_rig(
        group_id="g", enable_auto_commit=False, session_timeout_ms=6000, max_poll_interval_ms=60_000
    )
    made.join()
    made.rounds(3)
    return made


def test_ages_are_those_of_the_last_heartbeat_poll_and_assignment(joined: ConsumerModel) -> None:
    joined.consumer.poll(0)
    before = joined.consumer.health()
    assert (before.member_state, before.healthy, before.last_poll_ms) == ("stable", True, 0)
    assert before.max_poll_interval_ms == 60_000
    assert before.last_heartbeat_ms is not None
    assert before.assignment_age_ms is not None
    joined.time.advance(1500)
    after = joined.consumer.health()
    assert after.last_poll_ms == 1500
    assert after.last_heartbeat_ms == before.last_heartbeat_ms + 1500
    assert after.assignment_age_ms == before.assignment_age_ms + 1500


def test_heartbeats_without_an_answer_are_a_reason_also_after_the_session_was_given_another_chance(
    joined: ConsumerModel,
) -> None:
    joined.handlers[ApiKeys.HEARTBEAT] = lambda request, version: NO_ANSWER
    joined.handlers[ApiKeys.FIND_COORDINATOR] = lambda request, version: NO_ANSWER
    for _ in range(130):
        joined.time.advance(50)
        joined.pump()
    (reason,) = joined.consumer.health().reasons
    assert "session.timeout.ms" in reason


def test_an_error_that_every_call_raises_from_now_on_is_a_reason(joined: ConsumerModel) -> None:
    joined.core.queue.fail(FencedInstanceIdError("another one has taken the place"))
    assert joined.consumer.health().reasons == ("another one has taken the place",)


def test_health_is_told_while_another_thread_uses_the_consumer(joined: ConsumerModel) -> None:
    joined.consumer._use._owner["owner"] = -1
    assert joined.consumer.health().healthy
    joined.consumer._use._owner.clear()


def test_lag_is_that_of_current_lag(make_rig: Callable[..., ConsumerModel]) -> None:
    model = make_rig(group_id="g", enable_auto_commit=False, max_poll_records=2)
    model.fill(T0, 5)
    model.consumer.assign([T0])
    assert len(model.consumer.poll(1000)) == 2
    assert model.consumer.health().lag == {T0: model.consumer.current_lag(T0)} == {T0: 3}
