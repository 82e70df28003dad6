"""Workers: the threads of a run, and the records that they have in hand."""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable
from typing import Any

from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRecord
from kclient.processing.handling import Handling
from kclient.processing.lanes import Lanes
from kclient.processing.options import Options
from kclient.processing.tasks import Task, TasksInHand
from kclient.producer import KafkaProducer


class Workers:
    """Handles tasks on threads of its own, those of one lane in order. Given tasks by one thread."""

    def __init__(
        self, producer: KafkaProducer[Any, Any], options: Options, on_finished: Callable[[Task], None]
    ) -> None:
        self._by_key = options.ordered_by == "key"
        self.tasks = TasksInHand(on_finished)
        self.handling = Handling(
            handler=options.handler,
            producer=producer,
            tasks=self.tasks,
            attempts=options.attempts,
            backoff=options.backoff,
            dead_letter_topic=options.dead_letter_topic,
            whole=options.exactly_once,
        )
        self._lanes: Lanes[Task] = Lanes(options.concurrency, self._work)

    def add(self, tasks: Collection[Task]) -> None:
        """Take tasks in hand; nothing happens once something has failed."""
        self.tasks.add(tasks)
        if not self._lanes.add((self._lane(task.record), task) for task in tasks):
            self.tasks.undone(tasks)

    def give_up(self, partitions: Collection[TopicPartition]) -> None:
        """Begin nothing more of `partitions`; what was begun goes on."""
        self.tasks.undone(self._lanes.drop(lambda task: task.partition in partitions))
        self.tasks.give_up(partitions)

    def halt(self) -> None:
        """Begin nothing more at all; what was begun goes on."""
        self.tasks.undone(self._lanes.halt())
        self.tasks.hurry()

    def restart(self) -> None:
        """Forget what has failed, and take tasks again."""
        self.tasks.reset()
        self._lanes.restart()

    def close(self, *, wait: bool) -> None:
        """End the threads, each with what it is at; `wait` for that."""
        self.halt()
        self._lanes.close(wait=wait)

    def _work(self, task: Task) -> None:
        try:
            failure = self.handling.handle(task)
        except BaseException as error:  # of ours: a thread that dies would leave the run waiting
            failure = error
        if failure is not None:
            self.tasks.undone([task], failure)
            self.tasks.undone(self._lanes.halt())
        elif task.given_up:
            # Those behind it would be out of order.
            lane = self._lane(task.record)
            self.tasks.undone(
                self._lanes.drop(
                    lambda other: other.progress is task.progress and self._lane(other.record) == lane
                )
            )

    def _lane(self, record: ConsumerRecord[Any, Any]) -> Hashable:
        if not self._by_key:
            return record.topic, record.partition
        key = record.key
        if key is None:  # in no order with any other
            return record.topic, record.partition, record.offset
        try:
            hash(key)
        except TypeError:
            key = repr(key)
        # The type, lest 1 and True be one.
        return record.topic, record.partition, type(key), key
