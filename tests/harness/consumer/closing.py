"""Closing a consumer in the middle of whatever happens to it."""

from __future__ import annotations

from typing import Protocol

from harness.consumer.model import ConsumerModel
from kclient.common.topic_partition import TopicPartition

_CLOSE_MS = 30_000


class Ledger(Protocol):
    """Partitions that a listener was told it gives up, and the calls that it fails in."""

    failing: set[str]
    given_up: set[TopicPartition]


def close_in_the_middle(rig: ConsumerModel, ledger: Ledger) -> None:
    """Close the consumer, in time, and see that everything is committed that its listener was told it gives up."""
    ledger.failing.clear()
    ledger.given_up.clear()
    read = {tp: each.offset for tp, each in rig.core.assigned.consumed().items()}
    began_ms = rig.time.monotonic_ms()
    rig.consumer.close(_CLOSE_MS)
    assert rig.time.monotonic_ms() - began_ms < 2 * _CLOSE_MS
    owed = {tp: offset for tp, offset in read.items() if tp in ledger.given_up}
    assert {tp: rig.committed.get(tp) for tp in owed} == owed
