"""PartitionImage: who has a partition, and who leads it."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from kclient.common.uuid import Uuid
from kclient.protocol.messages.metadata_records import PartitionChangeRecord, PartitionRecord

NO_LEADER = -1
_NO_LEADER_CHANGE = -2
_NO_RECOVERY_CHANGE = -1


@attrs.frozen(kw_only=True)
class PartitionImage:
    """One partition. Immutable. `directories` has the log directory of each of `replicas`, zero while it is in none."""

    replicas: tuple[int, ...]
    directories: tuple[Uuid, ...]
    isr: tuple[int, ...]
    removing_replicas: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    leader: int
    leader_recovery_state: int = 0
    leader_epoch: int
    partition_epoch: int
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    @classmethod
    def of(cls, record: PartitionRecord) -> PartitionImage:
        """The partition that a record describes."""
        return cls(
            replicas=tuple(record.replicas),
            directories=_directories(record.directories, record.replicas),
            isr=tuple(record.isr),
            removing_replicas=tuple(record.removing_replicas),
            adding_replicas=tuple(record.adding_replicas),
            leader=record.leader,
            leader_recovery_state=record.leader_recovery_state,
            leader_epoch=record.leader_epoch,
            partition_epoch=record.partition_epoch,
            eligible_leader_replicas=tuple(record.eligible_leader_replicas or ()),
            last_known_elr=tuple(record.last_known_elr or ()),
        )

    def changed(self, record: PartitionChangeRecord) -> PartitionImage:
        """The partition after a change."""
        replicas = _either(record.replicas, self.replicas)
        if record.directories is not None:
            directories = _directories(record.directories, replicas)
        elif record.replicas is not None:
            kept = dict(zip(self.replicas, self.directories, strict=True))
            directories = tuple(kept.get(replica, Uuid.ZERO) for replica in replicas)
        else:
            directories = self.directories
        led = record.leader != _NO_LEADER_CHANGE
        recovery = record.leader_recovery_state
        return PartitionImage(
            replicas=replicas,
            directories=directories,
            isr=_either(record.isr, self.isr),
            removing_replicas=_either(record.removing_replicas, self.removing_replicas),
            adding_replicas=_either(record.adding_replicas, self.adding_replicas),
            leader=record.leader if led else self.leader,
            leader_recovery_state=self.leader_recovery_state if recovery == _NO_RECOVERY_CHANGE else recovery,
            leader_epoch=self.leader_epoch + led,
            partition_epoch=self.partition_epoch + 1,
            eligible_leader_replicas=_either(record.eligible_leader_replicas, self.eligible_leader_replicas),
            last_known_elr=_either(record.last_known_elr, self.last_known_elr),
        )

    def record(self, topic_id: Uuid, number: int) -> PartitionRecord:
        """The record that describes the partition."""
        return PartitionRecord(
            partition_id=number,
            topic_id=topic_id,
            replicas=list(self.replicas),
            isr=list(self.isr),
            removing_replicas=list(self.removing_replicas),
            adding_replicas=list(self.adding_replicas),
            leader=self.leader,
            leader_recovery_state=self.leader_recovery_state,
            leader_epoch=self.leader_epoch,
            partition_epoch=self.partition_epoch,
            directories=list(self.directories),
        )

    def directory_of(self, node_id: int) -> Uuid:
        """The log directory in which a replica is, zero if it is in none or there is no such replica."""
        return dict(zip(self.replicas, self.directories, strict=True)).get(node_id, Uuid.ZERO)


def _either(given: Sequence[int] | None, present: tuple[int, ...]) -> tuple[int, ...]:
    return present if given is None else tuple(given)


def _directories(given: Sequence[Uuid], replicas: Sequence[int]) -> tuple[Uuid, ...]:
    # Before KIP-858 partitions were in directories that only their brokers knew.
    return tuple(given) if len(given) == len(replicas) else (Uuid.ZERO,) * len(replicas)
