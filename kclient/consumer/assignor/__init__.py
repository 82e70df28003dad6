"""Client-side assignors of the classic group protocol, and their names."""

from __future__ import annotations

from kclient.consumer.assignor.base import (
    Assignment,
    ConsumerPartitionAssignor,
    RebalanceProtocol,
    Subscription,
)
from kclient.consumer.assignor.range import RangeAssignor
from kclient.consumer.assignor.round_robin import RoundRobinAssignor

__all__ = [
    "ASSIGNORS",
    "Assignment",
    "ConsumerPartitionAssignor",
    "RangeAssignor",
    "RebalanceProtocol",
    "RoundRobinAssignor",
    "Subscription",
]

ASSIGNORS: dict[str, type[ConsumerPartitionAssignor]] = {
    cls.NAME: cls for cls in (RangeAssignor, RoundRobinAssignor)
}
"""The assignors that can be named in `partition.assignment.strategy`."""
