"""Backoff, log context, fork guard, closers, threads, time."""

from __future__ import annotations

import logging
import os
import threading

import pytest

from harness.interrupts import Storm
from kclient.errors import ForkedClientError
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.fork import ForkGuard
from kclient.utils.log_context import LogContext, RepeatedWarning
from kclient.utils.threads import KafkaThread
from kclient.utils.time import SYSTEM_TIME, Timer


def test_backoff_grows_by_its_multiplier_within_the_jitter_up_to_the_maximum() -> None:
    backoff = ExponentialBackoff(100, 1000)
    for attempts, middle in enumerate([100, 200, 400, 800]):
        waits = [backoff.backoff_ms(attempts) for _ in range(200)]
        assert all(middle * 0.8 - 1 <= wait <= min(middle * 1.2, 1000) for wait in waits)
    assert max(backoff.backoff_ms(10) for _ in range(100)) == 1000


def test_backoff_of_very_many_attempts_does_not_overflow() -> None:
    assert ExponentialBackoff(100, 1000).backoff_ms(10**9) == 1000


def test_a_backoff_of_zero_never_waits() -> None:
    assert ExponentialBackoff(0, 1000).backoff_ms(5) == 0


def test_log_lines_begin_with_the_clients_identity_even_with_percent_signs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    LogContext("[Producer clientId=100%] ").logger("kclient.test").info("sent %d", 3)
    assert caplog.messages == ["[Producer clientId=100%] sent 3"]


def test_a_repeated_cause_is_told_once_and_then_with_a_count(caplog: pytest.LogCaptureFixture) -> None:
    warning = RepeatedWarning(logging.getLogger("kclient.test"), interval_ms=1000)
    for now_ms in range(0, 1000, 100):
        warning.warn("node 1", "node 1 is away", now_ms)
    assert caplog.messages == ["node 1 is away"]
    warning.warn("node 1", "node 1 is away", 1500)
    assert caplog.messages[1:] == ["node 1 is away (9 more times in the last 1 s)"]
    warning.clear("node 1")
    warning.warn("node 1", "node 1 is away", 1600)
    assert caplog.messages[2:] == ["node 1 is away"]


def test_a_child_process_is_told_that_the_client_belongs_to_its_parent() -> None:
    guard = ForkGuard("A test client")
    guard.check()
    child = os.fork()
    if child == 0:
        try:
            guard.check()
        except ForkedClientError as error:
            os._exit(0 if "A test client" in str(error) and guard.forked else 2)
        os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert not guard.forked


def test_a_thread_that_dies_logs_it_and_hands_the_error_over(caplog: pytest.LogCaptureFixture) -> None:
    deaths: list[BaseException] = []

    def body() -> None:
        raise RuntimeError("gone")

    thread = KafkaThread("kclient-test", body, deaths.append)
    thread.start()
    thread.join(10)
    assert [str(error) for error in deaths] == ["gone"]
    assert "kclient-test died" in caplog.text
    assert thread.daemon


def test_a_thread_lives_until_it_ends_however_often_waiting_for_it_is_interrupted() -> None:
    over = threading.Event()

    def wait_until_over() -> None:
        over.wait()

    thread = KafkaThread("kclient-test", wait_until_over)
    assert not thread.is_alive()
    thread.start()
    with Storm(KafkaThread.join) as storm:
        while storm.raised < 20:
            with pytest.raises(KeyboardInterrupt):
                thread.join()
            assert thread.is_alive()
    thread.join(0)
    assert thread.is_alive()
    over.set()
    thread.join()
    assert not thread.is_alive()
    assert thread not in threading.enumerate()


def test_a_timer_counts_down_and_can_be_reset() -> None:
    timer = Timer(SYSTEM_TIME, 60_000)
    assert 0 < timer.remaining_ms() <= 60_000
    assert not timer.is_expired()
    timer.reset(0)
    assert timer.is_expired()
    assert timer.remaining_ms() == 0


def test_waiting_on_a_condition_ends_when_it_is_notified() -> None:
    condition = threading.Condition()
    flag: list[bool] = []

    def set_flag() -> None:
        with condition:
            flag.append(True)
            condition.notify_all()

    thread = threading.Thread(target=set_flag)
    with condition:
        thread.start()
        assert SYSTEM_TIME.wait_for(condition, lambda: bool(flag), 10_000)
    thread.join()
    with condition:
        assert not SYSTEM_TIME.wait_for(condition, lambda: False, 1)
