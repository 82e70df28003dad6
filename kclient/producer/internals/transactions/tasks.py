"""The tasks of a transaction: generators that ask coordinators until there is an outcome."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import attrs

from kclient.client.coordinators import CoordinatorKey, CoordinatorType
from kclient.client.request_sender import Reply
from kclient.common.offsets import ConsumerGroupMetadata, OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import ErrorCode, Errors, KafkaError, ProducerFencedError, SchemaError
from kclient.producer.internals.idempotence.sequences import ProducerIdAndEpoch
from kclient.producer.internals.transactions.coordinator_calls import Ask, CoordinatorCalls, Delay, Task
from kclient.producer.internals.transactions.outcomes import Outcome, outcome_of, outcome_without_answer
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kclient.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from kclient.protocol.messages.end_txn import EndTxnRequest
from kclient.protocol.messages.init_producer_id import InitProducerIdRequest
from kclient.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.log_context import LogContext, Logger

# From here on the broker makes partitions and groups part of a transaction by itself (KIP-890).
_END_TXN_V2 = 5
_TXN_OFFSET_COMMIT_V2 = 5
_TXN_OFFSET_COMMIT_BY_ID = 6
# Later versions are for brokers among themselves.
_ADD_PARTITIONS_OF_CLIENTS = 3
# A producer says which id it has, so that one that was fenced does not fence others (KIP-360).
_INIT_WITH_IDENTITY = 3
# The transaction before may take a moment to end; to wait for the usual backoff would be most of a short one.
_CONCURRENT_BACKOFF_MS = 20


class AbortableFailure(Exception):  # noqa: N818
    """The transaction can only be aborted, because of `error`."""

    def __init__(self, error: KafkaError) -> None:
        super().__init__(error)
        self.error = error


class FatalFailure(Exception):  # noqa: N818
    """The producer has to be closed, because of `error`."""

    def __init__(self, error: KafkaError) -> None:
        super().__init__(error)
        self.error = error


@attrs.define(kw_only=True, eq=False, repr=False)
class TransactionTasks:
    """Makes the tasks of one transactional id. Belongs to the I/O thread.

    All of them raise AbortableFailure and FatalFailure, and repeat what passes for as long as somebody polls them.
    """

    _transactional_id: str
    _timeout_ms: int
    _coordinators: CoordinatorCalls
    _backoff: ExponentialBackoff
    _topic_id: Callable[[str], Uuid | None]
    _log_context: LogContext
    _log: Logger = attrs.field(init=False)
    _key: CoordinatorKey = attrs.field(init=False)
    in_doubt: bool = attrs.field(default=False, init=False)
    """True if a request had no answer since somebody set this to False."""

    def __attrs_post_init__(self) -> None:
        self._log = self._log_context.logger(__name__)
        self._key = CoordinatorKey(CoordinatorType.TRANSACTION, self._transactional_id)

    def init_producer_id(self, identity: ProducerIdAndEpoch) -> Task:
        """Return the identity for what comes next; with an `identity` that is valid, the same with the next epoch."""
        request = InitProducerIdRequest(
            transactional_id=self._transactional_id, transaction_timeout_ms=self._timeout_ms
        )
        if identity.is_valid:
            request.producer_id, request.producer_epoch = identity.producer_id, identity.epoch
        reply: Reply = yield from self._until_done(
            Ask(
                self._key,
                ApiKeys.INIT_PRODUCER_ID,
                lambda _: request,
                min_version=_INIT_WITH_IDENTITY if identity.is_valid else None,
            ),
        )
        return ProducerIdAndEpoch(reply.message.producer_id, reply.message.producer_epoch)

    def add_partitions(
        self,
        identity: ProducerIdAndEpoch,
        partitions: Collection[TopicPartition],
        *,
        is_first: bool,
    ) -> Task:
        """Make `partitions` part of the transaction."""
        topics: dict[str, AddPartitionsToTxnTopic] = {}
        for tp in partitions:
            topics.setdefault(
                tp.topic, AddPartitionsToTxnTopic(name=tp.topic, partitions=[])
            ).partitions.append(tp.partition)
        request = AddPartitionsToTxnRequest(
            transactions=[],
            v3_and_below_transactional_id=self._transactional_id,
            v3_and_below_producer_id=identity.producer_id,
            v3_and_below_producer_epoch=identity.epoch,
            v3_and_below_topics=list(topics.values()),
        )
        yield from self._until_done(
            Ask(
                self._key,
                ApiKeys.ADD_PARTITIONS_TO_TXN,
                lambda _: request,
                max_version=_ADD_PARTITIONS_OF_CLIENTS,
            ),
            lambda message: {
                TopicPartition(topic.name, result.partition_index): result.partition_error_code
                for topic in message.results_by_topic_v3_and_below
                for result in topic.results_by_partition
            },
            expected=partitions,
            is_first=is_first,
        )

    def add_offsets(self, identity: ProducerIdAndEpoch, group_id: str, *, is_first: bool) -> Task:
        """Make the offsets of a group part of the transaction."""
        request = AddOffsetsToTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            group_id=group_id,
        )
        yield from self._until_done(
            Ask(self._key, ApiKeys.ADD_OFFSETS_TO_TXN, lambda _: request), is_first=is_first
        )

    def commit_offsets(
        self,
        identity: ProducerIdAndEpoch,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group: ConsumerGroupMetadata,
        *,
        implicit: bool,
    ) -> Task:
        """Store the offsets at the group's coordinator; `implicit` if the group is no part of the transaction yet."""
        ids = {tp.topic: self._topic_id(tp.topic) for tp in offsets}
        names = {topic_id: topic for topic, topic_id in ids.items()}
        by_id = None not in names

        def build(version: int) -> TxnOffsetCommitRequest:
            topics: dict[str, TxnOffsetCommitRequestTopic] = {}
            for tp, offset in offsets.items():
                topic = topics.get(tp.topic)
                if topic is None:
                    topic = topics[tp.topic] = TxnOffsetCommitRequestTopic(partitions=[])
                    topic_id = ids[tp.topic]
                    if version >= _TXN_OFFSET_COMMIT_BY_ID and topic_id is not None:
                        topic.topic_id = topic_id
                    else:
                        topic.name = tp.topic
                topic.partitions.append(
                    TxnOffsetCommitRequestPartition(
                        partition_index=tp.partition,
                        committed_offset=offset.offset,
                        committed_leader_epoch=-1 if offset.leader_epoch is None else offset.leader_epoch,
                        committed_metadata=offset.metadata,
                    )
                )
            return TxnOffsetCommitRequest(
                transactional_id=self._transactional_id,
                group_id=group.group_id,
                producer_id=identity.producer_id,
                producer_epoch=identity.epoch,
                generation_id_or_member_epoch=group.generation_id,
                member_id=group.member_id,
                group_instance_id=group.group_instance_id,
                topics=list(topics.values()),
            )

        if implicit:
            min_version, max_version = _TXN_OFFSET_COMMIT_V2, None if by_id else _TXN_OFFSET_COMMIT_BY_ID - 1
        else:
            min_version, max_version = None, _TXN_OFFSET_COMMIT_V2 - 1
        yield from self._until_done(
            Ask(
                CoordinatorKey(CoordinatorType.GROUP, group.group_id),
                ApiKeys.TXN_OFFSET_COMMIT,
                build,
                min_version,
                max_version,
            ),
            lambda message: {
                TopicPartition(topic.name or names.get(topic.topic_id, ""), partition.partition_index): (
                    partition.error_code
                )
                for topic in message.topics
                for partition in topic.partitions
            },
            expected=offsets,
        )

    def end(self, identity: ProducerIdAndEpoch, *, committed: bool, bumps: bool) -> Task:
        """Commit or abort; returns the identity for what comes next, which is another one if the broker `bumps` it."""
        request = EndTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=identity.producer_id,
            producer_epoch=identity.epoch,
            committed=committed,
        )
        reply: Reply = yield from self._until_done(
            Ask(
                self._key,
                ApiKeys.END_TXN,
                lambda _: request,
                min_version=_END_TXN_V2 if bumps else None,
                max_version=None if bumps else _END_TXN_V2 - 1,
            ),
        )
        if not bumps or reply.message.producer_id < 0:
            return identity
        return ProducerIdAndEpoch(reply.message.producer_id, reply.message.producer_epoch)

    def _until_done(
        self,
        ask: Ask,
        codes_of: Callable[[Any], Mapping[TopicPartition, int]] | None = None,
        *,
        expected: Collection[TopicPartition] = (),
        is_first: bool = False,
    ) -> Task:
        """Ask until there is an outcome; `codes_of` finds the codes of an answer that has one for each partition."""
        attempts = 0
        while True:
            reply: Reply = yield ask
            if reply.error is not None:
                outcome, error = outcome_without_answer(reply.error), reply.error
                self.in_doubt = self.in_doubt or outcome is Outcome.REFIND
            else:
                codes: list[tuple[TopicPartition | None, int]]
                if codes_of is None:
                    codes = [(None, reply.message.error_code)]
                else:
                    found = codes_of(reply.message)
                    codes = [(tp, found.get(tp, ErrorCode.UNKNOWN_SERVER_ERROR)) for tp in expected]
                outcome, error = self._worst(ask, codes)
            if outcome is Outcome.DONE:
                return reply
            if outcome in {Outcome.FATAL, Outcome.FENCED}:
                raise FatalFailure(error)
            if outcome is Outcome.ABORTABLE:
                raise AbortableFailure(error)
            if outcome is Outcome.REFIND:
                self._coordinators.mark_unknown(ask.key, str(error))
            self._log.debug("%s is asked again: %s", ask.api_key.name, error)
            if is_first and error.code == ErrorCode.CONCURRENT_TRANSACTIONS:
                yield Delay(min(_CONCURRENT_BACKOFF_MS, self._backoff.initial_ms))
            else:
                yield Delay(self._backoff.backoff_ms(attempts))
            attempts += 1

    def _worst(self, ask: Ask, codes: list[tuple[TopicPartition | None, int]]) -> tuple[Outcome, KafkaError]:
        """Return what all codes together lead to, and the error to tell."""
        outcome, tp, code = max(
            ((outcome_of(ask.api_key, code), tp, code) for tp, code in codes),
            key=lambda found: _GRAVITY.index(found[0]),
        )
        return outcome, self._error(outcome, ask, tp, code)

    def _error(self, outcome: Outcome, ask: Ask, tp: TopicPartition | None, code: int) -> KafkaError:
        if outcome is Outcome.FENCED:
            return ProducerFencedError(
                f"Another producer has begun with transactional.id={self._transactional_id} since: this one has to be "
                "closed. Is the id used twice, or was a transaction open for longer than transaction.timeout.ms?"
            )
        error = Errors.for_code(code) or SchemaError("no error")
        of = str(ask.key) if tp is None else f"{tp} in {ask.key}"
        return error.reworded(f"{ask.api_key.name} of {of}: {error}")


_GRAVITY = (Outcome.DONE, Outcome.AGAIN, Outcome.REFIND, Outcome.ABORTABLE, Outcome.FATAL, Outcome.FENCED)
