"""Prefixes of log lines, and warnings that repeat."""

from __future__ import annotations

import logging
import threading

import pytest

from kclient.utils.log_context import LogContext, RepeatedWarning, shared_logger


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


def test_a_message_without_arguments_keeps_its_percent_signs(caplog: pytest.LogCaptureFixture) -> None:
    LogContext("[100%] ").logger("kclient.test").warning("half is 50% of it")
    assert caplog.messages == ["[100%] half is 50% of it"]


def test_a_line_says_where_it_was_logged_and_not_where_the_prefix_was_put(
    caplog: pytest.LogCaptureFixture,
) -> None:
    LogContext("[p] ").logger("kclient.test").warning("here")
    assert caplog.records[0].filename == "test_log_context.py"
    assert (
        caplog.records[0].funcName == "test_a_line_says_where_it_was_logged_and_not_where_the_prefix_was_put"
    )


def test_what_nobody_listens_to_is_not_put_together() -> None:
    class Dear:
        def __str__(self) -> str:
            raise AssertionError("this costs much")

    logger = logging.getLogger("kclient.test.silent")
    logger.setLevel(logging.ERROR)
    LogContext("[p] ").logger("kclient.test.silent").warning(Dear())


def test_a_shared_logger_speaks_for_the_client_whose_block_it_is_in(caplog: pytest.LogCaptureFixture) -> None:
    shared = shared_logger("kclient.test.shared")
    shared.warning("%d%% alone", 5)
    with LogContext("[outer 1%] ").speaking():
        with LogContext("[inner] ").speaking():
            shared.warning("in")
        shared.warning("%d%% out", 5)
        shared.warning("5% out")
    shared.warning("alone")
    assert caplog.messages == ["5% alone", "[inner] in", "[outer 1%] 5% out", "[outer 1%] 5% out", "alone"]


def test_an_error_ends_the_block_too(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(RuntimeError), LogContext("[p] ").speaking():
        raise RuntimeError
    shared_logger("kclient.test.shared").warning("alone")
    assert caplog.messages == ["alone"]


def test_one_thread_does_not_speak_for_another(caplog: pytest.LogCaptureFixture) -> None:
    shared = shared_logger("kclient.test.shared")
    with LogContext("[mine] ").speaking():
        thread = threading.Thread(target=shared.warning, args=("theirs",))
        thread.start()
        thread.join()
    assert caplog.messages == ["theirs"]


def test_the_same_logger_for_many_clients_says_the_prefix_once(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        shared = shared_logger("kclient.test.shared")
    with LogContext("[p] ").speaking():
        shared.warning("once")
    assert caplog.messages == ["[p] once"]


def test_each_cause_is_counted_on_its_own_and_a_message_may_hold_percent_signs(
    caplog: pytest.LogCaptureFixture,
) -> None:
    warning = RepeatedWarning(LogContext("[p] ").logger("kclient.test"), interval_ms=1000)
    for now_ms in (0, 10, 20):
        warning.warn("a", "a is at 5%", now_ms)
    warning.warn("b", "b is at 7%", 20)
    warning.clear("b")
    warning.clear("unknown")
    warning.warn("a", "a is at 6%", 999)
    warning.warn("a", "a is at 8%", 1000)
    assert caplog.messages == [
        "[p] a is at 5%",
        "[p] b is at 7%",
        "[p] a is at 8% (3 more times in the last 1 s)",
    ]


def test_of_causes_without_end_the_last_thousand_are_remembered(caplog: pytest.LogCaptureFixture) -> None:
    warnings = RepeatedWarning(logging.getLogger("test"))
    for number in range(1500):
        warnings.warn(f"peer {number}", "again", 0)
    caplog.clear()
    warnings.warn("peer 500", "again", 0)
    assert caplog.records == [], "it was told a moment ago"
    warnings.warn("peer 499", "again", 0)
    assert len(caplog.records) == 1, "it is forgotten"
