"""Cycles of transactions that took effect: each comes after the other, by the order of records or by what they read."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator, Mapping
from itertools import pairwise

import attrs

from harness.checker.history import Anomaly, Commit, Evidence, Observation, Place, Poll, Send, Transaction
from harness.checker.index import Index, within


@attrs.frozen(eq=False)
class Edge:
    """One transaction comes before another: it wrote `send`, and the other one wrote after that, or read it."""

    send: Send
    by: Send | Commit
    """The record of the other one that is behind it in the log; or the offsets by which the other one has read it."""


Graph = dict[Transaction, dict[Transaction, Edge]]
"""Transaction -> those that come after it, each with one proof."""


def check_cycles(index: Index, proofs: Mapping[Transaction, Observation]) -> Iterator[Anomaly]:
    """Find transactions that have read each other. `proofs` are those whose offsets were seen to be committed.

    - G1c: one transaction has read what a second one wrote, that one perhaps what a third one wrote, and so on, and
      the last one what the first one wrote. A transaction has read what its offsets make the group's, as far as
      members of the group were handed it. Groups count whose members all read what is committed.
    """
    dependencies = Dependencies(index, proofs)
    for cycle in _cycles(dependencies.reads):
        yield dependencies.anomaly("G1c", "read each other", cycle)


def permitted_cycles(index: Index, proofs: Mapping[Transaction, Observation]) -> Iterator[Anomaly]:
    """Find cycles that Kafka permits, as it keeps no transaction's records apart from those of others (G0, and so G1c).

    - G0: two transactions wrote to two partitions in opposite orders, or several in a ring;
    - G1c: one read what another one wrote, and wrote before it elsewhere, or in a ring; or a member of its group reads
      what is not committed.

    One cycle is shown for all transactions that are in cycles with each other.
    """
    dependencies = Dependencies(index, proofs)
    for cycle in _cycles(dependencies.writes):
        yield dependencies.anomaly("G0", "wrote in opposite orders", cycle)
    either: Graph = {
        transaction: {
            **dependencies.writes.get(transaction, {}),
            **dependencies.dirty_reads.get(transaction, {}),
            **dependencies.reads.get(transaction, {}),
        }
        for transaction in {*dependencies.writes, *dependencies.dirty_reads, *dependencies.reads}
    }
    for cycle in _cycles(either, through_read=True):
        yield dependencies.anomaly("G1c", "wrote and read in a ring", cycle)


class Dependencies:
    """The transactions that took effect, and which of them come after which."""

    def __init__(self, index: Index, proofs: Mapping[Transaction, Observation]) -> None:
        self.writes: Graph = {}
        """By the order of records in a partition (ww)."""
        self.reads: Graph = {}
        """By what groups read that see only what is committed (wr)."""
        self.dirty_reads: Graph = {}
        """By what other groups read."""
        self._index = index
        self._effective = _effective(index, proofs)
        self._written: dict[Place, dict[int, Send]] = {}
        """Partition -> offset -> record of a transaction that took effect, in the order of offsets."""
        for place, sends in index.sends.items():
            if len(index.homes.get(place, ())) < 2:  # otherwise nobody knows which offset is of which log
                self._take_sends(place, sends)
        self._take_commits()

    def anomaly(self, kind: str, what: str, cycle: list[tuple[Transaction, Edge]]) -> Anomaly:
        """Name a cycle and show it: each transaction, the proof that the next one comes after it, and so on."""
        shown: list[Evidence] = []
        for transaction, edge in cycle:
            shown.append(transaction)
            shown += [
                self._placed(edge.send),
                self._placed(edge.by) if isinstance(edge.by, Send) else edge.by,
            ]
        return Anomaly(kind, f"{len(cycle)} transactions that took effect {what}", tuple(shown))

    def _placed(self, send: Send) -> Evidence:
        """A record with its offset, by the one who read it if its producer was not told."""
        log = None if send.place is None else self._index.log_of(send.place)
        if send.offset is not None or log is None:
            return send
        return self._index.read_of(log, log.offsets[send.value], send.value)

    def _take_sends(self, place: Place, sends: dict[str, Send]) -> None:
        log = self._index.log_of(place)
        found: dict[int, Send] = {}
        for send in sends.values():
            if send.transaction in self._effective:
                offset = send.offset
                if offset is None and log is not None:
                    offset = log.offsets.get(send.value)
                if offset is not None:
                    found[offset] = send
        ordered = self._written[place] = dict(sorted(found.items()))
        for first, second in pairwise(ordered.values()):
            _link(self.writes, first, second.transaction, second)

    def _take_commits(self) -> None:
        history = self._index.history
        commits: defaultdict[tuple[str, Place], list[Commit]] = defaultdict(list)
        for commit in history.commits:
            if commit.transaction in self._effective:
                for place in commit.offsets:
                    commits[commit.group, place].append(commit)
        handed = self._handed({group for group, _ in commits})
        dirty = {client.group for client in history.clients.values() if not client.read_committed}
        for (group, place), found in commits.items():
            written = self._written.get(place, {})
            offsets = [offset for offset in written if offset in handed[group, place]]
            graph = self.dirty_reads if group in dirty else self.reads
            start = 0
            for commit in sorted(found, key=lambda each: each.offsets[place]):
                end = commit.offsets[place]
                for offset in within(offsets, start, end):
                    _link(graph, written[offset], commit.transaction, commit)
                start = end

    def _handed(self, groups: set[str]) -> defaultdict[tuple[str, Place], set[int]]:
        """Offsets of the records that members of groups were handed."""
        found: defaultdict[tuple[str, Place], set[int]] = defaultdict(set)
        for poll in self._index.polls():
            group = self._index.history.client(poll.process).group
            if group in groups:
                _add_polled(found, group, poll)
        return found


def _effective(index: Index, proofs: Mapping[Transaction, Observation]) -> set[Transaction]:
    """Transactions that took effect, whatever their producers were told."""
    found = {transaction for transaction in index.history.transactions if transaction.outcome == "ok"}
    found.update(proofs)
    found.update(
        send.transaction
        for send in index.history.sends
        if send.transaction is not None
        and send.transaction.outcome == "unknown"
        and index.was_read_committed(send)
    )
    return found


def _add_polled(found: defaultdict[tuple[str, Place], set[int]], group: str, poll: Poll) -> None:
    for place, records in poll.records.items():
        found[group, place.home].update(offset for offset, _ in records)


def _link(graph: Graph, send: Send, after: Transaction | None, by: Send | Commit) -> None:
    before = send.transaction
    if before is not None and after is not None and before is not after:
        graph.setdefault(before, {}).setdefault(after, Edge(send, by))


def _cycles(graph: Graph, *, through_read: bool = False) -> Iterator[list[tuple[Transaction, Edge]]]:
    """Find a short cycle in each part of the graph whose members all come after each other.

    With `through_read` the cycle has a step from a writer to a reader; parts without are left out.
    """
    for part in _parts(graph):
        steps = [
            (before, after)
            for before in sorted(part, key=lambda transaction: transaction.started)
            for after, edge in graph[before].items()
            if after in part and (isinstance(edge.by, Commit) or not through_read)
        ]
        if steps:
            before, after = steps[0]
            way = [before, *_way(graph, part, after, before)]
            yield [(one, graph[one][other]) for one, other in pairwise(way)]


def _way(graph: Graph, part: set[Transaction], start: Transaction, end: Transaction) -> list[Transaction]:
    """The shortest way from one member of a part to another one."""
    came_from: dict[Transaction, Transaction] = {start: start}
    waiting = deque([start])
    while end not in came_from:
        here = waiting.popleft()
        for there in graph[here]:
            if there in part and there not in came_from:
                came_from[there] = here
                waiting.append(there)
    way = [end]
    while way[-1] is not start:
        way.append(came_from[way[-1]])
    return way[::-1]


def _parts(graph: Graph) -> list[set[Transaction]]:
    """Sets of two or more transactions that all come after each other (strongly connected components, by Kosaraju)."""
    backwards: defaultdict[Transaction, list[Transaction]] = defaultdict(list)
    for before, after in graph.items():
        for each in after:
            backwards[each].append(before)
    left: list[Transaction] = []
    """In the order in which a walk along the graph leaves them for the last time."""
    seen: set[Transaction] = set()
    for root in list(graph):
        way = [(root, iter(graph[root]))] if root not in seen else []
        seen.add(root)
        while way:
            here, following = way[-1]
            there = next((each for each in following if each not in seen), None)
            if there is None:
                left.append(here)
                way.pop()
            else:
                seen.add(there)
                way.append((there, iter(graph.get(there, ()))))
    parts: list[set[Transaction]] = []
    for root in reversed(left):
        if root in seen:
            seen.discard(root)
            part, waiting = {root}, [root]
            while waiting:
                for each in backwards[waiting.pop()]:
                    if each in seen:
                        seen.discard(each)
                        part.add(each)
                        waiting.append(each)
            if len(part) > 1:
                parts.append(part)
    return parts
