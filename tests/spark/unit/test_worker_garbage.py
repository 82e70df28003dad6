"""The collector in Spark's Python workers."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator

import pytest

from kclient.spark import worker_garbage
from kclient.spark.worker_garbage import task_begins


@pytest.fixture(autouse=True)
def new_process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process that has had no task, and what it froze is not this one's."""
    monkeypatch.setattr(worker_garbage, "_begun", 0)
    gc.unfreeze()
    yield
    gc.unfreeze()


def test_what_is_there_when_the_second_task_begins_is_not_looked_at_again() -> None:
    task_begins()
    assert gc.get_freeze_count() == 0  # a part of what is needed is imported by the first one
    task_begins()
    frozen = gc.get_freeze_count()
    assert frozen > 1000
    later = [[] for _ in range(10)]
    task_begins()
    assert gc.get_freeze_count() <= frozen
    assert all(gc.is_tracked(each) for each in later)


def test_garbage_of_later_tasks_is_collected() -> None:
    for _ in range(3):
        task_begins()
    gc.collect()
    cycle: list[object] = []
    cycle.append(cycle)
    del cycle
    assert gc.collect() >= 1


def test_a_forked_child_has_had_no_task() -> None:
    task_begins()
    child = os.fork()
    if child == 0:
        os._exit(worker_garbage._begun)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
