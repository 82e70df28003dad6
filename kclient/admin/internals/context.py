"""What an operation gets: the driver, the deadline, and the helpers every operation needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import attrs

from kclient.admin.internals.driver import AdminDriver, Target
from kclient.admin.internals.steps import Pause
from kclient.errors import AdminError, Errors, KafkaError
from kclient.protocol.api_keys import ApiKeys
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.futures import KafkaFuture

COORDINATOR_MOVED = (
    Errors.COORDINATOR_LOAD_IN_PROGRESS,
    Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.NOT_COORDINATOR,
)
"""Codes after which a group's coordinator is looked up again."""

K = TypeVar("K")
V = TypeVar("V")


@attrs.frozen
class OperationContext:
    """One operation's view of the client. Any thread."""

    driver: AdminDriver
    deadline_ms: int
    backoff: ExponentialBackoff

    def call(
        self,
        api_key: ApiKeys,
        message_or_builder: Any | Callable[[int], Any],
        target: Target | None = None,
        retry_on: Callable[[Any], KafkaError | None] | None = None,
    ) -> KafkaFuture[Any]:
        """Submit one request to `target`, by default to any broker."""
        return self.driver.submit(api_key, message_or_builder, target or Target(), self.deadline_ms, retry_on)

    def pause(self, attempt: int) -> Pause:
        """The wait before try number `attempt` + 1 of keys that failed for now."""
        return Pause(self.backoff.backoff_ms(attempt))


def retry_on_codes(codes: Callable[[Any], list[int]], *retried: Errors) -> Callable[[Any], KafkaError | None]:
    """A `retry_on` that makes the driver try again when any of the answer's codes is in `retried`."""

    def check(message: Any) -> KafkaError | None:
        for code in codes(message):
            if code in retried:
                return Errors.for_code(code)
        return None

    return check


def settle(results: Mapping[K, V], errors: Mapping[K, KafkaError], what: str) -> dict[K, V]:
    """`results` if nothing failed; else raises AdminError with both parts and every failed key in its text."""
    if not errors:
        return dict(results)
    listed = "; ".join(f"{key}: {error}" for key, error in list(errors.items())[:5])
    more = f" and {len(errors) - 5} more" if len(errors) > 5 else ""
    raise AdminError(f"{what} failed for {listed}{more}", results=dict(results), errors=dict(errors))
