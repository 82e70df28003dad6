"""Methods for topics, the offsets of their partitions, and the cluster."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kclient.admin.internals import operations
from kclient.admin.internals.arguments import (
    check_flag,
    checked_isolation,
    checked_new_topics,
    checked_specs,
    checked_topics,
)
from kclient.admin.internals.methods.base import AdminMethods
from kclient.admin.types import (
    ClusterDescription,
    CreatedTopic,
    ListedOffset,
    NewTopic,
    TopicDescription,
    TopicListing,
)
from kclient.common.topic_partition import TopicPartition


class TopicMethods(AdminMethods):
    """Topics, their offsets, and the cluster."""

    def create_topics(
        self,
        new_topics: Iterable[NewTopic | str],
        *,
        validate_only: bool = False,
        retry_on_quota_violation: bool = True,
        timeout_ms: int | None = None,
    ) -> dict[str, CreatedTopic]:
        """Create topics; a plain name takes the broker's default counts. `validate_only` only checks.

        Topics that a quota refuses are tried again until the time is over, or not, by `retry_on_quota_violation`;
        ThrottlingQuotaExceededError then has the `throttle_time_ms` that is left to wait (KIP-599).
        """
        wanted, retry = checked_new_topics(new_topics), retry_on_quota_violation
        check_flag("validate_only", validate_only)
        check_flag("retry_on_quota_violation", retry)
        what = f"Creating topics {', '.join(topic.name for topic in wanted)}"
        return self._run(what, timeout_ms, operations.topics.create_topics, wanted, validate_only, retry)

    def delete_topics(
        self, names: Iterable[str], *, retry_on_quota_violation: bool = True, timeout_ms: int | None = None
    ) -> dict[str, None]:
        """Delete topics and everything in them. `retry_on_quota_violation` is as in `create_topics`."""
        wanted, retry = checked_topics(names), retry_on_quota_violation
        check_flag("retry_on_quota_violation", retry)
        what = f"Deleting topics {', '.join(wanted)}"
        return self._run(what, timeout_ms, operations.topics.delete_topics, wanted, retry)

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

        `isolation_level` `read_committed` makes LATEST the end of the committed records. A topic that is not there is
        looked for for three seconds, as the broker that is asked may not have heard of it yet; then it is
        UnknownTopicOrPartitionError.
        """
        wanted = checked_specs(specs)
        isolation = checked_isolation(isolation_level)
        return self._run("Listing offsets", timeout_ms, operations.offsets.list_offsets, wanted, isolation)
