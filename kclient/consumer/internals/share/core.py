"""The application's side of a share consumer without its waiting."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs

from kclient._accel import yield_gil
from kclient.client.telemetry.client_telemetry import ClientTelemetry
from kclient.common.topic_id_partition import TopicIdPartition
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.acknowledge import AcknowledgementCommitCallback, AcknowledgeType
from kclient.consumer.internals.application_queue import ApplicationQueue
from kclient.consumer.internals.changes import Changes
from kclient.consumer.internals.metadata import ConsumerMetadata
from kclient.consumer.internals.network_thread import NetworkThread
from kclient.consumer.internals.requests import Request
from kclient.consumer.internals.share.acknowledgements import Acknowledgements, AcknowledgeRequest
from kclient.consumer.internals.share.acknowledger import Acknowledger
from kclient.consumer.internals.share.fetch_buffer import ShareFetchBuffer
from kclient.consumer.internals.share.fetcher import ShareFetcher
from kclient.consumer.internals.share.in_flight_batch import InFlightBatch
from kclient.consumer.internals.share.membership import ShareMembership
from kclient.consumer.internals.share.metrics import ShareMetrics
from kclient.consumer.internals.share.settled import Settled
from kclient.consumer.internals.subscription_state import SubscriptionState
from kclient.consumer.internals.wakeup import WakeupTrigger
from kclient.consumer.share_config import ShareConsumerConfig
from kclient.consumer.types import ConsumerRecord, ConsumerRecords
from kclient.errors import IllegalStateError, KafkaError
from kclient.utils.log_context import Logger
from kclient.utils.time import Time


@attrs.define(kw_only=True, eq=False, repr=False)
class ShareCore:
    """Polling and acknowledging as steps that never wait. Used by one thread at a time.

    What a broker has locked for this consumer is in one of three places: in the buffer, undecoded; in `_current`, whose
    batches know what the application has and what it said; or on its way back, as acknowledgements.
    """

    config: ShareConsumerConfig
    subscription: SubscriptionState
    metadata: ConsumerMetadata
    changes: Changes
    buffer: ShareFetchBuffer
    queue: ApplicationQueue
    settled: Settled
    membership: ShareMembership
    _fetcher: ShareFetcher
    _acknowledger: Acknowledger
    network: NetworkThread
    metrics: ShareMetrics
    telemetry: ClientTelemetry
    time: Time
    wakeup: WakeupTrigger = attrs.field(init=False)
    explicit: bool = attrs.field(init=False)
    """True if the application acknowledges every record by itself."""
    callback: AcknowledgementCommitCallback | None = attrs.field(default=None, init=False)
    lock_timeout_ms: int | None = attrs.field(default=None, init=False)
    """The time for which brokers lock records, as they said last."""
    undo_last: bool = attrs.field(default=False, init=False)
    """True if the application did not get what was handed out last."""
    _current: list[InFlightBatch] = attrs.field(factory=list, init=False)
    _failed: InFlightBatch | None = attrs.field(default=None, init=False)
    """A batch that could not be read, behind those in `_current`."""
    _handed_out: list[InFlightBatch] = attrs.field(factory=list, init=False)
    _given: tuple[InFlightBatch, int] | None = attrs.field(default=None, init=False)
    """The offset of the record that was given out last, one by one."""
    _acknowledged: InFlightBatch | None = attrs.field(default=None, init=False)
    """The batch of the record that was acknowledged last."""
    _fetch_asked: bool = attrs.field(default=False, init=False)
    _log: Logger = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        network = self.network
        self.explicit = self.config.share_acknowledgement_mode.lower() == "explicit"
        self.wakeup = WakeupTrigger(self.changes.notify, lambda deliver: network.submit(lambda _: deliver()))
        self._log = self.config.log_context().logger(__name__)

    # Subscribing.

    def subscribe(self, topics: Iterable[str]) -> None:
        """Subscribe to topics; takes effect with the next poll."""
        self.subscription.subscribe(topics)
        self.network.submit(self._subscription_changed)

    def _subscription_changed(self, now_ms: int) -> None:
        self.metadata.subscription_changed()
        self.membership.subscription_changed(now_ms)

    def unsubscribe(self, deadline_ms: int) -> Request[None]:
        """Forget the subscription, give back what the application did not get yet, and leave the group."""
        self.subscription.unsubscribe()  # first: without it the I/O thread does not join again
        given_back = self._give_back_buffered()
        request, membership = Request[None](deadline_ms), self.membership

        def leave(now_ms: int) -> None:
            self._fetcher.stop(deadline_ms)
            self._acknowledger.add(given_back, deadline_ms)
            membership.leave(request, now_ms)

        self.network.submit(leave, request)
        return request

    # Polling.

    def got_last(self) -> None:
        """The application has what was handed out before: from here on nothing takes it back."""
        self._handed_out.clear()
        self._given = None

    def begin_poll(self, now_ms: int) -> None:
        """Treat the records handed out before as processed, in implicit mode. Raises IllegalStateError in explicit mode
        if nothing was said of one.
        """
        yield_gil()
        self._fetch_asked = False
        if self.explicit:
            self._check_all_acknowledged()
        else:
            self.accept_all()
        self.alive(now_ms)

    def _check_all_acknowledged(self) -> None:
        if any(batch.unacknowledged for batch in self._current):
            raise IllegalStateError(
                "All records must be acknowledged before the next poll(), with share.acknowledgement.mode=explicit"
            )

    def alive(self, now_ms: int) -> None:
        """The application calls poll(), or waits inside it."""
        if self.membership.polled(now_ms):
            self.network.wakeup()

    def accept_all(self) -> None:
        """Accept what the application has, in implicit mode."""
        if not self.explicit:
            for batch in self._current:
                batch.accept_all()

    def next_records(self) -> ConsumerRecords[Any, Any] | None:
        """Up to max.poll.records records; None if there are none now, and then more are asked for.

        Raises what keeps the next ones from being read.
        """
        acknowledged = self._take_acknowledged()
        for batch in self._current:
            batch.bring_back_renewed()
        self._current = [batch for batch in self._current if not batch.done]
        records = self._hand_out() if self._current else None
        if self._current:
            # What is renewed comes first, and nothing new before that.
            self._send(acknowledged)
            return records
        error = self._refill()
        if error is not None:
            self._send(acknowledged)
            raise error
        records = self._hand_out()
        if records is not None:
            self._send(acknowledged)
            return records
        acknowledged += self._take_acknowledged()  # gaps
        self._current.clear()
        if not self._fetch_asked or acknowledged:
            self._fetch_asked = True
            deadline_ms = self._acknowledgement_deadline_ms()
            self.network.submit(lambda _: self._fetcher.fetch(acknowledged, deadline_ms))
        return None

    def _refill(self) -> KafkaError | None:
        """Decode what comes next, up to max.poll.records; or return the error that comes first."""
        if self._failed is not None:
            failed, self._failed = self._failed, None
            self._current.append(failed)
            return failed.error
        left = self.config.max_poll_records
        assigned = self.membership.assignment.partitions
        while left > 0:
            fetch = self.buffer.first()
            if fetch is None:
                break
            if fetch.partition in assigned:
                batch = fetch.next_batch(left)
            else:
                self._log.debug("Giving back records of %s, which is not assigned any more", fetch.partition)
                batch = fetch.give_back()
            if batch is None:
                self.buffer.remove(fetch)
            elif batch.error is None:
                self._current.append(batch)
                left -= len(batch.records)
                self.lock_timeout_ms = batch.lock_timeout_ms or self.lock_timeout_ms
            elif left < self.config.max_poll_records:
                self._failed = batch  # the next poll begins with the error
                break
            else:
                self._current.append(batch)
                return batch.error
        return None

    def _hand_out(self) -> ConsumerRecords[Any, Any] | None:
        left = self.config.max_poll_records
        handed_out: dict[TopicPartition, list[ConsumerRecord[Any, Any]]] = {}
        for batch in self._current:
            records = batch.hand_out(left)
            if not records:
                continue
            self._handed_out.append(batch)
            left -= len(records)
            tp = batch.partition.topic_partition
            handed_out[tp] = [*handed_out[tp], *records] if tp in handed_out else records
            if left <= 0:
                break
        if not handed_out:
            return None
        self.metrics.consumed(self.config.max_poll_records - left)
        return ConsumerRecords(handed_out)

    def next_waiting(self) -> ConsumerRecord[Any, Any] | None:
        """The next of the records that were decoded and not handed out; None if there is none."""
        for batch in self._current:
            for record in batch.hand_out(1):
                self._given = batch, record.offset
                return record
        return None

    def keep_waiting(self) -> None:
        """Have the records that were just handed out wait for `next_waiting`."""
        self.undo_last = True
        self.settle()

    def settle(self) -> None:
        """Take back what the application did not get; where an exception ended that, the next call goes on."""
        if self.undo_last:
            for batch in self._handed_out:
                batch.take_back()
            self._handed_out.clear()
            if self._given is not None:
                batch, offset = self._given
                batch.take_back_one(offset)
                self._given = None
            self.undo_last = False

    # Acknowledging.

    def acknowledge(self, topic: str, partition: int, offset: int, type_: AcknowledgeType) -> None:
        """Say what became of a record. Raises IllegalStateError if that is not for the application to say."""
        if not self.explicit:
            raise IllegalStateError(
                "acknowledge() needs share.acknowledgement.mode=explicit; records are accepted implicitly here"
            )
        for batch in self._current:
            of = batch.partition
            if of.partition == partition and of.topic == topic and batch.covers(offset):
                batch.acknowledge(offset, type_)
                self._acknowledged = batch
                return
        raise IllegalStateError(
            f"The record of {topic}-{partition} at offset {offset} cannot be acknowledged: it was not returned by the "
            "last poll(), or what was said of it is on its way already"
        )

    def acknowledge_next(self, record: object, type_: object) -> bool:
        """Say what became of a record of the batch in which the last one was; False if it is not that simple."""
        batch = self._acknowledged
        return batch is not None and batch.acknowledge_own(record, type_)

    def take_acknowledged(self) -> list[Acknowledgements]:
        """Return the acknowledgements that brokers were not told yet; they are on their way from now on."""
        taken = self._take_acknowledged()
        self._current = [batch for batch in self._current if not batch.done]
        return taken

    def _take_acknowledged(self) -> list[Acknowledgements]:
        self._acknowledged = None
        taken = [batch.take_acknowledged() for batch in self._current]
        return [each for each in taken if each is not None]

    def _send(self, acknowledged: list[Acknowledgements]) -> None:
        if acknowledged:
            deadline_ms = self._acknowledgement_deadline_ms()
            self.network.submit(lambda _: self._acknowledger.add(acknowledged, deadline_ms))

    def commit_in_background(self) -> None:
        """Tell the brokers what was said, without waiting for their answers."""
        self._send(self.take_acknowledged())

    def commit(self, acknowledged: list[Acknowledgements], deadline_ms: int) -> AcknowledgeRequest:
        """Tell the brokers; done when all have answered."""
        request = AcknowledgeRequest(deadline_ms, acknowledged)
        self.network.submit(lambda _: self._acknowledger.add(acknowledged, deadline_ms), request)
        return request

    def _acknowledgement_deadline_ms(self) -> int:
        return self.time.monotonic_ms() + self.config.default_api_timeout_ms

    def set_callback(self, callback: AcknowledgementCommitCallback | None) -> None:
        """Have `callback` called with outcomes from now on."""
        self.callback = callback
        self.settled.wanted = callback is not None

    def next_outcome(self) -> tuple[TopicIdPartition, frozenset[int], KafkaError | None] | None:
        """The next outcome that the callback is to hear of; renewed records come back meanwhile."""
        while (settled := self.settled.take()) is not None:
            if settled.renews:
                for batch in self._current:
                    batch.renewed(settled)
                if settled.lock_timeout_ms is not None:
                    self.lock_timeout_ms = settled.lock_timeout_ms
            if self.callback is not None:
                return settled.partition, settled.offsets(), settled.error
        return None

    # The end.

    def end_sessions(self, acknowledged: list[Acknowledgements], deadline_ms: int) -> Request[None]:
        """Tell the brokers the last, and end the sessions, which releases whatever they still hold."""
        request = Request[None](deadline_ms)

        def end(_: int) -> None:
            self._fetcher.stop(deadline_ms)
            self._acknowledger.add(acknowledged, deadline_ms)
            self._acknowledger.end_sessions(request)

        self.network.submit(end, request)
        return request

    def _give_back_buffered(self) -> list[Acknowledgements]:
        batches = [self._failed, *(fetch.give_back() for fetch in self.buffer.take_all())]
        self._failed = None
        taken = [batch.take_acknowledged() for batch in batches if batch is not None]
        taken += [batch.give_back_waiting() for batch in self._current]
        return [each for each in taken if each is not None]

    def describe(self, state: str) -> str:
        """Name the consumer, in the given state, with what it reads from where. For any thread."""
        config = self.config
        topics = ", ".join(sorted(self.subscription.subscription()))
        reads = f" subscribed to {topics}" if topics else ""
        servers = ", ".join(config.bootstrap_servers)
        return f"{config.client_id}{state} to {servers} in share group {config.group_id}{reads}"

    def close_parts(self) -> None:
        """Close the metadata and what the application gave, when the I/O thread has ended."""
        self.metadata.close()
        for part in (self.config.key_deserializer, self.config.value_deserializer):
            close = getattr(part, "close", None)
            if callable(close) and not isinstance(part, type):
                try:
                    close()
                except Exception:
                    self._log.exception("%r could not be closed", part)
