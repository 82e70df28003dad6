"""The transactions that a Kafka left open in logs that this broker has now, and their end.

There is no transaction coordinator here, so nobody else would ever end them: consumers of committed records would wait
before them for ever. A transaction is committed if its coordinator had decided so and written that down; the markers
that are missing then are all that is. Any other one is aborted, as its coordinator would have done after its timeout.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from kclient.broker.log.producer_state import AppendOrigin, ProducerStateEntry
from kclient.broker.replica.partition import Partition
from kclient.broker.replica.replica_manager import ReplicaManager
from kclient.broker.transaction.transaction_log import LoggedTransaction, read_transactions
from kclient.common.topic_partition import TopicPartition
from kclient.errors import KafkaError
from kclient.record.control import ControlRecordType, EndTransactionMarker
from kclient.utils.log_context import LogContext
from kclient.utils.time import Time

_LEADER_ALONE = 1


@attrs.frozen
class EndedTransactions:
    """The partitions whose open transactions were ended, by the outcome. Immutable."""

    committed: Sequence[str] = ()
    aborted: Sequence[str] = ()
    failed: Sequence[str] = ()
    """Those to which no marker could be written."""


def end_open_transactions(
    replicas: ReplicaManager, transaction_log: Iterable[TopicPartition], time: Time, log_context: LogContext
) -> EndedTransactions:
    """Write the markers of all transactions that are open. `transaction_log` is the coordinators' log, all of it.

    What fails is left as it is, and tried again by the next start. To be called before anybody reads the logs.
    """
    log = log_context.logger(__name__)
    partitions = sorted(replicas.partitions(), key=lambda partition: partition.tp)
    found = [(one, state) for one in partitions for state in one.log.open_transactions()]
    if not found:
        return EndedTransactions()
    known: dict[int, LoggedTransaction] = {}
    try:
        known = read_transactions(map(replicas.partition, transaction_log))
    except KafkaError as error:
        # One of them may have been decided, and the rest of it is committed already.
        log.error("The log of transactions cannot be read, so those that are open stay so: %s", error)
        return EndedTransactions(failed=_names(found))
    outcomes: dict[ControlRecordType, list[tuple[Partition, ProducerStateEntry]]] = {}
    failed = []
    for partition, state in found:
        kind, marker = _marker(partition, state, known.get(state.producer_id), time.wall_ms())
        try:
            partition.append(marker, AppendOrigin.COORDINATOR, _LEADER_ALONE)
        except KafkaError as error:
            log.error("A transaction in %s stays open: %s", partition.tp, error)
            failed.append((partition, state))
            continue
        log.warning(
            "%s: the transaction of producer %d, open since offset %d, has ended with %s",
            partition.tp, state.producer_id, state.current_txn_first_offset, kind.name,
        )  # fmt: skip
        outcomes.setdefault(kind, []).append((partition, state))
    return EndedTransactions(
        committed=_names(outcomes.get(ControlRecordType.COMMIT, [])),
        aborted=_names(outcomes.get(ControlRecordType.ABORT, [])),
        failed=_names(failed),
    )


def _marker(
    partition: Partition, state: ProducerStateEntry, known: LoggedTransaction | None, now_ms: int
) -> tuple[ControlRecordType, bytes]:
    commits = known is not None and known.is_decided_to_commit(partition.tp)
    kind = ControlRecordType.COMMIT if commits else ControlRecordType.ABORT
    # An epoch that the coordinator gave out meanwhile is the marker's, or what the producer wrote before would follow.
    epoch = max(state.producer_epoch, -1 if known is None else known.producer_epoch)
    marker = EndTransactionMarker(kind, max(state.coordinator_epoch, 0))
    return kind, marker.batch(0, now_ms, partition.leader_epoch, state.producer_id, epoch)


def _names(found: Sequence[tuple[Partition, ProducerStateEntry]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(partition.tp) for partition, _ in found))
