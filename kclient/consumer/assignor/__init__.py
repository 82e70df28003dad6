"""Client-side assignors of the classic group protocol, and their names."""

from __future__ import annotations

from kclient.consumer.assignor.base import (
    Assignment,
    ConsumerPartitionAssignor,
    RebalanceProtocol,
    Subscription,
)
from kclient.consumer.assignor.cooperative_sticky import CooperativeStickyAssignor
from kclient.consumer.assignor.range import RangeAssignor
from kclient.consumer.assignor.round_robin import RoundRobinAssignor
from kclient.consumer.assignor.sticky import StickyAssignor

__all__ = [
    "ASSIGNORS",
    "Assignment",
    "ConsumerPartitionAssignor",
    "CooperativeStickyAssignor",
    "RangeAssignor",
    "RebalanceProtocol",
    "RoundRobinAssignor",
    "StickyAssignor",
    "Subscription",
]

ASSIGNORS: dict[str, type[ConsumerPartitionAssignor]] = {
    cls.NAME: cls for cls in (RangeAssignor, RoundRobinAssignor, StickyAssignor, CooperativeStickyAssignor)
}
"""The assignors that can be named in `partition.assignment.strategy`."""
