"""The context of an operation: the driver, the deadline, and the helpers every operation needs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

import attrs

from kclient.admin.internals.driver import AdminDriver, Call, Target
from kclient.admin.internals.steps import Operation, Pause, accepted_answer_of, run
from kclient.common.node import Node
from kclient.errors import AdminError, Errors, KafkaError, UnknownServerError
from kclient.protocol.api_keys import ApiKeys
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.futures import KafkaFuture
from kclient.utils.time import Timer

COORDINATOR_MOVED = (
    Errors.COORDINATOR_LOAD_IN_PROGRESS,
    Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.NOT_COORDINATOR,
)
"""Codes after which a coordinator is looked up again."""

K = TypeVar("K")
V = TypeVar("V")
R = TypeVar("R")


@attrs.frozen(eq=False)
class OperationContext:
    """One operation's view of the client, and the owner of its calls. Any thread."""

    driver: AdminDriver
    timer: Timer
    backoff: ExponentialBackoff

    def run(self, operation: Operation[R], what: str) -> R:
        """Drive `operation` to its end; what it has asked for is abandoned if that is by an error or a Ctrl-C."""
        try:
            return run(operation, self.timer, what)
        except BaseException:
            self.driver.abandon(self)
            raise

    def call(
        self,
        api_key: ApiKeys,
        message_or_builder: Any | Callable[[int], Any],
        target: Target | None = None,
        retry_on: Callable[[Any], KafkaError | None] | None = None,
        *,
        min_version: int | None = None,
        max_version: int | None = None,
        delay_ms: int = 0,
    ) -> KafkaFuture[Any]:
        """Submit one request to `target`, by default to any broker; in a version within the limits given.

        It is sent `delay_ms` from now at the earliest.
        """
        build = message_or_builder if callable(message_or_builder) else lambda _version: message_or_builder
        call = Call(
            api_key,
            build,
            target or Target(),
            self.timer.deadline_ms,
            self,
            retry_on,
            min_version,
            max_version,
        )
        if delay_ms:
            call.not_before_ms = self.timer.now_ms() + delay_ms
        return self.driver.submit(call)

    def coordinator(self, target: Target) -> KafkaFuture[Node]:
        """The broker that the coordinator `target` is: where the last call there went, if there was one."""
        return self.driver.submit(Call(ApiKeys.FIND_COORDINATOR, None, target, self.timer.deadline_ms, self))

    def pause(self, attempt: int, why: str = "") -> Pause:
        """The wait before try number `attempt` + 1 of keys that failed for now; `why` says with what."""
        return Pause(self.backoff.backoff_ms(attempt), why)


def retry_on_codes(
    entries: Callable[[Any], Iterable[Any]], *retried: Errors
) -> Callable[[Any], KafkaError | None]:
    """A `retry_on` that makes the driver try again when the code of any of the answer's entries is in `retried`."""

    def check(message: Any) -> KafkaError | None:
        codes = (entry.error_code for entry in entries(message))
        return Errors.for_code(next((code for code in codes if code in retried), 0))

    return check


def said_of_each(asked: Iterable[K], said: Mapping[K, V | KafkaError]) -> dict[K, V | KafkaError]:
    """Entries of an answer for each that was `asked` for, and an error for what it leaves out."""
    missing = UnknownServerError("The broker's answer says nothing of it")
    return {key: said.get(key, missing) for key in asked}


def refused(key: object, error: KafkaError, what: str) -> KafkaError:
    """`error` of the one thing that was asked for, by a text that names it."""
    cause = copy.copy(error)  # others may wait for the same
    cause.args = (f"{what} failed for {key}: {error}",)
    cause.__cause__ = error.__cause__
    return cause


def accepted_answer_about(key: object, call: KafkaFuture[Any], what: str) -> Operation[Any]:
    """Wait for one `call`, as `accepted_answer_of`; the text of a broker's error names `key`."""
    try:
        return (yield from accepted_answer_of(call))
    except KafkaError as error:
        if error.code is None:
            raise  # no broker's answer
        raise refused(key, error, what) from error.__cause__


def settle(
    asked: Collection[object], results: Mapping[K, V], errors: Mapping[K, KafkaError], what: str
) -> dict[K, V]:
    """`results` if nothing failed; else raises.

    Where one thing alone was `asked` for that is what is wrong with it, so that it can be caught by its class. Of
    several it is an AdminError with both parts and every failed key in its text.
    """
    if not errors:
        return dict(results)
    if len(asked) == 1:
        raise refused(*next(iter(errors.items())), what)
    listed = "; ".join(f"{key}: {error}" for key, error in list(errors.items())[:5])
    more = f" and {len(errors) - 5} more" if len(errors) > 5 else ""
    raise AdminError(f"{what} failed for {listed}{more}", results=dict(results), errors=dict(errors))


def settle_each(asked: Collection[object], outcomes: Mapping[K, V | KafkaError], what: str) -> dict[K, V]:
    """As `settle`, of results and errors together."""
    results: dict[K, V] = {}
    errors: dict[K, KafkaError] = {}
    for key, outcome in outcomes.items():
        if isinstance(outcome, KafkaError):
            errors[key] = outcome
        else:
            results[key] = outcome
    return settle(asked, results, errors, what)
