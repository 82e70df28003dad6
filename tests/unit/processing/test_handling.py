"""A worker's way with a record, over a producer that only notes what it is given."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from kclient.consumer import ConsumerRecord
from kclient.errors import KafkaTimeoutError, RecordTooLargeError
from kclient.processing.dead_letters import Reason
from kclient.processing.gaps import PartitionProgress
from kclient.processing.handling import Handling
from kclient.processing.tasks import Task, TasksInHand
from kclient.producer import ProducerRecord
from kclient.utils.backoff import ExponentialBackoff


def record(value: bytes = b"v", timestamp_ms: int = 7) -> ConsumerRecord[bytes, bytes]:
    return ConsumerRecord("in", 2, 40, timestamp_ms, 0, b"k", value, (("h", b"x"),), None, 1, 1)


@attrs.define
class Rig:
    """A handling, what it has sent, and the tasks that are finished."""

    handler: Callable[[Any], Any]
    attempts: int = 3
    dead_letter_topic: str | None = None
    whole: bool = False
    refuse: Callable[[ProducerRecord[Any, Any]], Exception | None] = lambda _: None
    backoff_ms: int = 0
    sent: list[tuple[ProducerRecord[Any, Any], Any]] = attrs.field(factory=list)
    finished: list[Task] = attrs.field(factory=list)
    tasks: TasksInHand = attrs.field(init=False)
    handling: Handling = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.tasks = TasksInHand(self.finished.append)
        producer: Any = self
        self.handling = Handling(
            self.handler,
            producer,
            self.tasks,
            self.attempts,
            ExponentialBackoff(self.backoff_ms, self.backoff_ms),
            self.dead_letter_topic,
            self.whole,
        )

    def send(self, output: ProducerRecord[Any, Any], *, on_delivery: Any) -> None:
        error = self.refuse(output)
        if error is not None:
            raise error
        self.sent.append((output, on_delivery))

    def take(self, **fields: Any) -> Task:
        task = Task(record(**fields), PartitionProgress())
        self.tasks.add([task])
        return task

    def acknowledge(self, number: int, error: Exception | None = None) -> None:
        self.sent[number][1](None, error)


def outputs(*values: bytes) -> list[ProducerRecord[Any, Any]]:
    return [ProducerRecord("out", value) for value in values]


@pytest.mark.parametrize(
    ("made", "values"),
    [
        (None, []),
        (outputs(b"a")[0], [b"a"]),
        (outputs(b"a", b"b"), [b"a", b"b"]),
        (iter(outputs(b"c")), [b"c"]),
    ],
    ids=["nothing", "one", "list", "iterator"],
)
def test_what_a_handler_returns_is_sent(made: Any, values: list[bytes]) -> None:
    rig = Rig(lambda _: made)
    assert rig.handling.handle(rig.take()) is None
    assert [output.value for output, _ in rig.sent] == values


def test_a_task_is_finished_once_every_output_is_acknowledged() -> None:
    rig = Rig(lambda _: outputs(b"a", b"b"))
    task = rig.take()
    rig.handling.handle(task)
    rig.acknowledge(1)
    assert (rig.finished, len(rig.tasks), rig.tasks.only_unacknowledged) == ([], 1, True)
    rig.acknowledge(0)
    assert (rig.finished, len(rig.tasks)) == ([task], 0)


def test_a_handler_is_called_as_often_as_asked_for_and_its_error_says_the_place() -> None:
    calls: list[Any] = []

    def fail(given: Any) -> None:
        calls.append(given)
        raise ValueError("no")

    rig = Rig(fail, attempts=4)
    error = rig.handling.handle(rig.take())
    assert isinstance(error, ValueError)
    assert len(calls) == 4
    assert any("4 attempts" in note and "in-2 at offset 40" in note for note in error.__notes__)
    assert rig.sent == []


def test_a_handler_that_succeeds_at_last_leaves_nothing_of_its_failures() -> None:
    left = [ValueError(), ValueError()]

    def handle(_: Any) -> Any:
        if left:
            raise left.pop()
        return outputs(b"a")

    rig = Rig(handle, attempts=3, dead_letter_topic="dead")
    task = rig.take()
    assert rig.handling.handle(task) is None
    assert [output.topic for output, _ in rig.sent] == ["out"]
    assert task.reason is None


def test_something_else_than_records_is_an_error_of_the_handler() -> None:
    wrong: Any = [b"bytes"]
    rig = Rig(lambda _: wrong, attempts=1)
    error = rig.handling.handle(rig.take())
    assert isinstance(error, TypeError)
    assert "handler" in str(error)
    assert "bytes" in str(error)


def test_a_dead_letter_is_the_record_with_its_reason() -> None:
    rig = Rig(lambda _: 1 // 0, attempts=1, dead_letter_topic="dead")  # type: ignore[arg-type]
    task = rig.take(timestamp_ms=-1)
    assert rig.handling.handle(task) is None
    ((letter, _),) = rig.sent
    assert (letter.topic, letter.key, letter.value, letter.timestamp_ms) == ("dead", b"k", b"v", None)
    headers = dict(letter.headers)
    assert headers["h"] == b"x"
    assert headers["kclient.dead-letter.error.class"] == b"builtins.ZeroDivisionError"
    assert headers["kclient.dead-letter.topic"] == b"in"
    rig.acknowledge(0)
    assert rig.finished == [task]
    assert task.reason is not None


def test_the_text_of_an_error_is_cut_and_made_fit_for_a_header() -> None:
    def fail(_: Any) -> None:
        raise ValueError("\ud800" + "x" * 100_000)

    rig = Rig(fail, attempts=1, dead_letter_topic="dead")
    assert rig.handling.handle(rig.take()) is None
    said = dict(rig.sent[0][0].headers)["kclient.dead-letter.error.message"]
    assert said is not None
    assert said.startswith(b"?xxx")
    assert len(said) == 4000


def test_an_output_that_cannot_be_sent_makes_a_dead_letter_without_another_attempt() -> None:
    calls: list[Any] = []

    def handle(given: Any) -> Any:
        calls.append(given)
        return outputs(b"huge")

    rig = Rig(
        handle,
        dead_letter_topic="dead",
        refuse=lambda output: RecordTooLargeError() if output.value == b"huge" else None,
    )
    assert rig.handling.handle(rig.take()) is None
    assert [output.topic for output, _ in rig.sent] == ["dead"]
    assert len(calls) == 1


def test_trouble_with_the_cluster_makes_no_dead_letter() -> None:
    rig = Rig(lambda _: outputs(b"a"), dead_letter_topic="dead", refuse=lambda _: KafkaTimeoutError())
    assert isinstance(rig.handling.handle(rig.take()), KafkaTimeoutError)
    task = rig.take()
    task.refused = KafkaTimeoutError()
    assert isinstance(rig.handling.refused(task), KafkaTimeoutError)
    assert rig.sent == []


def test_a_record_in_a_transaction_of_which_a_part_was_sent_is_refused_as_a_whole() -> None:
    def refuse(output: ProducerRecord[Any, Any]) -> Exception | None:
        return RecordTooLargeError() if output.value == b"huge" else None

    rig = Rig(lambda _: outputs(b"a", b"huge"), whole=True, dead_letter_topic="dead", refuse=refuse)
    task = rig.take()
    assert rig.handling.handle(task) is None
    rig.acknowledge(0)
    assert rig.finished == []
    assert rig.tasks.take_refused() == [task]
    assert [output.topic for output, _ in rig.sent] == ["out"]


def test_a_record_that_was_refused_before_goes_to_the_dead_letters_and_to_no_handler() -> None:
    rig = Rig(lambda _: pytest.fail("called"), dead_letter_topic="dead")
    task = rig.take()
    task.reason = Reason(ValueError("before"), 2)
    assert rig.handling.handle(task) is None
    assert [output.topic for output, _ in rig.sent] == ["dead"]


def test_a_dead_letter_that_is_refused_itself_ends_the_run() -> None:
    rig = Rig(
        lambda _: outputs(b"a"), dead_letter_topic="dead", refuse=lambda _: RecordTooLargeError("too large")
    )
    error = rig.handling.handle(rig.take())
    assert isinstance(error, RecordTooLargeError)
    assert any("dead does not take" in note for note in error.__notes__)


@pytest.mark.parametrize("end", ["hurry", "give_up", "fail"])
def test_a_wait_for_another_attempt_ends_when_nobody_wants_it_any_more(end: str) -> None:
    called = threading.Event()

    def fail(_: Any) -> None:
        called.set()
        raise ValueError

    rig = Rig(fail, backoff_ms=3_600_000)
    task = rig.take()
    results: list[Any] = []
    worker = threading.Thread(target=lambda: results.append(rig.handling.handle(task)))
    worker.start()
    assert called.wait(20)
    if end == "hurry":
        rig.tasks.hurry()
    elif end == "give_up":
        rig.tasks.give_up([task.partition])
    else:
        rig.tasks.fail(RuntimeError())
    worker.join(20)
    assert results == [None]
    assert task.given_up
    assert (len(rig.tasks), rig.finished) == (0, [])


def test_attempts_are_apart_by_the_backoff() -> None:
    times: list[float] = []

    def fail(_: Any) -> None:
        times.append(time.monotonic())
        raise ValueError

    rig = Rig(fail, attempts=2, backoff_ms=200)
    rig.handling.handle(rig.take())
    assert times[1] - times[0] >= 0.15
