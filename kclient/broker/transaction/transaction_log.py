"""The states of transactional ids, as a Kafka's transaction coordinators left them in `__transaction_state`."""

from __future__ import annotations

import enum
import logging
import struct
from collections.abc import Iterable

import attrs

from kclient.broker.replica.partition import Partition
from kclient.common.topic_partition import TopicPartition
from kclient.errors import KafkaError
from kclient.protocol.codec import decode
from kclient.protocol.messages.transaction_records import TransactionLogKey, TransactionLogValue

log = logging.getLogger(__name__)

_TYPE = struct.Struct(">h")
_KEY_TYPE = 0


class TransactionStatus(enum.IntEnum):
    """The states of a transaction in which its markers are still to be written, by their numbers in the log."""

    ONGOING = 1
    PREPARE_COMMIT = 2
    PREPARE_ABORT = 3


@attrs.frozen
class LoggedTransaction:
    """The last that is known of a transactional id. Immutable."""

    producer_id: int
    producer_epoch: int
    status: int
    partitions: frozenset[TopicPartition]

    def is_decided_to_commit(self, tp: TopicPartition) -> bool:
        """True if the transaction is committed for everybody, and only its marker in `tp` may be missing."""
        return self.status == TransactionStatus.PREPARE_COMMIT and tp in self.partitions


def read_transactions(partitions: Iterable[Partition]) -> dict[int, LoggedTransaction]:
    """Return what partitions of the log say, by producer id. Raises KafkaStorageError."""
    states: dict[str, LoggedTransaction] = {}
    for partition in partitions:
        for batch in partition.batches():
            if batch.is_control:
                continue
            for record in batch.records():
                try:
                    _replay(states, record.key, record.value)
                except (KafkaError, struct.error) as error:
                    # Of something newer, or damaged within a valid batch: the rest still is worth having.
                    log.warning("A record of %s cannot be read and is left out: %s", partition.tp, error)
    return {state.producer_id: state for state in states.values()}


def _replay(states: dict[str, LoggedTransaction], key: bytes | None, value: bytes | None) -> None:
    if key is None or _TYPE.unpack_from(key)[0] != _KEY_TYPE:
        return
    transactional_id = decode(TransactionLogKey, 0, key[_TYPE.size :]).transactional_id
    if value is None:
        states.pop(transactional_id, None)
        return
    said = decode(TransactionLogValue, _TYPE.unpack_from(value)[0], value[_TYPE.size :])
    states[transactional_id] = LoggedTransaction(
        said.producer_id,
        said.producer_epoch,
        said.transaction_status,
        frozenset(
            TopicPartition(part.topic, number)
            for part in said.transaction_partitions or ()
            for number in part.partition_ids
        ),
    )
