"""Judgement of a history by all rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from harness.checker.commits import check_commits, effective, sources_of
from harness.checker.cycles import check_cycles, permitted_cycles
from harness.checker.history import Anomaly, History
from harness.checker.index import Index
from harness.checker.owners import check_owners
from harness.checker.progress import check_progress
from harness.checker.reads import check_reads
from harness.checker.transactions import check_transactions
from harness.checker.writes import check_writes

_SHOWN = 8


def check(history: History) -> list[Anomaly]:
    """Everything that is wrong with a history, in n log n of its operations.

    It takes for granted that the topics were empty in the beginning, that somebody reads them from there, and that
    nothing is deleted or compacted meanwhile.

    Of the anomalies of Jepsen's workload for Kafka it has duplicate, inconsistent-offsets, lost-write, unseen,
    nonmonotonic-send, nonmonotonic-poll and poll-skip (those within a transaction included), precommitted-read, G1a
    (aborted read) and G1c by reads of committed records alone. As there, int-send-skip, G0 and G1c by the order of
    writes are no faults, as Kafka lets the records of transactions alternate in a partition: `permitted` finds the last
    two. It does not look for reads that are stale (realtime-lag). The rest is not in Jepsen's: outcomes of records,
    torn transactions, committed offsets, owners of partitions.

    Raises ValueError if two records of a partition have the same value.
    """
    index = Index(history)
    sources = sources_of(history)
    proofs = effective(history, sources)
    return [
        *check_writes(index),
        *check_reads(index),
        *check_transactions(index, proofs),
        *check_cycles(index, proofs),
        *check_commits(history, sources),
        *check_progress(index),
        *check_owners(history),
    ]


def permitted(history: History) -> list[Anomaly]:
    """Cycles of transactions that Kafka permits, for their number: they are not in the verdict.

    Raises ValueError if two records of a partition have the same value.
    """
    return list(permitted_cycles(Index(history), effective(history, sources_of(history))))


def report(history: History, anomalies: Sequence[Anomaly], allowed: Sequence[Anomaly] = ()) -> str:
    """Text for people: each kind with its number, and the first of them with the operations that prove them.

    Of what is `allowed`, the number of each kind.
    """
    kinds = Counter(anomaly.kind for anomaly in anomalies)
    lines = [f"{len(history)} operations of {len(history.clients)} clients: {len(anomalies)} anomalies"]
    for kind, count in kinds.items():
        lines.append(f"{kind}: {count}")
        lines += [f"- {each}" for each in [each for each in anomalies if each.kind == kind][:_SHOWN]]
    permits = Counter(anomaly.kind for anomaly in allowed)
    lines += [f"{kind}, which Kafka permits: {count}" for kind, count in permits.items()]
    return "\n".join(lines)
