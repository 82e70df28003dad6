"""ConsumerLife: the ends of a consumer of either kind, and what can be asked of it meanwhile."""

from __future__ import annotations

import abc
import logging
import sys
import warnings
from collections.abc import Callable
from typing import ClassVar, Protocol, Self, TypeVar

from kclient.client.telemetry.client_telemetry import ClientTelemetry
from kclient.client.telemetry.pushed_metrics import PushedMetrics
from kclient.consumer.config import ConsumerConfig
from kclient.consumer.internals.arguments import checked_timeout
from kclient.consumer.internals.network_thread import NetworkThread
from kclient.consumer.internals.single_user import SingleUser
from kclient.consumer.internals.wakeup import WakeupTrigger
from kclient.metrics import MetricValues
from kclient.utils.steps import Steps, run
from kclient.utils.time import Time, Timer

log = logging.getLogger(__name__)

T = TypeVar("T")

_CLOSE_TIMEOUT_MS = 30_000


class _Metrics(Protocol):
    def snapshot(self) -> MetricValues: ...


class Core(Protocol):
    """The parts that the core of every consumer has."""

    @property
    def config(self) -> ConsumerConfig: ...
    @property
    def network(self) -> NetworkThread: ...
    @property
    def metrics(self) -> _Metrics: ...
    @property
    def telemetry(self) -> ClientTelemetry: ...
    @property
    def wakeup(self) -> WakeupTrigger: ...
    @property
    def time(self) -> Time: ...
    def describe(self, state: str) -> str: ...
    def close_parts(self) -> None: ...


class ConsumerLife(PushedMetrics):
    """A consumer that is open, asked, woken up and closed. Its parts are made by the public class."""

    _NAME: ClassVar[str]
    """The name of the public class; logs leave `Kafka` out."""
    _core: Core
    _use: SingleUser

    def _run(self, steps: Steps[T]) -> T:
        """Take the steps on the calling thread."""
        return run(steps, self._core.time)

    def _enter(self) -> SingleUser:
        """The guard for a call."""
        return self._use

    # What can be asked.

    def metrics(self) -> MetricValues:
        """Return the metrics of the consumer, under Java's names: by MetricName, and by plain name as well."""
        with self._enter():
            return self._core.metrics.snapshot()

    def update_credentials(self, username: str, password: str) -> None:
        """Authenticate as `username` with `password` from now on; for PLAIN and SCRAM.

        Connections that there are stay as they are until they are made anew, or their broker wants them to authenticate
        again (`connections.max.reauth.ms`). May be called from any thread.

        Raises IllegalStateError if the client does not authenticate with a password, TypeError for what is not str.
        """
        self._use.guard.check()
        self._core.network.update_credentials(username, password)

    @property
    def _telemetry(self) -> ClientTelemetry:
        self._use.guard.check()
        return self._core.telemetry

    # Ending.

    def wakeup(self) -> None:
        """Make the call that waits, or the next one that would, raise WakeupError once.

        For any thread, and for signal handlers.
        """
        self._use.guard.check()
        self._core.wakeup.wakeup()

    @abc.abstractmethod
    def close(self, timeout_ms: int | None = None) -> None:
        """End, in at most `timeout_ms`. May be called again."""

    def _end(
        self, timeout_ms: int | None, close: Callable[[Timer], Steps[BaseException | None]]
    ) -> BaseException | None:
        """Take the steps of `close` and end the I/O thread and all parts, also where these steps were cut short.

        Returns what the application's own code raised.
        """
        core = self._core
        timer = core.time.timer(checked_timeout(timeout_ms, _CLOSE_TIMEOUT_MS))
        try:
            return self._run(close(timer))
        finally:
            core.network.close(timer.remaining_ms())
            core.network.join(timer.remaining_ms())
            core.close_parts()
            self._use.close()

    def _close_after_error(self) -> None:
        """Close at the end of a block that has failed: the error of the block is the one that matters."""
        try:
            self.close()
        except Exception:
            log.exception(
                "[%s clientId=%s] The consumer could not be closed",
                self._NAME.removeprefix("Kafka"),
                self._core.config.client_id,
            )

    def __enter__(self) -> Self:
        return self

    def __repr__(self) -> str:
        # Takes no turn: also the repr of a consumer in use by another thread must do.
        return f"<{self._NAME} {self._core.describe(' closed' if self._use.closed else '')}>"

    # At the end of the interpreter the names of modules may be gone, and the I/O thread does not run any more.
    def __del__(
        self, is_finalizing: Callable[[], bool] = sys.is_finalizing, warn: Callable[..., None] = warnings.warn
    ) -> None:
        core = getattr(self, "_core", None)
        if core is None or self._use.closed or self._use.guard.forked:
            return
        if not is_finalizing():
            core.network.close()
        warn(
            f"{self._NAME} {core.config.client_id} was not closed; use it in a with block",
            ResourceWarning,
            source=self,
            stacklevel=2,
        )
