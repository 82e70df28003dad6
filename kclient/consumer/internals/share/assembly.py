"""Puts a share consumer together, for whichever facade uses it."""

from __future__ import annotations

from kclient.client.assembly import build_network_client
from kclient.client.coordinators import CoordinatorFinder, CoordinatorKey, CoordinatorType
from kclient.client.kafka_client import KafkaClient
from kclient.client.request_sender import RequestSender
from kclient.client.telemetry.client_telemetry import ClientTelemetry
from kclient.common.uuid import Uuid
from kclient.consumer.internals.application_queue import ApplicationQueue
from kclient.consumer.internals.changes import Changes
from kclient.consumer.internals.completed_fetch import DecodeSettings
from kclient.consumer.internals.coordinator.heartbeat import Heartbeat
from kclient.consumer.internals.metadata import ConsumerMetadata
from kclient.consumer.internals.network_thread import NetworkThread
from kclient.consumer.internals.share.acknowledger import Acknowledger
from kclient.consumer.internals.share.assignment import ShareAssignment
from kclient.consumer.internals.share.core import ShareCore
from kclient.consumer.internals.share.fetch_buffer import ShareFetchBuffer
from kclient.consumer.internals.share.fetcher import ShareFetcher
from kclient.consumer.internals.share.membership import ShareMembership
from kclient.consumer.internals.share.metrics import ShareMetrics
from kclient.consumer.internals.share.session_nodes import SessionNodes
from kclient.consumer.internals.share.settled import Settled
from kclient.consumer.internals.subscription_state import SubscriptionState
from kclient.consumer.share_config import ShareConsumerConfig
from kclient.errors import KafkaError
from kclient.serialization import as_deserializer
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.time import SYSTEM_TIME, Time

_MAX_IN_FLIGHT = 100
"""Requests to one broker at a time; sessions allow one of theirs anyway."""
_NO_SESSION_TIMEOUT_MS = 2**31 - 1
"""The coordinator alone decides for how long a silent member of a share group stays."""


def build_share_consumer(
    config: ShareConsumerConfig,
    *,
    time: Time = SYSTEM_TIME,
    client: KafkaClient | None = None,
    start: bool = True,
) -> ShareCore:
    """The share consumer that `config` describes, with its I/O thread started.

    Tests give a client of their own, and take the rounds of the loop by themselves. Raises ConfigError for objects
    that are not what their setting needs, BootstrapError if no bootstrap server can be resolved.
    """
    assert config.group_id is not None
    decode = DecodeSettings(
        check_crcs=config.check_crcs,
        key_deserializer=as_deserializer(config.key_deserializer, "key"),
        value_deserializer=as_deserializer(config.value_deserializer, "value"),
        decompress_max_bytes=config.kclient_decompress_max_bytes,
    )
    group_id, member_id = config.group_id, str(Uuid.random())
    log_context = config.log_context()
    backoff = ExponentialBackoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
    subscription = SubscriptionState()
    assignment = ShareAssignment()
    metadata = ConsumerMetadata(config, subscription, assignment, time)
    metrics = ShareMetrics(config, time)
    labels = {"group_id": group_id, "group_member_id": member_id, "client_rack": config.client_rack}
    telemetry = ClientTelemetry(
        metrics.collect,
        lambda: {name: value for name, value in labels.items() if value},
        enabled=config.enable_metrics_push,
    )
    if client is None:
        client = build_network_client(
            config,
            metadata=metadata,
            max_in_flight=_MAX_IN_FLIGHT,
            metrics=metrics.network,
            telemetry=telemetry,
            time=time,
        )
    changes = Changes(lambda: None)
    buffer = ShareFetchBuffer(changes.notify)
    queue = ApplicationQueue(changes.notify)
    settled = Settled(changes.notify, metrics.acknowledged)
    sender = RequestSender(client, config.request_timeout_ms)

    def on_fatal(error: KafkaError) -> None:
        membership.refused(error)

    finder = CoordinatorFinder(
        CoordinatorKey(CoordinatorType.GROUP, group_id),
        sender,
        backoff,
        on_fatal,
        log_context,
        own_connection=True,
    )
    membership = ShareMembership(
        group_id=group_id,
        member_id=member_id,
        rack=config.client_rack or None,
        subscription=subscription,
        assignment=assignment,
        metadata=metadata,
        finder=finder,
        sender=sender,
        heartbeat=Heartbeat(
            interval_ms=config.heartbeat_interval_ms,
            session_timeout_ms=_NO_SESSION_TIMEOUT_MS,
            max_poll_interval_ms=config.max_poll_interval_ms,
            backoff=backoff,
            taken_ms=lambda: 0,
            now_ms=time.monotonic_ms(),
        ),
        on_error=queue.fail,
        on_assignment=changes.notify,
        metrics=metrics,
        log_context=log_context,
    )
    nodes = SessionNodes(client, backoff)
    acknowledger = Acknowledger(
        group_id=group_id,
        member_id=member_id,
        client=client,
        metadata=metadata,
        nodes=nodes,
        settled=settled,
        backoff=backoff,
        log_context=log_context,
    )
    fetcher = ShareFetcher(
        config=config,
        group_id=group_id,
        member_id=member_id,
        decode=decode,
        client=client,
        metadata=metadata,
        assignment=assignment,
        nodes=nodes,
        acknowledger=acknowledger,
        settled=settled,
        buffer=buffer,
        on_error=queue.fail,
        metrics=metrics,
    )
    metadata.add_listener(lambda _: assignment.resolve(metadata))

    def end(error: KafkaError) -> None:
        fetcher.end(error)
        acknowledger.end(error)

    network = NetworkThread(
        config=config,
        sender=sender,
        # The finder is last: it looks for the coordinator that the membership wants.
        managers=[membership, acknowledger, fetcher, finder],
        say_goodbye=acknowledger.close,
        end=end,
        on_death=queue.io_thread_died,
        time=time,
    )
    core = ShareCore(
        config=config,
        subscription=subscription,
        metadata=metadata,
        changes=changes,
        buffer=buffer,
        queue=queue,
        settled=settled,
        membership=membership,
        fetcher=fetcher,
        acknowledger=acknowledger,
        network=network,
        metrics=metrics,
        telemetry=telemetry,
        time=time,
    )
    if start:
        network.start()
    return core
