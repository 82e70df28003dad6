"""Rules for transactions: all of one or nothing, and nothing before its commit."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import accumulate

from harness.checker.history import Anomaly, Evidence, Observation, Place, Poll, Read, Send, Transaction
from harness.checker.index import Index, Stretch, is_certain, last_read

Proofs = dict[Transaction, Read | Observation]
"""Transactions that took effect, whatever their producers were told, with the first thing that shows it."""


def check_transactions(index: Index, proofs: Mapping[Transaction, Observation]) -> Iterator[Anomaly]:
    """Find what is wrong with transactions. `proofs` are those whose offsets were seen to be committed.

    - aborted read: a reader of committed records was handed one of a transaction that was aborted;
    - precommitted read: or one whose commit had not been called yet, or never was;
    - torn transaction: some of a transaction took effect, and of the rest something is missing.
    """
    known: Proofs = dict(proofs)
    for poll in index.polls():
        if index.history.client(poll.process).read_committed:
            yield from _check_poll(index, poll, known)
    parts: defaultdict[Transaction, list[Send]] = defaultdict(list)
    for send in index.history.sends:
        if send.transaction is not None:
            parts[send.transaction].append(send)
    ways = Ways(index)
    for transaction, sends in parts.items():
        if transaction.outcome == "ok" or transaction in known:
            yield from _check_whole(index, ways, transaction, sends, known.get(transaction))


def _check_poll(index: Index, poll: Poll, proofs: Proofs) -> Iterator[Anomaly]:
    for place, records in poll.records.items():
        if place.home not in index.transactional:
            continue
        sends = index.sends.get(place.home, {})
        for offset, value in records:
            send = sends.get(value)
            if send is None or send.transaction is None or send.outcome == "fail":
                continue
            transaction = send.transaction
            if transaction.outcome == "fail":
                kind, what = "aborted read", "a record of an aborted transaction"
            elif transaction.commit_started is None or poll.at < transaction.commit_started:
                kind, what = "precommitted read", "a record whose transaction nobody had asked to commit"
            else:
                if transaction not in proofs or poll.at < _time(proofs[transaction]):
                    proofs[transaction] = Read(poll.process, poll.at, place, offset, value)
                continue
            read = Read(poll.process, poll.at, place, offset, value)
            yield Anomaly(kind, f"{poll.process} was handed {what}", (read, send, transaction))


def _check_whole(
    index: Index, ways: Ways, transaction: Transaction, sends: list[Send], proof: Read | Observation | None
) -> Iterator[Anomaly]:
    """Look for what is missing of a transaction that took effect. What is lost of what is certain has its own rule."""
    missing: list[Evidence] = []
    # The time from which somebody knew: its producer, or who saw something of it.
    told = transaction.ended if transaction.outcome == "ok" else None
    since = min(float("inf") if told is None else told, float("inf") if proof is None else _time(proof))
    for send in sends:
        if is_certain(send) or index.was_read_committed(send):
            continue
        passed = ways.past(send, since)
        if passed is not None:
            missing += [send, passed]
        elif send.outcome == "fail":
            missing.append(send)
    if missing:
        what = f"transaction {transaction.number} of {transaction.process} took effect, but not all of it"
        shown = () if proof is None else (proof,)
        yield Anomaly("torn transaction", what, (transaction, *shown, *missing))


def _time(proof: Read | Observation) -> float:
    return proof.at if isinstance(proof, Read) else proof.ended


def _farther(one: Stretch, other: Stretch) -> Stretch:
    return one if one.last >= other.last else other


class Ways:
    """Ways of the readers of committed records, to find one that went past a place."""

    def __init__(self, index: Index) -> None:
        self._index = index
        clients = index.history.clients.values()
        self._isolated = {client.subscriber for client in clients if client.read_committed}
        stretches: defaultdict[Place, list[Stretch]] = defaultdict(list)
        for stretch in index.stretches:
            if index.history.client(stretch.process).read_committed:
                stretches[stretch.log.place].append(stretch)
        self._begins: dict[Place, list[int]] = {}
        self._farthest: dict[Place, list[Stretch]] = {}
        """Of the stretches up to each one, in the order of their beginnings, the one that goes farthest."""
        for place, found in stretches.items():
            found.sort(key=lambda stretch: stretch.first)
            self._begins[place] = [stretch.first for stretch in found]
            self._farthest[place] = list(accumulate(found, _farther))

    def past(self, send: Send, since: float) -> Evidence | None:
        """Evidence that a reader of committed records went past a record, whose transaction was over at `since`."""
        place = send.place
        if place is None or send.outcome == "fail":
            return None
        for finish in self._index.finishes.get(place, ()):
            if finish.subscriber in self._isolated and since <= finish.at:
                return finish
        log = self._index.log_of(place)
        if log is None or log.place not in self._begins:
            return None
        offset = log.offsets.get(send.value) if send.offset is None else send.offset
        number = 0 if offset is None else bisect_right(self._begins[log.place], offset)
        stretch = self._farthest[log.place][number - 1] if number else None
        if offset is None or stretch is None or stretch.last <= offset:
            return None
        return last_read(stretch)
