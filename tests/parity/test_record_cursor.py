"""RecordCursor and RecordIterator of both bodies: what is given out, to whom, and until when."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import pytest

from kclient._accel import reference

native = pytest.importorskip("kclient._accel.native", reason="the native body is not built")

FOREVER_MS = 2**62


@pytest.fixture(params=[reference, native], ids=["python", "c"])
def body(request: pytest.FixtureRequest) -> Any:
    return request.param


def test_records_come_one_at_a_time_from_the_index_on_and_then_nothing(body: Any) -> None:
    cursor = body.RecordCursor()
    assert cursor.take() is None
    cursor.start(["a", "b", "c"], 1, FOREVER_MS)
    assert [cursor.take() for _ in range(4)] == ["b", "c", None, None]
    assert cursor.index == 3
    cursor.start(["d"], 0, FOREVER_MS)
    assert cursor.take() == "d"


def test_a_stopped_cursor_gives_nothing_and_still_says_how_far_it_was(body: Any) -> None:
    cursor = body.RecordCursor()
    cursor.start(["a", "b"], 0, FOREVER_MS)
    cursor.take()
    cursor.stop()
    assert cursor.take() is None
    assert cursor.index == 1


def test_nothing_is_given_from_the_time_on_at_which_something_is_due(body: Any) -> None:
    now_ms = 10
    cursor = body.RecordCursor(lambda: now_ms)
    cursor.start(["a", "b"], 0, 20)
    assert (cursor.take(), cursor.last_ms) == ("a", 10)
    now_ms = 20
    assert (cursor.take(), cursor.index, cursor.last_ms) == (None, 1, 10)


def test_without_a_clock_the_time_is_the_systems(body: Any) -> None:
    cursor = body.RecordCursor()
    before_ms = time.monotonic_ns() // 1_000_000
    cursor.start(["a"], 0, before_ms + 60_000)
    assert cursor.take() == "a"
    assert -100 <= cursor.last_ms - before_ms < 60_000
    cursor.start(["a"], 0, before_ms - 100)
    assert cursor.take() is None


def test_another_thread_gets_nothing(body: Any) -> None:
    cursor = body.RecordCursor()
    cursor.start(["a"], 0, FOREVER_MS)
    taken: list[Any] = []
    other = threading.Thread(target=lambda: taken.append(cursor.take()))
    other.start()
    other.join()
    assert taken == [None]
    assert cursor.take() == "a"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes cannot be forked here")
def test_a_forked_child_gets_nothing(body: Any) -> None:
    cursor = body.RecordCursor()
    cursor.start(["a"], 0, FOREVER_MS)
    child = os.fork()
    if not child:
        os._exit(cursor.take() is not None)
    assert os.waitpid(child, 0)[1] == 0
    assert cursor.take() == "a"


def test_a_clock_that_raises_loses_no_record(body: Any) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    cursor = body.RecordCursor(interrupted)
    cursor.start(["a"], 0, FOREVER_MS)
    with pytest.raises(KeyboardInterrupt):
        cursor.take()
    assert cursor.index == 0


def test_an_iterator_asks_for_more_where_the_cursor_has_nothing(body: Any) -> None:
    cursor = body.RecordCursor()
    asked = 0

    def more() -> str:
        nonlocal asked
        asked += 1
        if asked == 3:
            raise StopIteration
        cursor.start([f"{asked}b", f"{asked}c"], 0, FOREVER_MS)
        return f"{asked}a"

    iterator = body.RecordIterator(cursor, more)
    assert iter(iterator) is iterator
    assert list(iterator) == ["1a", "1b", "1c", "2a", "2b", "2c"]


def test_an_iterator_passes_on_what_more_raises_and_goes_on(body: Any) -> None:
    cursor = body.RecordCursor()
    cursor.start(["a"], 0, FOREVER_MS)
    outcomes: list[Any] = [LookupError, "b"]

    def more() -> Any:
        outcome = outcomes.pop(0)
        if outcome is LookupError:
            raise LookupError
        return outcome

    iterator = body.RecordIterator(cursor, more)
    assert next(iterator) == "a"
    with pytest.raises(LookupError):
        next(iterator)
    assert next(iterator) == "b"
