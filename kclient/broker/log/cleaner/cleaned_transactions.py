"""CleanedTransactions: the transactions that a walk through a log is in the middle of."""

from __future__ import annotations

import heapq
from collections.abc import Iterable

import attrs

from kclient.broker.log.transaction_index import AbortedTxn, TransactionIndex
from kclient.record.batch import RecordBatch
from kclient.record.control import ControlRecordType, parse_type


@attrs.define
class _Aborted:
    txn: AbortedTxn
    has_data: bool = False


@attrs.define(eq=False)
class CleanedTransactions:
    """Says of each batch, in the order of the log, what its transaction means for it. Belongs to one thread.

    Data of aborted transactions can go at once. A marker has to stay as long as anything is left of the data before
    it, for without it readers take the data for open, or the next transaction of the producer for aborted.
    """

    index: TransactionIndex | None = attrs.field(default=None)
    """Takes the aborted transactions whose markers stay for the sake of data."""
    _aborted: list[tuple[int, int, AbortedTxn]] = attrs.field(
        factory=list, init=False
    )  # a heap, by first offset
    _in_aborted: dict[int, _Aborted] = attrs.field(factory=dict, init=False)  # by producer id
    _in_committed: set[int] = attrs.field(factory=set, init=False)  # producer ids

    def add_aborted(self, transactions: Iterable[AbortedTxn]) -> None:
        """Note aborted transactions with data in the next segment; those of former segments may come again."""
        for txn in transactions:
            heapq.heappush(self._aborted, (txn.first_offset, txn.last_offset, txn))

    def on_data(self, batch: RecordBatch) -> bool:
        """Pass a data batch; return True if it is of an aborted transaction."""
        self._enter(batch.last_offset)
        if not batch.is_transactional:
            return False
        aborted = self._in_aborted.get(batch.producer_id)
        if aborted is None:
            self._in_committed.add(batch.producer_id)
            return False
        aborted.has_data = True
        return True

    def on_control(self, batch: RecordBatch) -> bool:
        """Pass a control batch; return True if it is a marker before which there was no data. Raises OSError, and
        InvalidRecordError for what is no control record.
        """
        self._enter(batch.last_offset)
        record = next(batch.records(), None)
        if record is None:
            return True  # emptied by an earlier round
        kind = parse_type(record.key)
        if kind is ControlRecordType.ABORT:
            aborted = self._in_aborted.pop(batch.producer_id, None)
            if aborted is None or not aborted.has_data:
                return True
            if self.index is not None:
                self.index.append(aborted.txn)
            return False
        if kind is ControlRecordType.COMMIT:
            if batch.producer_id not in self._in_committed:
                return True
            self._in_committed.remove(batch.producer_id)
        return False

    def _enter(self, offset: int) -> None:
        """Begin the aborted transactions up to `offset`."""
        while self._aborted and self._aborted[0][0] <= offset:
            txn = heapq.heappop(self._aborted)[2]
            self._in_aborted.setdefault(txn.producer_id, _Aborted(txn))
