"""Changes that a quota of controller mutations holds back: asked for again, when the broker allows it (KIP-599)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from kclient.admin.internals.context import OperationContext
from kclient.admin.internals.steps import Operation, answer_of
from kclient.errors import KafkaError, KafkaTimeoutError, ThrottlingQuotaExceededError
from kclient.utils.futures import KafkaFuture

V = TypeVar("V")


def change_topics(
    context: OperationContext,
    names: Sequence[str],
    submit: Callable[[Sequence[str], int], KafkaFuture[Any]],
    outcomes_of: Callable[[Any], dict[str, V | KafkaError]],
    retry_on_quota_violation: bool,
) -> Operation[dict[str, V | KafkaError]]:
    """Send a request for topics; returns the outcome of each.

    `submit(names, delay_ms)` sends it for some of them. Those that a quota refused are asked for again after the
    time that the broker wants, until the deadline; at the deadline, or without `retry_on_quota_violation`, theirs is
    ThrottlingQuotaExceededError with what is left of that time. Raises what the first request fails with.
    """
    outcomes: dict[str, V | KafkaError] = {}
    answer = yield from answer_of(submit(names, 0))
    attempt = 0
    while True:
        answered_ms = context.timer.now_ms()
        said = outcomes_of(answer)
        refused = {
            name: error for name, error in said.items() if isinstance(error, ThrottlingQuotaExceededError)
        }
        for error in refused.values():
            error.throttle_time_ms = answer.throttle_time_ms
        outcomes.update(said)
        names = [name for name in names if name in refused]
        if not names or not retry_on_quota_violation:
            return outcomes
        # A broker that refuses and asks for no time at all is not asked without a pause, either.
        delay_ms = max(answer.throttle_time_ms, context.backoff.backoff_ms(attempt))
        attempt += 1
        try:
            answer = yield from answer_of(submit(names, delay_ms))
        except KafkaTimeoutError as error:
            passed_ms = context.timer.now_ms() - answered_ms
            for name in names:
                left = refused[name]
                left.throttle_time_ms = max(left.throttle_time_ms - passed_ms, 0)
                left.because_of(error)
            return outcomes
        except KafkaError as error:
            # What was done before is done, and is told beside it.
            outcomes.update(dict.fromkeys(names, error))
            return outcomes
