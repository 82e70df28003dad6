"""Lanes: order within one, concurrency between them."""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from harness.waiting import wait_until
from kclient.processing.lanes import Lanes

DEADLINE_S = 20.0


@contextmanager
def lanes(concurrency: int, work: Any) -> Iterator[Lanes[Any]]:
    made: Lanes[Any] = Lanes(concurrency, work)
    try:
        yield made
    finally:
        made.close(wait=True)


def test_items_of_a_lane_keep_their_order_and_never_overlap() -> None:
    done: dict[str, list[int]] = defaultdict(list)
    busy: set[str] = set()
    lock = threading.Lock()

    def work(item: tuple[str, int]) -> None:
        with lock:
            assert item[0] not in busy
            busy.add(item[0])
        done[item[0]].append(item[1])
        with lock:
            busy.remove(item[0])

    with lanes(4, work) as made:
        for number in range(300):
            made.add([(lane, (lane, number)) for lane in "abcdef"])
        wait_until(lambda: sum(map(len, done.values())) == 1800, DEADLINE_S, "all items")
    assert all(numbers == list(range(300)) for numbers in done.values())


def test_a_lane_that_is_slow_does_not_hold_up_another() -> None:
    go_on = threading.Event()
    done: list[str] = []

    def work(item: str) -> None:
        if item == "slow":
            assert go_on.wait(DEADLINE_S)
        done.append(item)

    with lanes(2, work) as made:
        made.add([("a", "slow"), ("a", "behind"), ("b", "other"), ("b", "another")])
        wait_until(lambda: len(done) == 2, DEADLINE_S, "the other lane")
        assert done == ["other", "another"]
        go_on.set()
        wait_until(lambda: len(done) == 4, DEADLINE_S, "the slow lane")
    assert done[2:] == ["slow", "behind"]


def test_no_more_are_at_work_than_there_are_threads() -> None:
    go_on = threading.Event()
    begun: list[int] = []

    def work(item: int) -> None:
        begun.append(item)
        assert go_on.wait(DEADLINE_S)

    with lanes(3, work) as made:
        made.add([(number, number) for number in range(10)])
        wait_until(lambda: len(begun) == 3, DEADLINE_S, "three")
        assert len(made.drop(lambda item: item == 9)) == 1
        go_on.set()
        wait_until(lambda: len(begun) == 9, DEADLINE_S, "the others")


def test_after_a_halt_only_what_has_begun_goes_on_and_nothing_is_added_until_a_restart() -> None:
    go_on, begun = threading.Event(), threading.Event()
    done: list[int] = []

    def work(item: int) -> None:
        begun.set()
        assert go_on.wait(DEADLINE_S)
        done.append(item)

    with lanes(1, work) as made:
        made.add([("a", 1), ("a", 2), ("b", 3)])
        assert begun.wait(DEADLINE_S)
        assert sorted(made.halt()) == [2, 3]
        assert not made.add([("a", 4)])
        made.restart()
        assert made.add([("a", 5)])
        go_on.set()
        wait_until(lambda: len(done) == 2, DEADLINE_S, "the rest")
    assert done == [1, 5]


def test_a_lane_can_be_used_again_after_all_of_it_was_dropped() -> None:
    done: list[int] = []
    go_on = threading.Event()

    def work(item: int) -> None:
        assert go_on.wait(DEADLINE_S)
        done.append(item)

    with lanes(1, work) as made:
        made.add([("a", 1), ("b", 2)])
        made.drop(lambda item: item == 2)
        made.add([("b", 3)])
        go_on.set()
        wait_until(lambda: len(done) == 2, DEADLINE_S, "the rest")
    assert sorted(done) == [1, 3]


def test_no_thread_is_started_for_nothing_and_none_is_left() -> None:
    def threads() -> list[str]:
        return [
            thread.name for thread in threading.enumerate() if thread.name.startswith("kclient-processing")
        ]

    with lanes(2, lambda _: None) as made:
        assert threads() == []
        made.add([("a", 1)])
        assert len(threads()) == 2
    assert threads() == []
