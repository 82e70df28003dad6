"""Owners: whom the partitions of a group belong to, as its members' listeners hear of it."""

from __future__ import annotations

import threading
from collections.abc import Collection

from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRebalanceListener


class Owners:
    """Writes down what members hear, and everything that is taken by one before another gave it up. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.now: dict[TopicPartition, str] = {}
        self.calls: list[tuple[str, str, tuple[TopicPartition, ...]]] = []
        """Member, call (`assigned`, `revoked`, `lost`) and partitions, oldest first."""
        self.doubles: list[str] = []

    def listener(self, member: str) -> ConsumerRebalanceListener:
        """Return the listener of one member."""
        return _Listener(self, member)

    def calls_of(self, member: str, kind: str) -> list[tuple[TopicPartition, ...]]:
        """Return the partitions of all calls of one kind."""
        with self._lock:
            return [partitions for name, call, partitions in self.calls if (name, call) == (member, kind)]

    def heard(self, member: str, kind: str, partitions: Collection[TopicPartition]) -> None:
        """A member was told something."""
        with self._lock:
            self.calls.append((member, kind, tuple(sorted(partitions))))
            for tp in partitions:
                if kind != "assigned":
                    if self.now.get(tp) == member:
                        del self.now[tp]
                    continue
                owner = self.now.get(tp)
                if owner is not None:
                    self.doubles.append(f"{tp} went to {member} while {owner} had it")
                self.now[tp] = member


class _Listener(ConsumerRebalanceListener):
    def __init__(self, owners: Owners, member: str) -> None:
        self._owners = owners
        self._member = member

    def on_partitions_assigned(self, partitions: Collection[TopicPartition]) -> None:
        self._owners.heard(self._member, "assigned", partitions)

    def on_partitions_revoked(self, partitions: Collection[TopicPartition]) -> None:
        self._owners.heard(self._member, "revoked", partitions)

    def on_partitions_lost(self, partitions: Collection[TopicPartition]) -> None:
        self._owners.heard(self._member, "lost", partitions)
