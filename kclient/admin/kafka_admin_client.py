"""KafkaAdminClient: topics, groups, settings, access, transactions and the cluster, from any thread.

Here is its life, from the first connection to the last; what it does is in `internals/methods`, a class a subject.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from kclient.admin.config import AdminConfig
from kclient.admin.internals.arguments import checked_timeout
from kclient.admin.internals.assembly import build_driver
from kclient.admin.internals.methods.access import AccessMethods
from kclient.admin.internals.methods.configs import ConfigMethods
from kclient.admin.internals.methods.group_offsets import GroupOffsetMethods
from kclient.admin.internals.methods.groups import GroupMethods
from kclient.admin.internals.methods.topics import TopicMethods
from kclient.admin.internals.methods.transactions import TransactionMethods
from kclient.client.client_metrics import ClientMetrics
from kclient.client.health import ClientHealth
from kclient.client.telemetry.client_telemetry import ClientTelemetry
from kclient.client.telemetry.pushed_metrics import PushedMetrics
from kclient.config.declare import ConfigSource
from kclient.metrics import MetricValues
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.fork import ForkGuard
from kclient.utils.time import SYSTEM_TIME

if TYPE_CHECKING:
    from kclient.admin.settings import AdminSettings


class KafkaAdminClient(
    TopicMethods,
    GroupMethods,
    GroupOffsetMethods,
    ConfigMethods,
    AccessMethods,
    TransactionMethods,
    PushedMetrics,
):
    """Manages a Kafka cluster. Thread-safe.

    Settings are Java's: dotted in a mapping or a `.properties` file, underscored as keywords. Methods wait for their
    answer and return plain values; a method that was asked about one thing raises what is wrong with it
    (`TopicExistsError`), about several `AdminError` if any of them failed, with what went well in `.results` and the
    rest in `.errors`. `timeout_ms` is default.api.timeout.ms unless given; when it is over, `KafkaTimeoutError` says
    what was tried. A Ctrl-C ends a call at once, and what it has asked for is forgotten; a broker that has the request
    may still carry it out.

        with KafkaAdminClient(bootstrap_servers="localhost:9092") as admin:
            admin.create_topics([NewTopic("orders", num_partitions=3)])
    """

    def __init__(self, config: ConfigSource = None, **settings: Unpack[AdminSettings]) -> None:
        self._config = AdminConfig.parse(config, settings)
        self._client_id = self._config.client_id
        self._time = SYSTEM_TIME
        self._backoff = ExponentialBackoff(self._config.retry_backoff_ms, self._config.retry_backoff_max_ms)
        self._fork_guard = ForkGuard(f"KafkaAdminClient {self._client_id}")
        self._metrics = ClientMetrics(self._config, self._time, "admin-client-metrics")
        self._pushed = ClientTelemetry(self._metrics.collect, dict, enabled=self._config.enable_metrics_push)
        self._driver = build_driver(self._config, self._backoff, self._metrics, self._pushed, self._time)
        # In this order: after a Ctrl-C in between there is no thread that nobody would end.
        self._closed = False
        self._driver.start()

    def update_credentials(self, username: str, password: str) -> None:
        """Authenticate as `username` with `password` from now on; for PLAIN and SCRAM.

        Connections that there are stay as they are until they are made anew, or their broker wants them to authenticate
        again (`connections.max.reauth.ms`). May be called from any thread.

        Raises IllegalStateError if the client does not authenticate with a password, TypeError for what is not str.
        """
        self._fork_guard.check()
        self._driver.update_credentials(username, password)

    def health(self) -> ClientHealth:
        """Return how the client stands: what is wrong, and its connections. Waits for nothing."""
        self._fork_guard.check()
        return self._driver.health()

    def metrics(self) -> MetricValues:
        """Return the metrics of the client, under Java's names: by MetricName, and by plain name as well."""
        self._fork_guard.check()
        return self._metrics.snapshot()

    @property
    def _telemetry(self) -> ClientTelemetry:
        self._fork_guard.check()
        return self._pushed

    def close(self, timeout_ms: int | None = None) -> None:
        """Wait at most `timeout_ms` (by default default.api.timeout.ms) for calls under way, then close.

        A second call does nothing; in a forked child it touches none of the parent's connections.
        """
        limit_ms = checked_timeout(timeout_ms, self._config.default_api_timeout_ms)
        if not self._fork_guard.forked:
            self._driver.close(limit_ms)
        self._closed = True  # last: where a Ctrl-C comes before, the finalizer ends the thread

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # After a Ctrl-C the calls of other threads are not waited for either.
        self.close(0 if kind is not None and issubclass(kind, KeyboardInterrupt) else None)

    # At the end of the interpreter the names of modules may be gone, and the I/O thread does not run any more.
    def __del__(
        self, is_finalizing: Callable[[], bool] = sys.is_finalizing, warn: Callable[..., None] = warnings.warn
    ) -> None:
        if getattr(self, "_closed", True) or self._fork_guard.forked:
            return
        if not is_finalizing():
            self._driver.close_soon()
        warn(f"KafkaAdminClient {self._client_id} was not closed", ResourceWarning, source=self, stacklevel=2)
