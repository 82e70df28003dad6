"""The calls of a consumer that wait."""

from __future__ import annotations

import inspect
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

from kclient.common.topic_partition import TopicPartition
from kclient.consumer.interceptor import ConsumerInterceptor
from kclient.consumer.internals.consumer_calls import ConsumerCalls
from kclient.consumer.internals.requests import Request
from kclient.consumer.listener import ConsumerRebalanceListener
from kclient.errors import IllegalStateError, KafkaTimeoutError, WakeupError
from kclient.protocol.api_keys import ApiKeys
from kclient.utils.futures import CompletableFuture
from kclient.utils.steps import Pause, Steps, run
from kclient.utils.time import Timer

T0 = TopicPartition("t", 0)


def wait_for_change(rig: Any, seen: int, timer: Timer) -> None:
    def steps() -> Steps[None]:
        yield rig.consumer._calls._next_change(seen, timer)

    run(steps(), rig.time)


def test_a_wait_ends_with_a_change_since_the_last_look_and_not_with_old_data(rig: Any) -> None:
    rig.fill(T0, 5)
    rig.consumer.assign([T0])
    rig.rounds(20)
    assert rig.core.buffer.turns()
    rig.consumer.pause([T0])
    seen = rig.core.changes.count
    started = rig.time.monotonic_ms()
    wait_for_change(rig, seen, rig.time.timer(50))
    assert rig.time.monotonic_ms() - started >= 50
    rig.core.changes.notify()
    timer = rig.time.timer(10_000)
    wait_for_change(rig, seen, timer)
    assert not timer.is_expired()


def test_a_poll_whose_records_interceptors_keep_to_themselves_waits_for_no_others(
    make_rig: Callable[..., Any],
) -> None:
    class Nothing(ConsumerInterceptor):
        def on_consume(self, records: Any) -> Any:
            return type(records)({})

    rig = make_rig(interceptor_classes=[Nothing()])
    rig.fill(T0, 5)
    rig.consumer.assign([T0])
    started = rig.time.monotonic_ms()
    assert not rig.consumer.poll(10_000)
    assert rig.time.monotonic_ms() - started < 10_000
    assert rig.consumer.position(T0) == 5


class Telling(ConsumerRebalanceListener):
    def __init__(self, told: list[str], error: BaseException | None = None) -> None:
        self.told = told
        self.error = error

    def on_partitions_revoked(self, partitions: Any) -> None:
        self.told.append("revoked")
        if self.error is not None:
            raise self.error


def test_an_interrupt_while_commits_are_waited_for_does_not_keep_the_member_from_leaving_and_waits_no_more(
    make_rig: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = make_rig(group_id="g", enable_auto_commit=False)
    told: list[str] = []
    rig.join(listener=Telling(told))

    def interrupted(lock: threading.Lock, timeout_ms: int) -> bool:
        told.append("wait")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(rig.time, "wait_for_lock", interrupted)
        patch.setattr(rig.network, "submit", rig._submit)  # no round of the loop, so no answer
        rig.consumer.commit_async({T0: 1})
        with pytest.raises(KeyboardInterrupt):
            rig.consumer.unsubscribe()
    assert told == ["revoked", "wait"]
    assert not rig.consumer.assignment()
    assert not rig.consumer.subscription()
    rig.rounds(20)
    assert rig.committed[T0] == 1
    assert len(rig.sent(ApiKeys.LEAVE_GROUP)) == 1


def test_the_group_is_left_also_if_the_listener_fails_and_its_error_comes_out(
    make_rig: Callable[..., Any],
) -> None:
    rig = make_rig(group_id="g", enable_auto_commit=False)
    told: list[str] = []
    rig.join(listener=Telling(told, LookupError("no such thing")))
    outcomes: list[Any] = []
    rig.consumer.commit_async({T0: 1}, lambda offsets, error: outcomes.append(error))
    with pytest.raises(LookupError, match="no such thing"):
        rig.consumer.unsubscribe()
    assert outcomes == [None]
    assert len(rig.sent(ApiKeys.LEAVE_GROUP)) == 1
    assert rig.core.commits.asked == 1


def test_a_request_that_fails_and_one_that_is_not_answered_in_time_differ_in_what_they_raise(
    make_rig: Callable[..., Any],
) -> None:
    rig = make_rig(group_id="g", enable_auto_commit=False)
    calls = rig.consumer._calls
    request = Request[int](rig.time.monotonic_ms() + 50)
    with pytest.raises(KafkaTimeoutError, match=r"^Nothing came within 50 ms$"):
        run(calls._answer(request, rig.time.timer(50), "Nothing came"), rig.time)
    request.fail(KafkaTimeoutError("the broker said so"))
    with pytest.raises(KafkaTimeoutError, match=r"^the broker said so$"):
        run(calls._answer(request, rig.time.timer(50), "Nothing came"), rig.time)


def test_a_wakeup_ends_the_wait_for_a_request_and_none_after_it(make_rig: Callable[..., Any]) -> None:
    rig = make_rig(group_id="g", enable_auto_commit=False)
    calls = rig.consumer._calls
    steps = calls._answer(Request[int](2**60), rig.time.timer(60_000), "Nothing came")
    pause = next(steps)
    rig.consumer.wakeup()
    rig.pump()
    assert pause.future.done()
    with pytest.raises(WakeupError):
        next(steps)
    rig.core.wakeup.raise_if_pending()


def test_a_face_may_wait_for_the_listener_and_nothing_is_read_before_it_is_done(
    make_rig: Callable[..., Any],
) -> None:
    done: CompletableFuture[None] = CompletableFuture()
    listener = Telling([])

    class Calls(ConsumerCalls):
        def call_listener(self, listener: Any, kind: Any, partitions: Any) -> Steps[None]:
            listener.told.append(f"{kind.value} begins")
            yield Pause(done, None)
            listener.told.append(f"{kind.value} ends")

    rig = make_rig(group_id="g", enable_auto_commit=False)
    rig.fill(T0, 5)
    calls = Calls(rig.core)
    rig.core.subscribe(["t"], listener)
    while not listener.told:
        timer = rig.time.timer(100)
        calls.begin_poll(timer.started_ms)
        steps = calls.records(timer)
        for pause in steps:
            if pause.future is done:
                break
            rig.rounds(1)
    assert calls.in_callback
    with pytest.raises(IllegalStateError, match="listener"):
        calls.begin_poll(rig.time.monotonic_ms())
    rig.rounds(20)
    assert listener.told == ["assigned begins"]
    done.complete(None)
    for _ in steps:
        rig.rounds(1)
    assert listener.told == ["assigned begins", "assigned ends"]
    assert not calls.in_callback


def test_a_wait_that_is_given_up_leaves_the_next_one_as_it_was(rig: Any) -> None:
    rig.consumer.assign([T0])
    rig.rounds(20)
    timer = rig.time.timer(100)
    rig.consumer._calls.begin_poll(timer.started_ms)
    steps = rig.consumer._calls.records(timer)
    next(steps)
    steps.close()
    rig.fill(T0, 3)
    assert len(rig.consumer.poll(10_000)) == 3


def test_a_poll_that_finds_records_at_once_is_one_generator(rig: Any) -> None:
    rig.fill(T0, 3)
    rig.consumer.assign([T0])
    rig.rounds(20)
    generators: list[str] = []

    def note(frame: Any, event: str, _: Any) -> None:
        code = frame.f_code
        # The pure body of the record reader has generators of its own.
        if event == "call" and code.co_flags & inspect.CO_GENERATOR and "_accel" not in code.co_filename:
            generators.append(code.co_name)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        found = rig.consumer.poll(10_000)
    finally:
        sys.setprofile(before)
    assert len(found) == 3
    assert generators == ["_look"]
