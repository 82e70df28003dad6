"""Operations as generators: what they may ask for, and how a caller that can block drives them.

An operation such as "list the offsets of these partitions" takes several requests, to several brokers, with retries.
Written as a generator it never blocks: it yields what it waits for (a list of futures, or a pause) and is resumed
with the outcomes. A synchronous caller drives it by waiting, an asynchronous one by awaiting; the operation itself
is written once.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, TypeAlias, TypeVar

import attrs

from kclient.errors import Errors, KafkaError, KafkaTimeoutError
from kclient.utils.futures import KafkaFuture
from kclient.utils.time import Timer

R = TypeVar("R")


@attrs.frozen
class Pause:
    """Resume the operation `duration_ms` from now; `why` is what failed before, for the error if no time is left."""

    duration_ms: int
    why: str = ""


Wait: TypeAlias = "list[KafkaFuture[Any]] | Pause"
Outcomes: TypeAlias = "list[Any]"
"""One entry a future: its result, or its error as a value, so that one failure does not hide the others."""

Operation: TypeAlias = Generator[Wait, Outcomes, R]


def answer_of(call: KafkaFuture[R]) -> Operation[R]:
    """Wait for one `call`: its answer, for `yield from`. Raises the error of the call."""
    (answer,) = yield [call]
    if isinstance(answer, KafkaError):
        raise answer
    result: R = answer
    return result


def accepted_answer_of(call: KafkaFuture[Any]) -> Operation[Any]:
    """Wait for one `call`, as `answer_of`; raises the error that its answer has as a whole, too."""
    answer = yield from answer_of(call)
    error = Errors.for_code(answer.error_code, getattr(answer, "error_message", None))
    if error is not None:
        raise error
    return answer


def run(operation: Operation[R], timer: Timer, what: str) -> R:
    """Drive `operation` to its end on the calling thread.

    Raises what the operation raises, and KafkaTimeoutError naming `what` when the timer ends first.
    """
    try:
        wait = next(operation)
        while True:
            outcomes = _pause(wait, timer) if isinstance(wait, Pause) else [_outcome(f, timer) for f in wait]
            wait = operation.send(outcomes)
    except StopIteration as finished:
        result: R = finished.value
        return result
    except KafkaTimeoutError as error:
        if not timer.is_expired():
            raise
        raise KafkaTimeoutError(
            f"{what} did not finish within {timer.timeout_ms} ms (timeout_ms, by default default.api.timeout.ms): "
            f"{error}"
        ).because_of(error) from error
    finally:
        operation.close()


def _pause(pause: Pause, timer: Timer) -> Outcomes:
    timer.time.sleep_ms(max(min(pause.duration_ms, timer.remaining_ms()), 0))
    if timer.is_expired():
        after = f" after {pause.why}" if pause.why else ""
        raise KafkaTimeoutError(f"no time was left for another try{after}")
    return [None]


def _outcome(future: KafkaFuture[Any], timer: Timer) -> Any:
    # The driver fails every call at its own deadline, which is this timer's; the slack covers its wakeup.
    error = future.exception(timer.remaining_ms() / 1000 + 5.0)
    if error is None:
        return future.result()
    if not isinstance(error, KafkaError):
        raise error
    return error
