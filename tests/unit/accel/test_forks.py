"""Forks of the process: their number, and repairs in the child."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import pytest

from kclient._accel import forks, in_forked_children


def in_child(check: Callable[[], bool]) -> bool:
    """True if `check` was true in a child process."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(0 if check() else 1)
        finally:
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_the_number_of_forks_grows_in_the_child_alone() -> None:
    before = forks.generation
    assert in_child(lambda: forks.generation == before + 1)
    assert forks.generation == before


def test_a_child_of_a_child_is_one_fork_further() -> None:
    before = forks.generation
    assert in_child(
        lambda: in_child(lambda: forks.generation == before + 2) and forks.generation == before + 1
    )


def test_a_repair_runs_in_every_child_from_then_on_and_never_in_the_parent() -> None:
    repaired: list[int] = []
    assert in_child(lambda: not repaired)
    in_forked_children(lambda: repaired.append(forks.generation))
    here = forks.generation
    assert in_child(lambda: repaired == [here + 1])  # the number is right before any repair looks at it
    assert in_child(lambda: in_child(lambda: repaired == [here + 1, here + 2]))
    assert not repaired


def test_repairs_run_in_the_order_of_their_registration() -> None:
    order: list[str] = []
    in_forked_children(lambda: order.append("first"))
    in_forked_children(lambda: order.append("second"))
    assert in_child(lambda: order == ["first", "second"])


def test_without_forks_there_is_nothing_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "register_at_fork")
    ran: list[int] = []
    in_forked_children(lambda: ran.append(1))
    monkeypatch.undo()
    assert sys.platform == "win32" or in_child(lambda: not ran)
