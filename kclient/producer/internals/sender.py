"""Sender: the I/O thread's work, from full batches to answered requests."""

from __future__ import annotations

import functools
import threading
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING

import attrs

from kclient._accel import belongs_to_caller
from kclient.client.kafka_client import KafkaClient
from kclient.client.request_sender import RequestSender
from kclient.common.cluster import Cluster
from kclient.common.topic_partition import TopicPartition
from kclient.errors import ClientClosedError, KafkaError
from kclient.producer.config import ProducerConfig
from kclient.producer.internals.accumulator import RecordAccumulator
from kclient.producer.internals.drain import Drainer
from kclient.producer.internals.idempotence.manager import IdempotenceManager
from kclient.producer.internals.idempotence.state import State
from kclient.producer.internals.metadata import ProducerMetadata
from kclient.producer.internals.metrics import ProducerMetrics
from kclient.producer.internals.produce_request import ProduceRequestPlan, Transaction
from kclient.producer.internals.produce_response import ProduceResponseHandler
from kclient.producer.internals.producer_batch import ProducerBatch
from kclient.producer.internals.queued_batches import QueuedBatches
from kclient.producer.internals.sticky import NodeAvailability
from kclient.producer.internals.wakeup import SenderWakeup
from kclient.protocol.api_keys import ApiKeys
from kclient.utils.log_context import Logger
from kclient.utils.text import counted
from kclient.utils.time import Time

if TYPE_CHECKING:
    from kclient.producer.internals.transactions.manager import TransactionManager

# A poll need not last longer: whatever happens ends it.
_MAX_POLL_MS = 300_000
# Of the partitions whose records are given up.
_MOST_NAMED = 10
_NOBODY: frozenset[int] = frozenset()


@attrs.define(kw_only=True, eq=False, repr=False)
class Sender:
    """Sends what the accumulator holds. `run` is the body of the I/O thread.

    `initiate_close` and `force_close` may be called by any thread, the rest belongs to that thread. It knows nothing
    of the producer that uses it, so a producer that nobody holds any more can be collected.
    """

    _client: KafkaClient
    _metadata: ProducerMetadata
    _accumulator: RecordAccumulator
    _drainer: Drainer
    _responses: ProduceResponseHandler
    _idempotence: IdempotenceManager | None
    _transactions: TransactionManager | None
    _requests: RequestSender | None
    _availability: NodeAvailability
    _wakeup: SenderWakeup
    _metrics: ProducerMetrics
    _config: ProducerConfig
    _time: Time
    _acks: int = attrs.field(init=False)
    _poller: KafkaClient | RequestSender = attrs.field(init=False)
    _queued: QueuedBatches = attrs.field(init=False)
    _log: Logger = attrs.field(init=False)
    # Two flags that are only ever set, so that no order of closing calls can undo one.
    closing: bool = attrs.field(default=False, init=False)
    """True if the end was asked for; to be read, changed by the methods."""
    _aborting: bool = attrs.field(default=False, init=False)
    _reporting: bool = attrs.field(default=True, init=False)
    _cluster: Cluster | None = attrs.field(default=None, init=False)
    _told_refusal: KafkaError | None = attrs.field(default=None, init=False)

    def __attrs_post_init__(self) -> None:
        self._acks = self._config.required_acks
        self._queued = self._accumulator.queued
        self._poller = self._client if self._requests is None else self._requests
        self._log = self._config.log_context().logger(__name__)

    def run(self) -> None:
        """Work until closed and everything sent, or aborted."""
        self._log.debug("The I/O thread starts")
        self._accumulator.io_thread_id = threading.get_ident()
        reason = "The producer was closed before the record was delivered."
        try:
            while not self._aborting and not (self.closing and self._finished()):
                self._guarded_run_once()
        except BaseException as error:
            reason = f"The producer's I/O thread died before the record was delivered: {error!r}"
            raise
        finally:
            # Whatever ended the loop: nobody may be left waiting for a future.
            with ExitStack() as steps:
                steps.callback(self._client.close)
                steps.callback(self._metadata.close)
                steps.callback(self._abort, ClientClosedError(reason))
                if self._transactions is not None:
                    steps.callback(self._transactions.close, ClientClosedError("The producer was closed."))
                steps.callback(self._accumulator.close)
            self._log.debug("The I/O thread ends")

    def _finished(self) -> bool:
        # First no more records, then the look at whether there are any.
        self._accumulator.close()
        if self._transactions is not None:
            self._transactions.abort_open()
            if not self._transactions.at_rest:
                return False
        return not self._queued.incomplete

    def _guarded_run_once(self) -> None:
        try:
            self.run_once()
        except BaseException as error:
            # A fault in one round must not end the thread, on which all senders rely; nor may it turn without pause.
            self._log.exception("The I/O thread met an unexpected error and goes on")
            if belongs_to_caller(error):
                raise
            self._time.sleep_ms(self._config.retry_backoff_ms)

    def initiate_close(self) -> None:
        """Take no more records, send what is there, then end. Takes no lock: a finalizer may call it anywhere."""
        self.closing = True
        self._client.wakeup()

    def force_close(self, *, report: bool = True) -> None:
        """End now; records that are not delivered fail, and the log says so unless the caller does."""
        self._reporting = report
        self.closing = self._aborting = True
        self._client.wakeup()

    def run_once(self) -> None:
        """One round: look, send, poll."""
        now_ms = self._time.monotonic_ms()
        self._wakeup.announce()
        timeout_ms = self._responses.expire(now_ms)
        if self._idempotence is not None and not self._idempotence.at_rest:
            self._responses.fail_hopeless(now_ms)
            self._idempotence.restart_where_needed()
            timeout_ms = min(timeout_ms, self._look_after_producer_id(now_ms))
        transactions = self._transactions
        if transactions is not None:
            refusal = transactions.refuses_queued
            if refusal is not None:
                for batch in self._queued_batches():
                    self._responses.fail_because(batch, refusal)
        wait_ms, saturated = self._send_producer_data(now_ms)
        if transactions is not None:
            wait_ms = min(wait_ms, transactions.poll(now_ms))
        timeout_ms = min(timeout_ms, wait_ms, _MAX_POLL_MS)
        if timeout_ms > 0:
            self._wakeup.sleep(now_ms + timeout_ms, saturated)
        try:
            # Without acks a request is answered by being written.
            self._poller.poll(timeout_ms, now_ms, return_after_send=self._acks == 0)
        finally:
            self._wakeup.awake()

    def _look_after_producer_id(self, now_ms: int) -> int:
        """Ask for an id if one is needed; returns after how many ms to look again."""
        idempotence = self._idempotence
        assert idempotence is not None
        if idempotence.refusal is not None and idempotence.refusal is not self._told_refusal:
            self._told_refusal = idempotence.refusal
            # What has a sequence was sent before, under an id that is used up: it waits, as its fate may be unknown.
            for batch in self._queued_batches():
                if not batch.has_sequence:
                    self._responses.fail(batch, idempotence.refusal)
        retry_ms = None
        # With transactions it comes from their coordinator.
        if self._transactions is None and (idempotence.refusal is None or self._queued.incomplete):
            retry_ms = idempotence.maybe_send_init_producer_id(self._client, now_ms)
        if idempotence.state is State.FATAL_ERROR:
            assert idempotence.fatal_error is not None
            for batch in self._queued_batches():
                self._responses.fail_because(batch, idempotence.fatal_error)
        return _MAX_POLL_MS if retry_ms is None else retry_ms

    def _queued_batches(self) -> list[ProducerBatch]:
        return [batch for queue in self._queued.active_queues() for batch in queue.batches]

    def _abort(self, error: KafkaError) -> None:
        left = self._queued.incomplete.snapshot()
        for batch in left:
            try:
                self._responses.end(batch, error)
            except BaseException:
                self._log.exception("A batch for %s could not be given up", batch.tp)
                batch.queue.open = None
                batch.builder.result.complete(-1, -1, error)
                self._queued.incomplete.remove(batch)
        if self._reporting:
            self._report_given_up(left)

    def _report_given_up(self, batches: list[ProducerBatch]) -> None:
        counts: Counter[TopicPartition] = Counter()
        for batch in batches:
            counts[batch.tp] += batch.builder.count
        if counts:
            named = ", ".join(f"{count} of {tp}" for tp, count in counts.most_common(_MOST_NAMED))
            more = len(counts) - _MOST_NAMED
            self._log.warning(
                "At its end the producer has given up %s: %s%s",
                counted(counts.total(), "record"),
                named,
                f" and of {more} other partitions" if more > 0 else "",
            )

    def _send_producer_data(self, now_ms: int) -> tuple[int, frozenset[int]]:
        """Send what is ready; returns for how long nothing else will be, and the brokers that take no more.

        A round goes through everything that the thread looks after, so no further one is taken for a producer that has
        nothing left to send.
        """
        cluster = self._metadata.fetch()
        if cluster is not self._cluster:
            self._cluster = cluster
            self._accumulator.update_partition_counts()
        check = self._drainer.ready(now_ms)
        if check.unknown_leader_topics:
            # The topic may have been deleted, or its leader is being elected: it is asked for, with a backoff.
            for topic in check.unknown_leader_topics:
                self._metadata.add_topic(topic, now_ms)
            self._metadata.request_update()
        wait_ms = check.next_check_ms
        if not check.nodes:
            return wait_ms, _NOBODY
        saturated = set()
        for node, queues in check.nodes.items():
            if not self._client.ready(node, now_ms):
                self._availability.stalled(node.id, now_ms)
                wait_ms = min(wait_ms, self._client.connections.poll_delay_ms(node.id, now_ms))
                if self._client.in_flight_count(node.id):
                    saturated.add(node.id)
                continue
            batches = self._drainer.drain(queues, now_ms)
            if batches:
                self._availability.progressed(node.id)
                self._send_request(node.id, batches, now_ms)
                if (
                    self._client.in_flight_count(node.id)
                    >= self._config.max_in_flight_requests_per_connection
                ):
                    saturated.add(node.id)
                for queue in queues:
                    if queue.batches:
                        wait_ms = 0
                        break
        return wait_ms, frozenset(saturated)

    def _transaction(self) -> Transaction | None:
        transactions = self._transactions
        if transactions is None:
            return None
        return Transaction(transactions.transactional_id, transactions.by_broker)

    def _send_request(self, node_id: int, batches: list[ProducerBatch], now_ms: int) -> None:
        plan = ProduceRequestPlan(
            batches,
            self._metadata.topic_id,
            acks=self._acks,
            timeout_ms=self._config.request_timeout_ms,
            codec=self._queued.compressor.codec,
            transaction=self._transaction(),
        )
        for topic in plan.topic_ids:
            self._metadata.add_topic(topic, now_ms)
        request = self._client.new_request(
            node_id,
            plan.build,
            api_key=ApiKeys.PRODUCE,
            expect_response=self._acks != 0,
            timeout_ms=self._config.request_timeout_ms,
            on_complete=functools.partial(self._responses.handle, plan),
            min_version=plan.min_version,
            max_version=plan.max_version,
        )
        self._metrics.request_sent(batches, now_ms)
        self._client.send(request, now_ms)
