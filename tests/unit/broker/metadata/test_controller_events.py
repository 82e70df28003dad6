"""ControllerEvents: one thread, the order of events, and its end."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from kclient.broker.metadata.controller_events import ControllerEvents


@pytest.fixture
def events() -> Iterator[ControllerEvents]:
    made = ControllerEvents(1)
    made.start()
    yield made
    made.shutdown()


def test_events_come_one_after_the_other_in_their_order(events: ControllerEvents) -> None:
    go_on, seen = threading.Event(), list[int]()
    events.put(lambda: seen.append(0 if go_on.wait(30) else -1))
    for number in range(1, 10):
        events.put(lambda number=number: seen.append(number))  # type: ignore[misc]
    assert seen == []
    go_on.set()
    events.shutdown()
    assert seen == list(range(10))


def test_they_come_on_a_thread_of_their_own(events: ControllerEvents) -> None:
    names: list[str] = []
    events.put(lambda: names.append(threading.current_thread().name))
    events.shutdown()
    assert names == ["controller-1-event-handler"]


def test_the_end_may_be_asked_for_twice_and_before_the_start(events: ControllerEvents) -> None:
    events.shutdown()
    events.shutdown()
    ControllerEvents(1).shutdown()
