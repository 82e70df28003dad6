"""Waits for changes: what ends them, and what does not."""

from __future__ import annotations

from kclient.consumer.internals.changes import Changes


def test_who_waits_is_called_at_the_next_change_and_only_then() -> None:
    changes, calls = Changes(lambda: None), []
    assert changes.call_at_next(changes.count, lambda: calls.append(1))
    assert not calls
    changes.notify()
    changes.notify()
    assert calls == [1]


def test_nobody_waits_for_a_change_that_came_since_the_last_look() -> None:
    changes, calls = Changes(lambda: None), []
    seen = changes.count
    changes.notify()
    assert not changes.call_at_next(seen, lambda: calls.append(1))
    changes.notify()
    assert not calls


def test_a_new_wait_takes_the_place_of_one_that_was_given_up() -> None:
    changes, calls = Changes(lambda: None), []
    assert changes.call_at_next(changes.count, lambda: calls.append("old"))
    assert changes.call_at_next(changes.count, lambda: calls.append("new"))
    changes.notify()
    assert calls == ["new"]


def test_who_is_called_may_notify_again() -> None:
    changes = Changes(lambda: None)
    changes.call_at_next(changes.count, changes.notify)
    changes.notify()
    assert changes.count == 2


def test_every_change_interrupts_after_it_was_counted() -> None:
    seen: list[int] = []
    changes = Changes(lambda: seen.append(changes.count))
    changes.notify()
    changes.notify()
    assert seen == [1, 2]
