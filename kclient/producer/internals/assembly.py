"""Puts a producer together, for whichever facade uses it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from kclient.client.assembly import build_network_client
from kclient.client.kafka_client import KafkaClient
from kclient.client.request_sender import RequestSender
from kclient.client.telemetry.client_telemetry import ClientTelemetry
from kclient.producer.config import ProducerConfig
from kclient.producer.interceptor import ProducerInterceptors, make_interceptors
from kclient.producer.internals.accumulator import RecordAccumulator
from kclient.producer.internals.buffer_pool import BufferPool
from kclient.producer.internals.compression import Compressor
from kclient.producer.internals.drain import Drainer
from kclient.producer.internals.idempotence.manager import IdempotenceManager
from kclient.producer.internals.lifecycle import IoThread
from kclient.producer.internals.metadata import ProducerMetadata
from kclient.producer.internals.metrics import ProducerMetrics
from kclient.producer.internals.produce_response import ProduceResponseHandler
from kclient.producer.internals.queued_batches import QueuedBatches
from kclient.producer.internals.sender import Sender
from kclient.producer.internals.sticky import NodeAvailability
from kclient.producer.internals.wakeup import SenderWakeup
from kclient.producer.partitioner import Partitioner, make_partitioner
from kclient.serialization import AdaptedSerializer, as_serializer
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.fork import ForkGuard
from kclient.utils.time import SYSTEM_TIME, Time

if TYPE_CHECKING:
    from kclient.producer.internals.transactions.manager import TransactionManager


@attrs.frozen(eq=False)
class ProducerCore:
    """All of a producer but its public face. The I/O thread holds on to this, never to the face."""

    config: ProducerConfig
    client: KafkaClient
    metadata: ProducerMetadata
    accumulator: RecordAccumulator
    idempotence: IdempotenceManager | None
    transactions: TransactionManager | None
    sender: Sender
    io_thread: IoThread
    metrics: ProducerMetrics
    telemetry: ClientTelemetry
    interceptors: ProducerInterceptors
    partitioner: Partitioner | None
    key_serializer: AdaptedSerializer
    value_serializer: AdaptedSerializer
    guard: ForkGuard
    time: Time


def build_producer(
    config: ProducerConfig, *, time: Time = SYSTEM_TIME, client: KafkaClient | None = None, start: bool = True
) -> ProducerCore:
    """The producer that `config` describes, with its I/O thread started.

    Tests give a client of their own, and take the sender's rounds by themselves. Raises ConfigError for objects that
    are not what their setting needs, BootstrapError if no bootstrap server can be resolved.
    """
    # What can be refused is made before anything that would have to be closed again.
    partitioner = make_partitioner(config.partitioner_class)
    key_serializer = as_serializer(config.key_serializer, "key")
    value_serializer = as_serializer(config.value_serializer, "value")
    made_interceptors = make_interceptors(config.interceptor_classes)
    log_context = config.log_context()
    interceptors = ProducerInterceptors(made_interceptors, log_context)
    backoff = ExponentialBackoff(config.retry_backoff_ms, config.retry_backoff_max_ms)

    metrics = ProducerMetrics(config, time)
    labels = {} if config.transactional_id is None else {"transactional_id": config.transactional_id}
    telemetry = ClientTelemetry(metrics.collect, lambda: labels, enabled=config.enable_metrics_push)
    metadata = ProducerMetadata(config, time)
    if client is None:
        client = build_network_client(
            config,
            metadata=metadata,
            max_in_flight=config.max_in_flight_requests_per_connection,
            metrics=metrics.network,
            telemetry=telemetry,
            time=time,
        )
    wakeup = SenderWakeup(client.wakeup)
    availability = NodeAvailability(config.partitioner_availability_timeout_ms)
    queued = QueuedBatches(
        pool=BufferPool(config.buffer_memory, metrics.buffer_wait, wakeup.wake),
        compressor=Compressor.from_config(config),
        batch_size=config.batch_size,
        log_prefix=log_context.prefix,
    )
    accumulator = RecordAccumulator(
        config=config,
        queued=queued,
        metadata=metadata,
        availability=availability,
        wakeup=wakeup,
        key_serializer=key_serializer,
        value_serializer=value_serializer,
        time=time,
    )
    idempotence = (
        IdempotenceManager(
            backoff, metadata.topic_id, log_context, transactional=config.transactional_id is not None
        )
        if config.enable_idempotence
        else None
    )
    requests = transactions = None
    if config.transactional_id is not None:
        assert idempotence is not None
        # Here, as most producers have none.
        from kclient.producer.internals.transactions.assembly import build_transactions

        requests = RequestSender(client, config.request_timeout_ms)
        transactions = build_transactions(
            config,
            transactional_id=config.transactional_id,
            requests=requests,
            idempotence=idempotence,
            queued=queued,
            metadata=metadata,
            backoff=backoff,
            wake=wakeup.wake,
            time=time,
        )
    responses = ProduceResponseHandler(
        config=config,
        queued=queued,
        metadata=metadata,
        client=client,
        idempotence=idempotence,
        transactions=transactions,
        metrics=metrics,
        backoff=backoff,
    )
    drainer = Drainer(
        config=config,
        queued=queued,
        metadata=metadata,
        idempotence=idempotence,
        transactions=transactions,
        on_unsendable=responses.fail,
    )
    sender = Sender(
        config=config,
        client=client,
        metadata=metadata,
        accumulator=accumulator,
        drainer=drainer,
        responses=responses,
        idempotence=idempotence,
        transactions=transactions,
        requests=requests,
        availability=availability,
        wakeup=wakeup,
        metrics=metrics,
        time=time,
    )
    guard = ForkGuard("This KafkaProducer")
    metrics.watch(queued.pool, client, metadata)
    io_thread = IoThread(config, sender, queued, responses)
    if start:
        io_thread.start()
    return ProducerCore(
        config=config,
        client=client,
        metadata=metadata,
        accumulator=accumulator,
        idempotence=idempotence,
        transactions=transactions,
        sender=sender,
        io_thread=io_thread,
        metrics=metrics,
        telemetry=telemetry,
        interceptors=interceptors,
        partitioner=partitioner,
        key_serializer=key_serializer,
        value_serializer=value_serializer,
        guard=guard,
        time=time,
    )
