"""KafkaAdminClient: topics, groups, offsets and the cluster, from any thread."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Concatenate, ParamSpec, Self, TypeVar, Unpack

from kclient.admin.config import AdminConfig
from kclient.admin.internals import operations
from kclient.admin.internals.arguments import (
    check_flag,
    checked_group,
    checked_groups,
    checked_isolation,
    checked_new_topics,
    checked_partitions,
    checked_specs,
    checked_timeout,
    checked_topics,
    checked_words,
)
from kclient.admin.internals.assembly import build_driver
from kclient.admin.internals.context import OperationContext
from kclient.admin.internals.steps import Operation
from kclient.admin.types import (
    ClusterDescription,
    CreatedTopic,
    GroupDescription,
    GroupListing,
    ListedOffset,
    NewTopic,
    TopicDescription,
    TopicListing,
)
from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.config.declare import ConfigSource
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.fork import ForkGuard
from kclient.utils.time import SYSTEM_TIME

if TYPE_CHECKING:
    from kclient.admin.settings import AdminSettings

P = ParamSpec("P")
R = TypeVar("R")


class KafkaAdminClient:
    """Manages a Kafka cluster. Thread-safe.

    Settings are Java's: dotted in a mapping or a `.properties` file, underscored as keywords. Methods wait for their
    answer and return plain values; a method that was asked about one thing raises what is wrong with it
    (`TopicExistsError`), about several `AdminError` if any of them failed, with what went well in `.results` and the
    rest in `.errors`. `timeout_ms` is default.api.timeout.ms unless given; when it
    is over, `KafkaTimeoutError` says what was tried. A Ctrl-C ends a call at once, and what it has asked for is
    forgotten; a broker that has the request may still carry it out.

        with KafkaAdminClient(bootstrap_servers="localhost:9092") as admin:
            admin.create_topics([NewTopic("orders", num_partitions=3)])
    """

    def __init__(self, config: ConfigSource = None, **settings: Unpack[AdminSettings]) -> None:
        self._config = AdminConfig.parse(config, settings)
        self._client_id = self._config.client_id
        self._time = SYSTEM_TIME
        self._backoff = ExponentialBackoff(self._config.retry_backoff_ms, self._config.retry_backoff_max_ms)
        self._fork_guard = ForkGuard(f"KafkaAdminClient {self._client_id}")
        self._driver = build_driver(self._config, self._backoff, self._time)
        # In this order: after a Ctrl-C in between there is no thread that nobody would end.
        self._closed = False
        self._driver.start()

    def create_topics(
        self,
        new_topics: Iterable[NewTopic | str],
        *,
        validate_only: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[str, CreatedTopic]:
        """Create topics; a plain name takes the broker's default counts. `validate_only` only checks."""
        wanted = checked_new_topics(new_topics)
        check_flag("validate_only", validate_only)
        what = f"Creating topics {', '.join(topic.name for topic in wanted)}"
        return self._run(what, timeout_ms, operations.topics.create_topics, wanted, validate_only)

    def delete_topics(self, names: Iterable[str], *, timeout_ms: int | None = None) -> dict[str, None]:
        """Delete topics and everything in them."""
        wanted = checked_topics(names)
        what = f"Deleting topics {', '.join(wanted)}"
        return self._run(what, timeout_ms, operations.topics.delete_topics, wanted)

    def list_topics(
        self, *, include_internal: bool = False, timeout_ms: int | None = None
    ) -> dict[str, TopicListing]:
        """Every topic by name; Kafka's own only with `include_internal`."""
        check_flag("include_internal", include_internal)
        return self._run("Listing topics", timeout_ms, operations.topics.list_topics, include_internal)

    def describe_topics(
        self, names: Iterable[str], *, timeout_ms: int | None = None
    ) -> dict[str, TopicDescription]:
        """Partitions, leaders and replicas of topics."""
        wanted = checked_topics(names)
        what = f"Describing topics {', '.join(wanted)}"
        return self._run(what, timeout_ms, operations.topics.describe_topics, wanted)

    def describe_cluster(self, *, timeout_ms: int | None = None) -> ClusterDescription:
        """The cluster's id, brokers and controller."""
        return self._run("Describing the cluster", timeout_ms, operations.topics.describe_cluster)

    def list_offsets(
        self,
        specs: Mapping[TopicPartition, int],
        *,
        isolation_level: str = "read_uncommitted",
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, ListedOffset]:
        """The offset of each partition for an `OffsetSpec` or a timestamp in ms (KIP-396, KIP-734).

        `isolation_level` `read_committed` makes LATEST the end of the committed records.
        """
        wanted = checked_specs(specs)
        isolation = checked_isolation(isolation_level)
        return self._run("Listing offsets", timeout_ms, operations.offsets.list_offsets, wanted, isolation)

    def list_groups(
        self, *, states: Collection[str] = (), types: Collection[str] = (), timeout_ms: int | None = None
    ) -> dict[str, GroupListing]:
        """Every group by id, of all brokers, narrowed to `states` and `types` where given (KIP-518, KIP-848)."""
        wanted_states, wanted_types = checked_words("states", states), checked_words("types", types)
        operation = operations.groups.list_groups
        return self._run("Listing groups", timeout_ms, operation, wanted_states, wanted_types)

    def describe_groups(
        self, group_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> dict[str, GroupDescription]:
        """State, members and assignments of groups of consumers, of either protocol (KIP-848)."""
        wanted = checked_groups(group_ids)
        what = f"Describing groups {', '.join(wanted)}"
        return self._run(what, timeout_ms, operations.groups.describe_groups, wanted)

    def delete_groups(self, group_ids: Iterable[str], *, timeout_ms: int | None = None) -> dict[str, None]:
        """Delete groups without members, and their offsets (KIP-229)."""
        wanted = checked_groups(group_ids)
        what = f"Deleting groups {', '.join(wanted)}"
        return self._run(what, timeout_ms, operations.groups.delete_groups, wanted)

    def list_consumer_group_offsets(
        self,
        group_id: str,
        partitions: Collection[TopicPartition] | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """Return the offsets that `group_id` has committed, for all its partitions or for `partitions`.

        A partition of `partitions` without a committed offset has None.
        """
        checked_group(group_id)
        wanted = None if partitions is None else checked_partitions(partitions)
        what = f"Listing the offsets of group {group_id}"
        operation = operations.offsets.list_consumer_group_offsets
        return self._run(what, timeout_ms, operation, group_id, wanted)

    def update_credentials(self, username: str, password: str) -> None:
        """Authenticate as `username` with `password` from now on; for PLAIN and SCRAM.

        Connections that there are stay as they are until they are made anew, or their broker wants them to authenticate
        again (`connections.max.reauth.ms`). May be called from any thread.

        Raises IllegalStateError if the client does not authenticate with a password, TypeError for what is not str.
        """
        self._fork_guard.check()
        self._driver.update_credentials(username, password)

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

    def __del__(self) -> None:
        if getattr(self, "_closed", True) or self._fork_guard.forked:
            return
        self._driver.close_soon()
        message = f"KafkaAdminClient {self._client_id} was not closed"
        warnings.warn(message, ResourceWarning, source=self, stacklevel=1)

    def _run(
        self,
        what: str,
        timeout_ms: int | None,
        operation: Callable[Concatenate[OperationContext, P], Operation[R]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> R:
        self._fork_guard.check()
        timer = self._time.timer(checked_timeout(timeout_ms, self._config.default_api_timeout_ms))
        context = OperationContext(self._driver, timer, self._backoff)
        return context.run(operation(context, *args, **kwargs), what)
