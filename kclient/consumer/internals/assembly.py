"""Puts a consumer together, for whichever facade uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from kclient._accel import RecordCursor
from kclient.client.assembly import build_network_client
from kclient.client.kafka_client import KafkaClient
from kclient.client.request_sender import RequestSender
from kclient.client.telemetry.client_telemetry import ClientTelemetry
from kclient.consumer.config import DEFAULT_STRATEGY, ConsumerConfig
from kclient.consumer.interceptor import ConsumerInterceptor
from kclient.consumer.internals.application_queue import ApplicationQueue
from kclient.consumer.internals.assigned_partitions import AssignedPartitions
from kclient.consumer.internals.changes import Changes
from kclient.consumer.internals.completed_fetch import DecodeSettings
from kclient.consumer.internals.consumer_core import ConsumerCore
from kclient.consumer.internals.fetch_buffer import FetchBuffer
from kclient.consumer.internals.fetch_position import AutoOffsetReset
from kclient.consumer.internals.fetcher import Fetcher
from kclient.consumer.internals.leader_offsets import LeaderOffsets
from kclient.consumer.internals.member_labels import MemberLabels
from kclient.consumer.internals.metadata import ConsumerMetadata
from kclient.consumer.internals.metrics import ConsumerMetrics
from kclient.consumer.internals.network_thread import NetworkThread, RequestManager
from kclient.consumer.internals.offset_fetcher import OffsetFetcher
from kclient.consumer.internals.questions import Questions
from kclient.consumer.internals.subscription_state import SubscriptionState
from kclient.consumer.internals.topic_metadata import TopicMetadataManager
from kclient.consumer.internals.undecodable import UndecodableRecords
from kclient.errors import ConfigError
from kclient.serialization import as_deserializer
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.time import SYSTEM_TIME, Time

if TYPE_CHECKING:
    from kclient.client.coordinators import CoordinatorFinder
    from kclient.consumer.assignor import ConsumerPartitionAssignor
    from kclient.consumer.internals.coordinator.commits import CommitManager
    from kclient.consumer.internals.coordinator.membership import Membership

_MAX_IN_FLIGHT = 100
"""Requests to one broker at a time; fetches are limited to one anyway."""


def build_consumer(
    config: ConsumerConfig, *, time: Time = SYSTEM_TIME, client: KafkaClient | None = None, start: bool = True
) -> ConsumerCore:
    """The consumer that `config` describes, with its I/O thread started.

    Tests give a client of their own, and take the rounds of the loop by themselves. Raises ConfigError for objects
    that are not what their setting needs, BootstrapError if no bootstrap server can be resolved.
    """
    # What can be refused is made before anything that would have to be closed again.
    assignors = _make_assignors(config)
    interceptors = _make_interceptors(config.interceptor_classes)
    decode = DecodeSettings(
        check_crcs=config.check_crcs,
        read_committed=config.isolation_level == "read_committed",
        key_deserializer=as_deserializer(config.key_deserializer, "key"),
        value_deserializer=as_deserializer(config.value_deserializer, "value"),
        decompress_max_bytes=config.kclient_decompress_max_bytes,
    )
    reset = AutoOffsetReset(config.auto_offset_reset.partition(":")[0], config.auto_offset_reset_duration_ms)
    log_context = config.log_context()
    backoff = ExponentialBackoff(config.retry_backoff_ms, config.retry_backoff_max_ms)

    subscription = SubscriptionState()
    assigned = AssignedPartitions(reset, log_context)
    metadata = ConsumerMetadata(config, subscription, assigned, time)
    metrics = ConsumerMetrics(config, time)
    decode = attrs.evolve(decode, on_undecodable=_on_undecodable(config, metrics, time))
    member = MemberLabels(config)
    telemetry = ClientTelemetry(metrics.collect, member.labels, enabled=config.enable_metrics_push)
    if client is None:
        client = build_network_client(
            config,
            metadata=metadata,
            max_in_flight=_MAX_IN_FLIGHT,
            metrics=metrics.network,
            telemetry=telemetry,
            time=time,
        )
    cursor = RecordCursor(None if time is SYSTEM_TIME else time.monotonic_ms)
    changes = Changes(cursor.stop)
    buffer = FetchBuffer(changes.notify, client.wakeup, config.fetch_max_bytes)
    queue = ApplicationQueue(changes.notify)
    sender = RequestSender(client, config.request_timeout_ms)
    membership: Membership | None = None
    commits: CommitManager | None = None
    finder: CoordinatorFinder | None = None
    if config.group_id is not None:
        # Here and below: who only reads needs nothing of it, such as Spark's processes.
        from kclient.consumer.internals.coordinator.assembly import build_group

        finder, membership, commits = build_group(
            config.group_id,
            config,
            assignors=assignors,
            subscription=subscription,
            assigned=assigned,
            metadata=metadata,
            sender=sender,
            queue=queue,
            taken_ms=lambda: cursor.last_ms,
            metrics=metrics.watch_group(),
            time=time,
        )
        member.membership = membership
    offsets = OffsetFetcher(
        config=config,
        leaders=LeaderOffsets(
            sender,
            metadata,
            read_committed=decode.read_committed,
            timeout_ms=config.default_api_timeout_ms,
        ),
        metadata=metadata,
        assigned=assigned,
        commits=commits,
        backoff=backoff,
        time=time,
        on_change=changes.notify,
        discard=buffer.discard,
    )
    topics = TopicMetadataManager(sender, backoff, allow_auto_topic_creation=config.allow_auto_create_topics)
    fetcher = Fetcher(
        config=config,
        decode=decode,
        sender=sender,
        metadata=metadata,
        assigned=assigned,
        buffer=buffer,
        on_change=changes.notify,
        backoff=backoff,
        metrics=metrics,
    )
    # The finder is last: it looks for the coordinator that the others want.
    managers: list[RequestManager | None] = [membership, offsets, commits, topics, fetcher, finder]
    metadata.add_listener(metadata.match_pattern)
    metadata.add_listener(offsets.metadata_updated)
    if membership is not None:
        metadata.add_listener(membership.metadata_updated)
    metrics.watch_assignment(assigned, read_committed=decode.read_committed)
    network = NetworkThread(
        config=config,
        sender=sender,
        managers=[manager for manager in managers if manager is not None],
        say_goodbye=fetcher.close,
        end=lambda error: None if commits is None else commits.end(error),
        on_death=queue.io_thread_died,
        time=time,
    )
    core = ConsumerCore(
        config=config,
        subscription=subscription,
        assigned=assigned,
        metadata=metadata,
        changes=changes,
        cursor=cursor,
        buffer=buffer,
        queue=queue,
        membership=membership,
        commits=commits,
        questions=Questions(network, commits, offsets, topics),
        network=network,
        interceptors=interceptors,
        metrics=metrics,
        telemetry=telemetry,
        time=time,
    )
    if start:
        network.start()
    return core


def _on_undecodable(
    config: ConsumerConfig, metrics: ConsumerMetrics, time: Time
) -> UndecodableRecords | None:
    wanted: Any = config.kclient_on_deserialization_error
    if wanted == "raise":
        return None
    return UndecodableRecords(None if wanted == "skip" else wanted, metrics, time, config.log_context())


def _make_assignors(config: ConsumerConfig) -> dict[str, ConsumerPartitionAssignor]:
    """Return the assignors by name; none for a consumer without a group, whose settings are looked at all the same."""
    if config.group_id is None and config.partition_assignment_strategy == DEFAULT_STRATEGY:
        return {}
    from kclient.consumer.internals.coordinator.assembly import make_assignors

    return make_assignors(config.partition_assignment_strategy)


def _make_interceptors(given: list[object]) -> list[ConsumerInterceptor]:
    made = []
    for each in given:
        interceptor = each() if isinstance(each, type) else each
        if not isinstance(interceptor, ConsumerInterceptor):
            raise ConfigError(
                f"interceptor.classes: {each!r} is not a ConsumerInterceptor.", name="interceptor.classes"
            )
        made.append(interceptor)
    return made
