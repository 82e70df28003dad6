"""AdminMethods: the base of the methods, by which they run their operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

from kclient.admin.config import AdminConfig
from kclient.admin.internals.arguments import checked_timeout
from kclient.admin.internals.context import OperationContext
from kclient.admin.internals.driver import AdminDriver
from kclient.admin.internals.steps import Operation
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.fork import ForkGuard
from kclient.utils.time import Time

P = ParamSpec("P")
R = TypeVar("R")


class AdminMethods:
    """Methods of one subject. The parts are those of the client, which makes them."""

    _config: AdminConfig
    _time: Time
    _backoff: ExponentialBackoff
    _fork_guard: ForkGuard
    _driver: AdminDriver

    def _run(
        self,
        what: str,
        timeout_ms: int | None,
        operation: Callable[Concatenate[OperationContext, P], Operation[R]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        """Run `operation`, which is `what` to whoever waits; raises as the operation, or KafkaTimeoutError."""
        self._fork_guard.check()
        timer = self._time.timer(checked_timeout(timeout_ms, self._config.default_api_timeout_ms))
        context = OperationContext(self._driver, timer, self._backoff)
        return context.run(operation(context, *args, **kwargs), what)
