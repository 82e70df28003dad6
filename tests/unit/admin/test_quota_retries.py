"""Topics that a quota of mutations refuses: what is asked for again, when, and what is told at the end."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.mock_time import MockTime
from kclient.admin import NewTopic
from kclient.admin.internals.context import OperationContext
from kclient.admin.internals.driver import Call
from kclient.admin.internals.operations.topics import create_topics, delete_topics
from kclient.errors import (
    AdminError,
    ClientClosedError,
    Errors,
    KafkaTimeoutError,
    ThrottlingQuotaExceededError,
    TopicExistsError,
)
from kclient.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsResponse
from kclient.protocol.messages.delete_topics import DeletableTopicResult, DeleteTopicsResponse
from kclient.utils.backoff import ExponentialBackoff

REFUSED = int(Errors.THROTTLING_QUOTA_EXCEEDED)
TIMEOUT_MS = 10_000


class Rig:
    """An operation, whose calls are kept and answered one after the other."""

    def __init__(self, operation: Callable[..., Any], *args: Any) -> None:
        self.time = MockTime()
        self.calls: list[Call] = []
        self.result: Any = None
        driver: Any = self
        context = OperationContext(driver, self.time.timer(TIMEOUT_MS), ExponentialBackoff(50, 100, jitter=0))
        self.operation = operation(context, *args)
        next(self.operation)

    def submit(self, call: Call) -> Any:
        self.calls.append(call)
        return call.future

    def answer(self, outcome: Any) -> None:
        """Answer the call that waits; `result` is there when the operation has come to its end."""
        try:
            self.operation.send([outcome])
        except StopIteration as end:
            self.result = end.value

    def delays_ms(self) -> list[int]:
        return [max(call.not_before_ms - self.time.monotonic_ms(), 0) for call in self.calls]

    def asked(self) -> list[list[str]]:
        requests = [call.build(6) for call in self.calls if call.build is not None]
        return [[topic.name for topic in request.topics] for request in requests]


def created(throttle_ms: int = 0, **codes: int) -> CreateTopicsResponse:
    topics = [
        CreatableTopicResult(name=name, error_code=code, error_message="so" if code else None)
        for name, code in codes.items()
    ]
    return CreateTopicsResponse(throttle_time_ms=throttle_ms, topics=topics)


def deleted(throttle_ms: int = 0, **codes: int) -> DeleteTopicsResponse:
    responses = [DeletableTopicResult(name=name, error_code=code) for name, code in codes.items()]
    return DeleteTopicsResponse(throttle_time_ms=throttle_ms, responses=responses)


def creating(*names: str, retry: bool = True) -> Rig:
    return Rig(create_topics, [NewTopic(name) for name in names], False, retry)


def test_only_what_was_refused_is_asked_for_again_and_after_the_time_the_broker_wants() -> None:
    rig = creating("a", "b", "c")
    rig.answer(created(700, a=0, b=REFUSED, c=REFUSED))
    assert rig.delays_ms() == [0, 700]
    rig.answer(created(300, b=0, c=REFUSED))
    assert rig.delays_ms() == [0, 700, 300]
    rig.answer(created(c=0))
    assert rig.asked() == [["a", "b", "c"], ["b", "c"], ["c"]]
    assert sorted(rig.result) == ["a", "b", "c"]


def test_deletions_are_asked_for_again_alike() -> None:
    rig = Rig(delete_topics, ["a", "b"], True)
    rig.answer(deleted(700, a=0, b=REFUSED))
    assert rig.delays_ms() == [0, 700]
    rig.answer(deleted(b=0))
    assert rig.asked() == [["a", "b"], ["b"]]
    assert rig.result == {"a": None, "b": None}


@pytest.mark.parametrize("operation", ["create", "delete"])
def test_without_retries_the_error_has_the_time_to_wait(operation: str) -> None:
    rig = creating("a", retry=False) if operation == "create" else Rig(delete_topics, ["a"], False)
    with pytest.raises(ThrottlingQuotaExceededError) as raised:
        rig.answer((created if operation == "create" else deleted)(700, a=REFUSED))
    assert raised.value.throttle_time_ms == 700
    assert len(rig.calls) == 1


def test_at_the_deadline_the_error_has_the_time_that_is_left_and_results_are_kept() -> None:
    rig = creating("a", "b", "c")
    rig.answer(created(TIMEOUT_MS + 500, a=0, b=REFUSED, c=int(Errors.TOPIC_ALREADY_EXISTS)))
    rig.time.advance(TIMEOUT_MS)
    over = KafkaTimeoutError("never sent")
    with pytest.raises(AdminError) as raised:
        rig.answer(over)
    assert list(raised.value.results) == ["a"]
    errors: dict[Any, Any] = dict(raised.value.errors)
    assert isinstance(errors["b"], ThrottlingQuotaExceededError)
    assert errors["b"].throttle_time_ms == 500
    assert errors["b"].__cause__ is over
    assert isinstance(errors["c"], TopicExistsError)


def test_no_negative_time_is_left() -> None:
    rig = creating("a")
    rig.answer(created(700, a=REFUSED))
    rig.time.advance(TIMEOUT_MS)
    with pytest.raises(ThrottlingQuotaExceededError) as raised:
        rig.answer(KafkaTimeoutError("no answer"))
    assert raised.value.throttle_time_ms == 0


def test_a_broker_that_wants_no_wait_is_asked_again_with_backoff() -> None:
    rig = creating("a")
    for expected_ms in (50, 100, 100):
        rig.answer(created(a=REFUSED))
        assert rig.delays_ms()[-1] == expected_ms


def test_another_failure_of_the_second_try_leaves_what_the_first_has_done() -> None:
    rig = creating("a", "b")
    rig.answer(created(700, a=0, b=REFUSED))
    closed = ClientClosedError("closed")
    with pytest.raises(AdminError) as raised:
        rig.answer(closed)
    assert (list(raised.value.results), raised.value.errors) == (["a"], {"b": closed})
