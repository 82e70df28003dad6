"""Tasks: records in hand, from the poll that brought them until all that came of them is acknowledged."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Collection
from typing import Any

import attrs

from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRecord
from kclient.processing.dead_letters import Reason
from kclient.processing.gaps import PartitionProgress


@attrs.define(eq=False)
class Task:
    """A record in hand."""

    record: ConsumerRecord[Any, Any]
    progress: PartitionProgress
    reason: Reason | None = None
    """The reason why it is to become a dead letter, if it is."""
    outputs: int = 0
    """The number of records that it was made into."""
    given_up: bool = False
    """True if nobody waits for it any more: no further attempt is made."""
    # The call of the handler, and every output that is not acknowledged.
    pending: int = 1
    refused: BaseException | None = None

    @property
    def partition(self) -> TopicPartition:
        """The partition that the record comes from."""
        return self.record.topic_partition


class TasksInHand:
    """All tasks that are not over, and how those ended that did not end well. Thread-safe.

    A task is over when its handler has returned and each output is acknowledged; then `on_finished` is called, with
    the lock held.
    """

    def __init__(self, on_finished: Callable[[Task], None]) -> None:
        self._on_finished = on_finished
        # Also the lock of all that is known of partitions.
        self.changed = threading.Condition()
        self._tasks: set[Task] = set()
        self._at_work = 0
        self._refused: deque[Task] = deque()
        self._hurried = False
        self.failure: BaseException | None = None
        """The first error that no further attempt can put right."""

    def __len__(self) -> int:
        return len(self._tasks)

    @property
    def only_unacknowledged(self) -> bool:
        """True if all handlers have returned, and acknowledgements are what is missing."""
        return bool(self._tasks) and not self._at_work

    def add(self, tasks: Collection[Task]) -> None:
        """Take `tasks` in hand, before they are given to workers."""
        with self.changed:
            self._tasks.update(tasks)
            self._at_work += len(tasks)

    def sending(self, task: Task) -> None:
        """An output of the task is about to be sent."""
        with self.changed:
            task.pending += 1

    def unsent(self, task: Task) -> None:
        """The output could not be sent after all."""
        with self.changed:
            task.pending -= 1

    def acknowledged(self, task: Task, error: BaseException | None) -> None:
        """An output of the task was written, or refused with `error`."""
        with self.changed:
            if error is not None and task.refused is None:
                task.refused = error
            self._ended_one(task)

    def handled(self, task: Task) -> None:
        """The task's outputs were handed to the producer."""
        with self.changed:
            self._at_work -= 1
            self._ended_one(task)
            if not self._at_work:
                self.changed.notify_all()

    def undone(self, tasks: Collection[Task], failure: BaseException | None = None) -> None:
        """The workers are done with `tasks`, which are not handled and stay unfinished."""
        with self.changed:
            if self.failure is None:
                self.failure = failure
            self._at_work -= len(tasks)
            self._tasks.difference_update(tasks)
            self.changed.notify_all()

    def reset(self) -> None:
        """Forget everything, after a transaction that was aborted."""
        with self.changed:
            self._tasks.clear()
            self._refused.clear()
            self._hurried = False
            self.failure = None

    def fail(self, failure: BaseException) -> None:
        """End everything with `failure`, if nothing has failed before."""
        with self.changed:
            if self.failure is None:
                self.failure = failure
            self.changed.notify_all()

    def take_refused(self) -> list[Task]:
        """Return the tasks of which an output was refused; they are in hand until `again` or `dismiss`."""
        with self.changed:
            refused = list(self._refused)
            self._refused.clear()
            return refused

    def again(self, task: Task) -> None:
        """Work on a refused task once more; `handled` ends that."""
        with self.changed:
            task.pending, task.refused = 1, None
            self._at_work += 1

    def dismiss(self, task: Task) -> None:
        """Leave a refused task unfinished."""
        with self.changed:
            self._tasks.discard(task)
            self.changed.notify_all()

    def give_up(self, partitions: Collection[TopicPartition]) -> None:
        """Begin no further attempt at tasks of `partitions`."""
        with self.changed:
            for task in self._tasks:
                task.given_up = task.given_up or task.partition in partitions
            self.changed.notify_all()

    def hurry(self, hurried: bool = True) -> None:
        """Begin no further attempt at any task."""
        with self.changed:
            self._hurried = hurried
            self.changed.notify_all()

    def pause(self, task: Task, wait_ms: int) -> bool:
        """Wait before another attempt; False if there is to be none."""
        with self.changed:
            return not self.changed.wait_for(
                lambda: task.given_up or self._hurried or self.failure is not None, wait_ms / 1000
            )

    def wait(self, enough: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until `enough`, or until something was refused or has failed; False after `timeout_s`."""
        with self.changed:
            return self.changed.wait_for(
                lambda: bool(self._refused) or self.failure is not None or enough(), timeout_s
            )

    def wait_for_workers(self, timeout_s: float) -> bool:
        """Wait until no task is to be handled any more, whatever became of it; False after `timeout_s`."""
        with self.changed:
            return self.changed.wait_for(lambda: not self._at_work, timeout_s)

    def wait_for_end(self, timeout_s: float) -> bool:
        """Wait until every task is over; False after `timeout_s`. Those that were refused stay unfinished."""
        with self.changed:
            return self.changed.wait_for(lambda: len(self._tasks) == len(self._refused), timeout_s)

    def wait_for_those_of(self, partitions: Collection[TopicPartition], timeout_s: float) -> bool:
        """Wait until no task of `partitions` is in hand; False after `timeout_s`."""
        with self.changed:
            return self.changed.wait_for(
                lambda: not any(task.partition in partitions for task in self._tasks), timeout_s
            )

    def _ended_one(self, task: Task) -> None:
        task.pending -= 1
        if task.pending:
            return
        if task.refused is not None:
            self._refused.append(task)
        else:
            self._tasks.discard(task)
            self._on_finished(task)
        self.changed.notify_all()
