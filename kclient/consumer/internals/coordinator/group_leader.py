"""The work of a group's leader beside being a member: it assigns, and watches whether its assignment still fits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from kclient._accel import belongs_to_caller
from kclient.client.metadata import Metadata
from kclient.common.cluster import Cluster
from kclient.consumer.assignor import ASSIGNORS
from kclient.consumer.assignor.base import ConsumerPartitionAssignor, RebalanceProtocol, Subscription
from kclient.consumer.internals.coordinator import group_protocol
from kclient.consumer.internals.coordinator.cooperation import check_nothing_is_taken
from kclient.consumer.internals.subscription_state import SubscriptionState
from kclient.errors import KafkaError
from kclient.protocol.messages.join_group import JoinGroupResponseMember
from kclient.utils.log_context import LogContext, Logger


@attrs.define
class _Assignment:
    """An assignment in the making, waiting for the metadata of topics that only other members subscribe to."""

    assignor: ConsumerPartitionAssignor
    subscriptions: dict[str, Subscription]
    after_version: int
    deadline_ms: int


@attrs.define(eq=False, repr=False)
class GroupLeader:
    """The leader's part of a rebalance and what follows it. Belongs to the I/O thread."""

    _assignors: Mapping[str, ConsumerPartitionAssignor]
    _protocol: RebalanceProtocol
    _subscription: SubscriptionState
    _metadata: Metadata
    _log_context: LogContext
    _log: Logger = attrs.field(init=False)
    _assignment: _Assignment | None = attrs.field(default=None, init=False)
    _watched: dict[str, object] | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._log = self._log_context.logger(__name__)

    @property
    def assigning(self) -> bool:
        """True if an assignment is in the making."""
        return self._assignment is not None

    def forget(self) -> None:
        """The member leads nothing any more."""
        self._assignment = None
        self._watched = None

    def keep(self, members: Sequence[JoinGroupResponseMember]) -> None:
        """Lead a group whose assignment stays as it is (KIP-814), and watch over it."""
        topics = _topics(group_protocol.decode_members(members, self._log))
        self._subscription.group_subscribe(topics)
        self._watched = group_protocol.partition_counts(self._metadata.fetch(), topics)

    def begin(self, assignor: str, members: Sequence[JoinGroupResponseMember], deadline_ms: int) -> None:
        """Lead a group: `assign` can be called once `wait_ms` is 0, which it is at `deadline_ms` at the latest."""
        subscriptions = group_protocol.decode_members(members, self._log)
        topics = _topics(subscriptions)
        version = self._metadata.update_version
        if self._subscription.group_subscribe(topics):
            # Topics that only other members subscribe to are not known here yet.
            version = self._metadata.request_update_for_new_topics()
        elif not self._metadata.update_requested or not self._lacks(topics):
            version -= 1
        self._assignment = _Assignment(self._assignors[assignor], subscriptions, version, deadline_ms)

    def _lacks(self, topics: set[str]) -> bool:
        """Return True if some are not known: joining may be faster than the answer that tells of them."""
        cluster = self._metadata.fetch()
        return not all(cluster.partition_count(topic) for topic in topics)

    def wait_ms(self, now_ms: int) -> int:
        """The longest time that the assignment in the making still waits for metadata."""
        making = self._assignment
        if making is None or self._metadata.update_version > making.after_version:
            return 0
        return max(making.deadline_ms - now_ms, 0)

    def assign(self) -> dict[str, bytes]:
        """Every member's share, encoded, by member id. Raises KafkaError if the assignor, the user's maybe, fails."""
        making, self._assignment = self._assignment, None
        assert making is not None
        cluster = self._metadata.fetch()
        self._watched = group_protocol.partition_counts(cluster, _topics(making.subscriptions))
        name = making.assignor.name
        try:
            shares = making.assignor.assign(cluster, making.subscriptions)
        except BaseException as error:
            self._log.exception("The assignor %s failed", name)
            if belongs_to_caller(error):
                raise
            if isinstance(error, KafkaError):
                raise
            raise KafkaError(f"The assignor {name!r} failed: {error!r}") from error
        # Kafka's own knows of partitions that two members say they own, and gives them to one of them.
        if self._protocol is RebalanceProtocol.COOPERATIVE and name not in ASSIGNORS:
            check_nothing_is_taken(name, making.subscriptions, shares)
        self._log.info("Leading the group of %d members, assigned by %s", len(shares), name)
        return {member_id: group_protocol.encode_assignment(share) for member_id, share in shares.items()}

    def is_outdated(self, cluster: Cluster) -> bool:
        """Return True if the group's topics have other partitions than when they were assigned; said once."""
        watched = self._watched
        if watched is None or watched == group_protocol.partition_counts(cluster, watched):
            return False
        self._watched = None
        return True


def _topics(subscriptions: Mapping[str, Subscription]) -> set[str]:
    return {topic for each in subscriptions.values() for topic in each.topics}
