"""The records of `__cluster_metadata`, in which Kafka's controllers and this broker keep what they know.

`RECORD_TYPES` has their numbers; what stands before each in the log is `kclient.broker.metadata.record_serde`'s.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kclient.common.uuid import Uuid
from kclient.protocol.schema import Message, Structure, message, structure, wire
from kclient.protocol.wire import UUID, Array, Bool, Bytes, Float64, Int8, Int16, Int32, Int64, String, UInt16


@structure
class BrokerEndpoint(Structure):
    name: str = wire(String, "0+")
    host: str = wire(String, "0+")
    port: int = wire(UInt16, "0+")
    security_protocol: int = wire(Int16, "0+")


@structure
class BrokerFeature(Structure):
    name: str = wire(String, "0+")
    min_supported_version: int = wire(Int16, "0+")
    max_supported_version: int = wire(Int16, "0+")


@message(kind="metadata", versions="0-4", flexible="0+")
class RegisterBrokerRecord(Message):
    """A broker has started: where it listens, which log directories it has."""

    broker_id: int = wire(Int32, "0+")
    is_migrating_zk_broker: bool = wire(Bool, "2+")
    incarnation_id: Uuid = wire(UUID, "0+")
    broker_epoch: int = wire(Int64, "0+")
    end_points: list[BrokerEndpoint] = wire(Array(BrokerEndpoint), "0+")
    features: list[BrokerFeature] = wire(Array(BrokerFeature), "0+")
    rack: str | None = wire(String, "0+", nullable="0+")
    fenced: bool = wire(Bool, "0+", default=True)
    in_controlled_shutdown: bool = wire(Bool, "1+")
    log_dirs: list[Uuid] = wire(Array(UUID), "3+", tag=0)
    cordoned_log_dirs: list[Uuid] | None = wire(Array(UUID), "4+", nullable="4+", tag=1, default=None)


@message(kind="metadata", versions="0-3", flexible="0+")
class BrokerRegistrationChangeRecord(Message):
    """Changes of a registered broker. -1 unfences and 1 fences it."""

    broker_id: int = wire(Int32, "0+")
    broker_epoch: int = wire(Int64, "0+")
    fenced: int = wire(Int8, "0+", tag=0)
    in_controlled_shutdown: int = wire(Int8, "1+", tag=1)
    log_dirs: list[Uuid] = wire(Array(UUID), "2+", tag=2)
    cordoned_log_dirs: list[Uuid] | None = wire(Array(UUID), "3+", nullable="3+", tag=3, default=None)


@message(kind="metadata", versions="0", flexible="0+")
class FenceBrokerRecord(Message):
    """A broker is fenced: it leads nothing. As written before BrokerRegistrationChangeRecord."""

    id: int = wire(Int32, "0+")
    epoch: int = wire(Int64, "0+")


@message(kind="metadata", versions="0", flexible="0+")
class UnfenceBrokerRecord(Message):
    """A broker takes part again. As written before BrokerRegistrationChangeRecord."""

    id: int = wire(Int32, "0+")
    epoch: int = wire(Int64, "0+")


@message(kind="metadata", versions="0", flexible="0+")
class UnregisterBrokerRecord(Message):
    """A broker is forgotten."""

    broker_id: int = wire(Int32, "0+")
    broker_epoch: int = wire(Int64, "0+")


@structure
class ControllerEndpoint(Structure):
    name: str = wire(String, "0+")
    host: str = wire(String, "0+")
    port: int = wire(UInt16, "0+")
    security_protocol: int = wire(Int16, "0+")


@structure
class ControllerFeature(Structure):
    name: str = wire(String, "0+")
    min_supported_version: int = wire(Int16, "0+")
    max_supported_version: int = wire(Int16, "0+")


@message(kind="metadata", versions="0", flexible="0+")
class RegisterControllerRecord(Message):
    """A controller has started (KIP-919)."""

    controller_id: int = wire(Int32, "0+")
    incarnation_id: Uuid = wire(UUID, "0+")
    zk_migration_ready: bool = wire(Bool, "0+")
    end_points: list[ControllerEndpoint] = wire(Array(ControllerEndpoint), "0+")
    features: list[ControllerFeature] = wire(Array(ControllerFeature), "0+")


@message(kind="metadata", versions="0", flexible="0+")
class FeatureLevelRecord(Message):
    """The level of a feature; 0 takes it away. Logs and snapshots begin with that of `metadata.version`."""

    name: str = wire(String, "0+")
    feature_level: int = wire(Int16, "0+")


@message(kind="metadata", versions="0", flexible="0+")
class ProducerIdsRecord(Message):
    """A block of producer ids was given out: the next one begins at `next_producer_id`."""

    broker_id: int = wire(Int32, "0+")
    broker_epoch: int = wire(Int64, "0+", default=-1)
    next_producer_id: int = wire(Int64, "0+")


@message(kind="metadata", versions="0", flexible="0+")
class NoOpRecord(Message):
    """Nothing: written so that the log moves on."""


@message(kind="metadata", versions="0", flexible="0+")
class BeginTransactionRecord(Message):
    """The records up to the end or the abort belong together, though they are several batches (KIP-868)."""

    name: str | None = wire(String, "0+", nullable="0+", tag=0, default=None)


@message(kind="metadata", versions="0", flexible="0+")
class EndTransactionRecord(Message):
    """The records since the beginning hold."""


@message(kind="metadata", versions="0", flexible="0+")
class AbortTransactionRecord(Message):
    """The records since the beginning do not hold."""

    reason: str | None = wire(String, "0+", nullable="0+", tag=0, default=None)


@message(kind="metadata", versions="0", flexible="0+")
class TopicRecord(Message):
    """A new topic."""

    name: str = wire(String, "0+")
    topic_id: Uuid = wire(UUID, "0+")


@message(kind="metadata", versions="0-2", flexible="0+")
class PartitionRecord(Message):
    """A partition as it is, new or not."""

    partition_id: int = wire(Int32, "0+", default=-1)
    topic_id: Uuid = wire(UUID, "0+")
    replicas: list[int] = wire(Array(Int32), "0+")
    isr: list[int] = wire(Array(Int32), "0+")
    removing_replicas: list[int] = wire(Array(Int32), "0+")
    adding_replicas: list[int] = wire(Array(Int32), "0+")
    leader: int = wire(Int32, "0+", default=-1)
    leader_recovery_state: int = wire(Int8, "0+", tag=0)
    leader_epoch: int = wire(Int32, "0+", default=-1)
    partition_epoch: int = wire(Int32, "0+", default=-1)
    directories: list[Uuid] = wire(Array(UUID), "1+")
    eligible_leader_replicas: list[int] | None = wire(Array(Int32), "2+", nullable="2+", tag=1, default=None)
    last_known_elr: list[int] | None = wire(Array(Int32), "2+", nullable="2+", tag=2, default=None)


@message(kind="metadata", versions="0-2", flexible="0+")
class PartitionChangeRecord(Message):
    """Changes of a partition. A leader that is named begins a new leader epoch, also the same one."""

    partition_id: int = wire(Int32, "0+", default=-1)
    topic_id: Uuid = wire(UUID, "0+")
    isr: list[int] | None = wire(Array(Int32), "0+", nullable="0+", tag=0, default=None)
    leader: int = wire(Int32, "0+", tag=1, default=-2)
    replicas: list[int] | None = wire(Array(Int32), "0+", nullable="0+", tag=2, default=None)
    removing_replicas: list[int] | None = wire(Array(Int32), "0+", nullable="0+", tag=3, default=None)
    adding_replicas: list[int] | None = wire(Array(Int32), "0+", nullable="0+", tag=4, default=None)
    leader_recovery_state: int = wire(Int8, "0+", tag=5, default=-1)
    directories: list[Uuid] | None = wire(Array(UUID), "1+", nullable="1+", tag=8, default=None)
    eligible_leader_replicas: list[int] | None = wire(Array(Int32), "2+", nullable="2+", tag=6, default=None)
    last_known_elr: list[int] | None = wire(Array(Int32), "2+", nullable="2+", tag=7, default=None)


@message(kind="metadata", versions="0", flexible="0+")
class RemoveTopicRecord(Message):
    """A topic is gone, with its partitions and settings."""

    topic_id: Uuid = wire(UUID, "0+")


@message(kind="metadata", versions="0", flexible="0+")
class ClearElrRecord(Message):
    """Forget the eligible leader replicas of a topic, or of all (KIP-966)."""

    topic_name: str = wire(String, "0+")


@message(kind="metadata", versions="0", flexible="0+")
class ConfigRecord(Message):
    """A setting of a topic (2), a broker (4) or another resource; null takes it away."""

    resource_type: int = wire(Int8, "0+")
    resource_name: str = wire(String, "0+")
    name: str = wire(String, "0+")
    value: str | None = wire(String, "0+", nullable="0+")


@structure
class EntityData(Structure):
    entity_type: str = wire(String, "0+")
    entity_name: str | None = wire(String, "0+", nullable="0+")


@message(kind="metadata", versions="0", flexible="0+")
class ClientQuotaRecord(Message):
    """A quota of a user, client or address."""

    entity: list[EntityData] = wire(Array(EntityData), "0+")
    key: str = wire(String, "0+")
    value: float = wire(Float64, "0+")
    remove: bool = wire(Bool, "0+")


@message(kind="metadata", versions="0", flexible="0+")
class AccessControlEntryRecord(Message):
    """An access rule."""

    id: Uuid = wire(UUID, "0+")
    resource_type: int = wire(Int8, "0+")
    resource_name: str = wire(String, "0+")
    pattern_type: int = wire(Int8, "0+")
    principal: str = wire(String, "0+")
    host: str = wire(String, "0+")
    operation: int = wire(Int8, "0+")
    permission_type: int = wire(Int8, "0+")


@message(kind="metadata", versions="0", flexible="0+")
class RemoveAccessControlEntryRecord(Message):
    """An access rule is gone."""

    id: Uuid = wire(UUID, "0+")


@message(kind="metadata", versions="0", flexible="0+")
class UserScramCredentialRecord(Message):
    """The password of a user, salted and hashed."""

    name: str = wire(String, "0+")
    mechanism: int = wire(Int8, "0+")
    salt: bytes = wire(Bytes, "0+")
    stored_key: bytes = wire(Bytes, "0+")
    server_key: bytes = wire(Bytes, "0+")
    iterations: int = wire(Int32, "0+")


@message(kind="metadata", versions="0", flexible="0+")
class RemoveUserScramCredentialRecord(Message):
    """A user has no password for a mechanism any more."""

    name: str = wire(String, "0+")
    mechanism: int = wire(Int8, "0+")


RECORD_TYPES: Mapping[int, type[Message]] = MappingProxyType(
    {
        0: RegisterBrokerRecord,
        1: UnregisterBrokerRecord,
        2: TopicRecord,
        3: PartitionRecord,
        4: ConfigRecord,
        5: PartitionChangeRecord,
        7: FenceBrokerRecord,
        8: UnfenceBrokerRecord,
        9: RemoveTopicRecord,
        11: UserScramCredentialRecord,
        12: FeatureLevelRecord,
        14: ClientQuotaRecord,
        15: ProducerIdsRecord,
        17: BrokerRegistrationChangeRecord,
        18: AccessControlEntryRecord,
        19: RemoveAccessControlEntryRecord,
        20: NoOpRecord,
        22: RemoveUserScramCredentialRecord,
        23: BeginTransactionRecord,
        24: EndTransactionRecord,
        25: AbortTransactionRecord,
        27: RegisterControllerRecord,
        28: ClearElrRecord,
    }
)
"""The records by their numbers."""
