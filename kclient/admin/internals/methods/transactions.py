"""Methods for transactions and the producers that have them."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from kclient.admin import internals
from kclient.admin.internals import operations
from kclient.admin.internals.arguments import checked_partitions
from kclient.admin.internals.methods.base import AdminMethods
from kclient.common.topic_partition import TopicPartition

if TYPE_CHECKING:
    from kclient.admin.transactions import (
        AbortTransactionSpec,
        FencedProducer,
        PartitionProducerState,
        TransactionDescription,
        TransactionListing,
    )


class TransactionMethods(AdminMethods):
    """Transactions and their producers."""

    def list_transactions(
        self,
        *,
        states: Collection[str] = (),
        producer_ids: Collection[int] = (),
        duration_ms: int | None = None,
        transactional_id_pattern: str | None = None,
        timeout_ms: int | None = None,
    ) -> dict[str, TransactionListing]:
        """Every transactional id, of all brokers, narrowed by what is given (KIP-664).

        `states` are TransactionStates. `duration_ms` finds transactions that run for longer (KIP-994), and
        `transactional_id_pattern`, a regular expression of RE2J, ids that it matches as a whole (KIP-1152).
        """
        checks = internals.transaction_arguments
        filters = checks.checked_states(states), checks.checked_producer_ids(producer_ids)
        more = checks.checked_duration(duration_ms), checks.checked_pattern(transactional_id_pattern)
        operation = operations.transactions.list_transactions
        return self._run("Listing transactions", timeout_ms, operation, *filters, *more)

    def describe_transactions(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> dict[str, TransactionDescription]:
        """State, producer and partitions of transactions; TransactionalIdNotFoundError for an unknown id."""
        wanted = internals.transaction_arguments.checked_transactional_ids(transactional_ids)
        what = f"Describing transactions {', '.join(wanted)}"
        return self._run(what, timeout_ms, operations.transactions.describe_transactions, wanted)

    def describe_producers(
        self,
        partitions: Collection[TopicPartition],
        broker_id: int | None = None,
        *,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, PartitionProducerState]:
        """Producers that have written to partitions, as their leaders know them, or as broker `broker_id` does.

        Raises NotLeaderOrFollowerError for a partition of which `broker_id` has no replica.
        """
        wanted = checked_partitions(partitions)
        broker = internals.transaction_arguments.checked_broker(broker_id)
        operation = operations.transactions.describe_producers
        return self._run("Describing producers", timeout_ms, operation, wanted, broker)

    def abort_transaction(self, spec: AbortTransactionSpec, *, timeout_ms: int | None = None) -> None:
        """End a transaction on one partition that no coordinator will end, by an abort marker there.

        Not for a transaction that its coordinator knows: the records so far are lost, and the producer may still commit
        the others without noticing. `fence_producers` aborts such a one as a whole.

        Raises InvalidProducerEpochError and TransactionCoordinatorFencedError if the partition has seen newer epochs.
        An epoch that is too new is believed, and shuts the producer out.
        """
        wanted = internals.transaction_arguments.checked_spec(spec)
        what, operation = f"Aborting a transaction on {wanted}", operations.transactions.abort_transaction
        self._run(what, timeout_ms, operation, wanted)

    def fence_producers(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> dict[str, FencedProducer]:
        """Refuse the producers that have these transactional ids from now on, and abort what they have open."""
        wanted = internals.transaction_arguments.checked_transactional_ids(transactional_ids)
        what = f"Fencing the producers of {', '.join(wanted)}"
        return self._run(what, timeout_ms, operations.transactions.fence_producers, wanted)

    def force_terminate_transaction(self, transactional_id: str, *, timeout_ms: int | None = None) -> None:
        """Abort the transaction of one id, if it has one, and refuse its producer, as `fence_producers` (KIP-939)."""
        wanted = internals.transaction_arguments.checked_transactional_id(transactional_id)
        what = f"Terminating the transaction of {wanted}"
        self._run(what, timeout_ms, operations.transactions.fence_producers, [wanted])
