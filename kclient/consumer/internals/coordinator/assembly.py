"""Puts a consumer's part in its group together.

Imported for a consumer with a group alone: one without reads as well, and starts sooner.
"""

from __future__ import annotations

from collections.abc import Callable

from kclient.client.coordinators import CoordinatorFinder, CoordinatorKey, CoordinatorType
from kclient.client.request_sender import NEVER, RequestSender
from kclient.consumer.assignor import ASSIGNORS, ConsumerPartitionAssignor
from kclient.consumer.config import ConsumerConfig
from kclient.consumer.internals.application_queue import ApplicationQueue
from kclient.consumer.internals.assigned_partitions import AssignedPartitions
from kclient.consumer.internals.coordinator.assignment_changes import AssignmentChanges
from kclient.consumer.internals.coordinator.classic_membership import ClassicMembership
from kclient.consumer.internals.coordinator.commits import CommitManager
from kclient.consumer.internals.coordinator.consumer_heartbeat import ConsumerMemberSettings
from kclient.consumer.internals.coordinator.consumer_membership import ConsumerMembership
from kclient.consumer.internals.coordinator.cooperation import rebalance_protocol
from kclient.consumer.internals.coordinator.group_leader import GroupLeader
from kclient.consumer.internals.coordinator.heartbeat import Heartbeat
from kclient.consumer.internals.coordinator.member_requests import MembershipSettings
from kclient.consumer.internals.coordinator.membership import Membership
from kclient.consumer.internals.coordinator.own_share import OwnShare
from kclient.consumer.internals.group_metrics import GroupMetrics
from kclient.consumer.internals.metadata import ConsumerMetadata
from kclient.consumer.internals.subscription_state import SubscriptionState
from kclient.errors import ConfigError, KafkaError
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.time import Time


def make_assignors(strategy: list[object]) -> dict[str, ConsumerPartitionAssignor]:
    """The assignors of `partition.assignment.strategy`, by name, the preferred one first."""
    made: dict[str, ConsumerPartitionAssignor] = {}
    for given in strategy:
        if isinstance(given, str) and given in ASSIGNORS:
            assignor: object = ASSIGNORS[given]()
        elif isinstance(given, type) and issubclass(given, ConsumerPartitionAssignor):
            assignor = given()
        else:
            assignor = given
        if not isinstance(assignor, ConsumerPartitionAssignor):
            raise ConfigError(
                f"partition.assignment.strategy: {given!r} is neither one of {', '.join(ASSIGNORS)} "
                "nor a ConsumerPartitionAssignor.",
                name="partition.assignment.strategy",
            )
        if assignor.name in made:
            raise ConfigError(
                f"partition.assignment.strategy: two assignors are called {assignor.name!r}.",
                name="partition.assignment.strategy",
            )
        made[assignor.name] = assignor
    return made


def build_group(
    group_id: str,
    config: ConsumerConfig,
    *,
    assignors: dict[str, ConsumerPartitionAssignor],
    subscription: SubscriptionState,
    assigned: AssignedPartitions,
    metadata: ConsumerMetadata,
    sender: RequestSender,
    queue: ApplicationQueue,
    taken_ms: Callable[[], int],
    metrics: GroupMetrics,
    time: Time,
) -> tuple[CoordinatorFinder, Membership, CommitManager]:
    """The finder of the coordinator, the member, and its commits, of a consumer with a group."""
    log_context = config.log_context()
    backoff = ExponentialBackoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
    protocol = rebalance_protocol(assignors.values())
    membership: Membership

    def on_fatal(error: KafkaError) -> None:
        commits.fail_all(error)
        if subscription.has_auto_assigned_partitions():
            membership.fail(error)

    key = CoordinatorKey(CoordinatorType.GROUP, group_id)
    finder = CoordinatorFinder(key, sender, backoff, on_fatal, log_context, own_connection=True)
    consumer_protocol = config.group_protocol == ConsumerMembership.PROTOCOL
    heartbeat = Heartbeat(
        interval_ms=config.heartbeat_interval_ms,
        # With the consumer protocol the coordinator alone knows when a session ends.
        session_timeout_ms=NEVER if consumer_protocol else config.session_timeout_ms,
        max_poll_interval_ms=config.max_poll_interval_ms,
        backoff=backoff,
        taken_ms=taken_ms,
        now_ms=time.monotonic_ms(),
    )
    if consumer_protocol:
        membership = ConsumerMembership(
            settings=ConsumerMemberSettings(
                group_id=group_id,
                group_instance_id=config.group_instance_id,
                rebalance_timeout_ms=config.max_poll_interval_ms,
                rack=config.client_rack or None,
                assignor=config.group_remote_assignor,
            ),
            subscription=subscription,
            assigned=assigned,
            metadata=metadata,
            finder=finder,
            sender=sender,
            heartbeat=heartbeat,
            backoff=backoff,
            changes=AssignmentChanges(queue.rebalance),
            on_fatal=queue.fail,
            metrics=metrics,
            time=time,
            log_context=log_context,
        )
    else:
        membership = ClassicMembership(
            settings=MembershipSettings(
                group_id=group_id,
                group_instance_id=config.group_instance_id,
                session_timeout_ms=config.session_timeout_ms,
                rebalance_timeout_ms=config.max_poll_interval_ms,
                rack=config.client_rack or None,
            ),
            leader=GroupLeader(assignors, protocol, subscription, metadata, log_context),
            assignors=assignors,
            subscription=subscription,
            share=OwnShare(
                protocol=protocol,
                assignors=assignors,
                assigned=assigned,
                changes=AssignmentChanges(queue.rebalance),
                log_context=log_context,
            ),
            finder=finder,
            sender=sender,
            heartbeat=heartbeat,
            backoff=backoff,
            on_fatal=queue.fail,
            metrics=metrics,
            log_context=log_context,
        )
    commits = CommitManager(
        group_id=group_id,
        group_instance_id=config.group_instance_id,
        metadata=metadata,
        finder=finder,
        membership=membership,
        sender=sender,
        backoff=backoff,
        metrics=metrics,
        log_context=log_context,
    )
    return finder, membership, commits
