"""Operations that wait for something to happen, or for their time to run out."""

from __future__ import annotations

from kclient.broker.purgatory.delayed_operation import DelayedOperation
from kclient.broker.purgatory.purgatory import DelayedOperationPurgatory

__all__ = ["DelayedOperation", "DelayedOperationPurgatory"]
