"""Puts the transactions of a producer together."""

from __future__ import annotations

from collections.abc import Callable

from kclient.client.request_sender import RequestSender
from kclient.producer.config import ProducerConfig
from kclient.producer.internals.idempotence.manager import IdempotenceManager
from kclient.producer.internals.metadata import ProducerMetadata
from kclient.producer.internals.queued_batches import QueuedBatches
from kclient.producer.internals.transactions.application_calls import ApplicationCalls
from kclient.producer.internals.transactions.coordinator_calls import CoordinatorCalls
from kclient.producer.internals.transactions.manager import TransactionManager
from kclient.producer.internals.transactions.tasks import TransactionTasks
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.time import Time


def build_transactions(
    config: ProducerConfig,
    *,
    transactional_id: str,
    requests: RequestSender,
    idempotence: IdempotenceManager,
    queued: QueuedBatches,
    metadata: ProducerMetadata,
    backoff: ExponentialBackoff,
    wake: Callable[[], None],
    time: Time,
) -> TransactionManager:
    """The transactions of `transactional_id`, whose requests go out with `requests`."""
    log_context = config.log_context()
    coordinators = CoordinatorCalls(requests, backoff, log_context)

    def learn_topic(topic: str) -> None:
        metadata.add_topic(topic, time.monotonic_ms())

    return TransactionManager(
        transactional_id=transactional_id,
        idempotence=idempotence,
        queued=queued,
        calls=ApplicationCalls(
            transactional_id=transactional_id,
            max_block_ms=config.max_block_ms,
            last_error=lambda: coordinators.last_error,
            wake=wake,
            time=time,
        ),
        coordinators=coordinators,
        tasks=TransactionTasks(
            transactional_id=transactional_id,
            timeout_ms=config.transaction_timeout_ms,
            coordinators=coordinators,
            backoff=backoff,
            topic_id=metadata.topic_id,
            log_context=log_context,
        ),
        finalized_level=requests.client.finalized_level,
        learn_topic=learn_topic,
        log_context=log_context,
    )
