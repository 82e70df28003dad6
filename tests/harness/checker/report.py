"""Judgement of a history by all rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from harness.checker.commits import check_commits, effective, sources_of
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
    nothing is deleted or compacted meanwhile. It does not look for cycles between transactions (G0, G1c), nor for reads
    that are stale.

    Raises ValueError if two records of a partition have the same value.
    """
    index = Index(history)
    sources = sources_of(history)
    return [
        *check_writes(index),
        *check_reads(index),
        *check_transactions(index, effective(history, sources)),
        *check_commits(history, sources),
        *check_progress(index),
        *check_owners(history),
    ]


def report(history: History, anomalies: Sequence[Anomaly]) -> str:
    """Text for people: each kind with its number, and the first of them with the operations that prove them."""
    kinds = Counter(anomaly.kind for anomaly in anomalies)
    lines = [f"{len(history)} operations of {len(history.clients)} clients: {len(anomalies)} anomalies"]
    for kind, count in kinds.items():
        lines.append(f"{kind}: {count}")
        lines += [f"- {each}" for each in [each for each in anomalies if each.kind == kind][:_SHOWN]]
    return "\n".join(lines)
