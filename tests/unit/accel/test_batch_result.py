"""Results of batches and the futures of their records."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

from harness.waiting import wait_until
from kclient._accel import BatchResult, Future
from kclient.errors import KafkaTimeoutError
from kclient.record import BatchBuilder


def future(result: BatchResult, index: int = 0) -> Future:
    return Future(result, index, (1000, -1, 3))


def in_thread(function: Any) -> threading.Thread:
    thread = threading.Thread(target=function)
    thread.start()
    return thread


def test_metadata_counts_on_from_the_base_offset() -> None:
    result = BatchResult("t", 2)
    result.complete(40)
    assert future(result, 3).result() == ("t", 2, 43, 1000, -1, 3)


def test_the_log_append_time_replaces_the_producers_timestamp() -> None:
    result = BatchResult("t", 2)
    result.complete(40, 7777)
    assert future(result).result()[3] == 7777


def test_the_factory_makes_the_metadata() -> None:
    result = BatchResult("t", 2, lambda *args: args)
    result.complete(40)
    assert future(result, 3).result() == (result, 3, 1000, -1, 3)


def test_an_offset_that_is_not_known_is_minus_one() -> None:
    result = BatchResult("t", 2)
    result.complete(-1)
    assert future(result, 3).result()[2] == -1


def test_the_error_of_a_batch_is_raised_by_its_futures() -> None:
    result = BatchResult("t", 0)
    error = RuntimeError("no")
    result.complete(-1, error=error)
    with pytest.raises(RuntimeError, match="no"):
        future(result).result()
    assert future(result).exception() is error


def test_records_can_fail_with_errors_of_their_own() -> None:
    result = BatchResult("t", 0)
    result.complete(-1, error=RuntimeError("batch"), record_error=KeyError)
    assert repr(future(result, 4).exception()) == "KeyError(4)"


def test_only_the_first_completion_counts() -> None:
    result = BatchResult("t", 0)
    assert result.complete(5)
    assert not result.complete(6, error=RuntimeError())
    assert future(result).result()[2] == 5


def test_a_waiter_is_woken_by_completion() -> None:
    result = BatchResult("t", 0)
    found: list[Any] = []
    thread = in_thread(lambda: found.append(future(result).result(10)))
    wait_until(lambda: result._latch is not None)
    result.complete(1)
    thread.join(10)
    assert found[0][2] == 1


def test_waiting_in_vain_raises_kafkas_timeout() -> None:
    with pytest.raises(KafkaTimeoutError, match="t-0"):
        future(BatchResult("t", 0)).result(0)
    assert not BatchResult("t", 0).wait(0)


def test_nothing_is_made_for_waiters_who_never_come() -> None:
    result = BatchResult("t", 0)
    result.complete(1)
    assert result.wait(0)
    assert result._latch is None


def test_callbacks_run_in_the_order_of_the_records_and_before_wait_returns() -> None:
    result = BatchResult("t", 0)
    seen: list[int] = []
    release = threading.Event()
    future(result, 0).add_done_callback(lambda _: release.wait(10))
    for index in range(1, 4):
        result.add_callback(future(result, index), lambda metadata, _: seen.append(metadata[2]), True)
    completer = in_thread(lambda: result.complete(10))
    wait_until(lambda: result.done)
    assert not result.wait(0)
    release.set()
    assert result.wait(10)
    assert seen == [11, 12, 13]
    completer.join(10)


def test_a_future_is_done_when_the_callback_it_was_sent_with_has_run_and_not_before() -> None:
    result = BatchResult("t", 0)
    builder = BatchBuilder("t", 0, 1 << 20, result, 0)
    seen: list[Any] = []

    def deliver(metadata: Any, _: BaseException | None) -> None:
        own = futures[metadata[2]]
        seen.append((own.done(), own.result()[2], own.exception(), result.wait()))
        own.add_done_callback(lambda done: seen.append(done.done()))

    futures: list[Any] = [builder.append(1, None, b"x", None, deliver) for _ in range(2)]
    futures[0].add_done_callback(lambda done: seen.append((done.done(), "first")))
    result.complete(0)
    assert seen == [(False, 0, None, True), (False, 1, None, True), (True, "first"), True, True]
    assert all(f.done() for f in futures)


def test_another_thread_finds_a_future_done_and_has_its_result_only_after_the_callback() -> None:
    whole, result = BatchResult("t", 0), BatchResult("t", 0)
    entered, leave = threading.Event(), threading.Event()
    own = future(whole)

    def deliver(*_: object) -> None:
        entered.set()
        leave.wait(10)

    whole.add_callback(own, deliver, True)
    whole.replace_with([(0, result)])
    completer = in_thread(lambda: result.complete(5))
    assert entered.wait(10)
    assert not own.done()
    with pytest.raises(KafkaTimeoutError):
        own.exception(0)
    found: list[Any] = []
    waiter = in_thread(lambda: found.append((own.result(10)[2], own.done())))
    wait_until(lambda: result._latch is not None)
    leave.set()
    for thread in (completer, waiter):
        thread.join(10)
    assert found == [(5, True)]


def test_callbacks_that_an_interrupt_has_kept_from_running_run_with_the_next_completion() -> None:
    result = BatchResult("t", 0)
    seen: list[Any] = []

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    result.add_callback(future(result), interrupted, True)
    result.add_callback(future(result), lambda *_: seen.append(result.done), True)
    future(result).add_done_callback(interrupted)
    future(result).add_done_callback(lambda done: seen.append(done.done()))
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            result.complete(0)
    assert result.complete(0)
    assert seen == [False, True]
    assert not result.complete(0)


def test_a_callback_may_ask_its_own_future_for_the_result() -> None:
    result = BatchResult("t", 0)
    seen: list[Any] = []
    future(result).add_done_callback(lambda done: seen.append(done.result()))
    result.complete(3)
    assert seen[0][2] == 3


def test_a_callback_that_comes_late_runs_at_once() -> None:
    result = BatchResult("t", 0)
    result.complete(3)
    seen: list[Any] = []
    future(result).add_done_callback(seen.append)
    assert len(seen) == 1


def test_a_failing_callback_is_logged_and_stops_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    result = BatchResult("topic", 7)
    seen: list[Any] = []
    future(result).add_done_callback(lambda _: 1 / 0)
    future(result).add_done_callback(seen.append)
    with caplog.at_level(logging.ERROR):
        result.complete(0)
    assert len(seen) == 1
    assert "topic-7" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_on_delivery_gets_metadata_without_offset_and_the_error() -> None:
    result = BatchResult("t", 0)
    seen: list[Any] = []
    result.add_callback(future(result), lambda metadata, error: seen.append((metadata[2], error)), True)
    error = RuntimeError()
    result.complete(-1, error=error)
    assert seen == [(-1, error)]


def test_a_cut_up_batch_completes_its_futures_part_by_part() -> None:
    whole, first, second = (BatchResult("t", 0) for _ in range(3))
    futures = [future(whole, index) for index in range(5)]
    whole.replace_with([(0, first), (3, second)])
    assert not any(f.done() for f in futures)
    second.complete(100)
    assert [f.done() for f in futures] == [False, False, False, True, True]
    first.complete(50)
    assert [f.result()[2] for f in futures] == [50, 51, 52, 100, 101]


def test_a_cut_up_batch_can_be_cut_up_again() -> None:
    whole, left, right, middle, end = (BatchResult("t", 0) for _ in range(5))
    last = future(whole, 4)
    whole.replace_with([(0, left), (2, right)])
    right.replace_with([(0, middle), (1, end)])
    end.complete(10)
    assert last.result()[2] == 11


def test_waiters_of_a_cut_up_batch_wait_for_its_parts() -> None:
    whole, first, second = (BatchResult("t", 0) for _ in range(3))
    found: list[Any] = []
    threads = [
        in_thread(lambda: found.append(future(whole, 1).result(10)[2])),
        in_thread(lambda: found.append(whole.wait(10))),
    ]
    wait_until(lambda: whole._latch is not None)
    whole.replace_with([(0, first), (1, second)])
    second.complete(9)
    wait_until(lambda: found == [9])
    assert not whole.wait(0)
    first.complete(8)
    for thread in threads:
        thread.join(10)
    assert found == [9, True]


def test_callbacks_follow_their_records_into_the_parts() -> None:
    whole, first, second = (BatchResult("t", 0) for _ in range(3))
    seen: list[int] = []
    for index in range(4):
        whole.add_callback(future(whole, index), lambda metadata, _: seen.append(metadata[2]), True)
    whole.replace_with([(0, first), (2, second)])
    late = future(whole, 3)
    late.add_done_callback(lambda done: seen.append(-done.result()[2]))
    second.complete(20)
    assert seen == [20, 21, -21]
    first.complete(10)
    assert seen == [20, 21, -21, 10, 11]


def test_a_result_cannot_be_handed_over_twice_or_after_completion() -> None:
    whole, part = BatchResult("t", 0), BatchResult("t", 0)
    with pytest.raises(ValueError):
        whole.replace_with([])
    whole.replace_with([(0, part)])
    with pytest.raises(ValueError):
        whole.replace_with([(0, part)])
    assert not whole.complete(3)
    part.complete(1)
    with pytest.raises(ValueError):
        part.replace_with([(0, BatchResult("t", 0))])


def test_a_batch_that_completes_while_threads_wait_and_register_forgets_nobody() -> None:
    for _ in range(50):
        result = BatchResult("t", 0)
        builder = BatchBuilder("t", 0, 1 << 20, result, 0)
        futures = [builder.append(1, None, b"x", None) for _ in range(8)]
        seen: list[Any] = []
        start = threading.Barrier(3)

        def register(futures: Any = futures, seen: Any = seen, start: Any = start) -> None:
            start.wait()
            for f in futures:
                f.add_done_callback(seen.append)

        def wait(futures: Any = futures, seen: Any = seen, start: Any = start) -> None:
            start.wait()
            for f in futures:
                seen.append(f.result(10))

        threads = [in_thread(register), in_thread(wait)]
        start.wait()
        result.complete(0)
        for thread in threads:
            thread.join(10)
        assert len(seen) == 16
