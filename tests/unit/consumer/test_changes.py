"""Waits for changes: what ends them, and what does not."""

from __future__ import annotations

from kclient.consumer.internals.changes import Changes


def test_who_waits_hears_of_the_next_change_and_only_of_that() -> None:
    changes, calls = Changes(lambda: None), []
    changes.next(changes.count).add_done_callback(lambda _: calls.append(1))
    assert not calls
    changes.notify()
    changes.notify()
    assert calls == [1]


def test_nobody_waits_for_a_change_that_came_since_the_last_look() -> None:
    changes, calls = Changes(lambda: None), []
    seen = changes.count
    changes.notify()
    future = changes.next(seen)
    assert future.done()
    future.add_done_callback(lambda _: calls.append(1))
    changes.notify()
    assert calls == [1]
    assert not changes.next(changes.count).done()


def test_a_new_wait_takes_the_place_of_one_that_was_given_up() -> None:
    changes, calls = Changes(lambda: None), []
    changes.next(changes.count).add_done_callback(lambda _: calls.append("old"))
    changes.next(changes.count).add_done_callback(lambda _: calls.append("new"))
    changes.notify()
    assert calls == ["new"]


def test_who_is_called_may_notify_again() -> None:
    changes = Changes(lambda: None)
    changes.next(changes.count).add_done_callback(lambda _: changes.notify())
    changes.notify()
    assert changes.count == 2


def test_every_change_interrupts_after_it_was_counted() -> None:
    seen: list[int] = []
    changes = Changes(lambda: seen.append(changes.count))
    changes.notify()
    changes.notify()
    assert seen == [1, 2]
