"""KafkaFuture: completion, waiting, callbacks, chaining."""

from __future__ import annotations

import threading

import pytest

from kclient.errors import KafkaTimeoutError
from kclient.utils.futures import CompletableFuture, KafkaFuture


def test_result_waits_until_another_thread_completes_it() -> None:
    future: CompletableFuture[int] = CompletableFuture()
    thread = threading.Thread(target=lambda: future.complete(7))
    thread.start()
    assert future.result(10) == 7
    thread.join()


def test_the_first_completion_wins() -> None:
    future: CompletableFuture[int] = CompletableFuture()
    assert future.complete(1)
    assert not future.fail(ValueError("late"))
    assert future.result() == 1
    assert future.exception() is None


def test_waiting_too_long_raises_a_timeout_and_leaves_the_future_open() -> None:
    future: CompletableFuture[int] = CompletableFuture()
    with pytest.raises(KafkaTimeoutError):
        future.result(0.01)
    assert not future.done()


def test_a_failure_is_raised_by_result_and_returned_by_exception() -> None:
    error = ValueError("no")
    future: CompletableFuture[int] = CompletableFuture.failed(error)
    assert future.exception() is error
    with pytest.raises(ValueError, match="no"):
        future.result()


def test_a_callback_added_after_completion_runs_at_once() -> None:
    seen: list[object] = []
    CompletableFuture.completed(3).add_done_callback(lambda future: seen.append(future.result()))
    assert seen == [3]


def test_a_raising_callback_is_logged_and_the_others_still_run(caplog: pytest.LogCaptureFixture) -> None:
    future: CompletableFuture[int] = CompletableFuture()
    seen: list[int] = []

    def bad(_: object) -> None:
        raise RuntimeError("callback")

    future.add_done_callback(bad)
    future.add_done_callback(lambda done: seen.append(done.result()))
    future.complete(1)
    assert seen == [1]
    assert "callback raised" in caplog.text


def test_a_callback_that_would_end_the_program_ends_no_other_thread(caplog: pytest.LogCaptureFixture) -> None:
    future: CompletableFuture[int] = CompletableFuture()
    seen: list[int] = []

    def bad(_: object) -> int:
        raise SystemExit

    future.add_done_callback(bad)
    future.add_done_callback(lambda done: seen.append(done.result()))
    completed: list[bool] = []
    thread = threading.Thread(target=lambda: completed.append(future.complete(1)))
    thread.start()
    thread.join(10)
    assert (completed, seen) == ([True], [1])
    assert "callback raised" in caplog.text


def test_an_interrupt_of_the_main_thread_comes_out_when_all_callbacks_were_called() -> None:
    future: CompletableFuture[int] = CompletableFuture()
    seen: list[int] = []

    def interrupted(_: object) -> None:
        raise KeyboardInterrupt

    future.add_done_callback(interrupted)
    future.add_done_callback(lambda done: seen.append(done.result()))
    with pytest.raises(KeyboardInterrupt):
        future.complete(1)
    assert seen == [1]


def test_other_classes_can_be_registered_as_kafka_futures() -> None:
    class Slim:
        pass

    KafkaFuture.register(Slim)
    assert isinstance(Slim(), KafkaFuture)
