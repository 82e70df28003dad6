"""GroupStore: groups and their offsets as records of `__consumer_offsets`, in Kafka's formats."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kclient.broker.group.group import CommittedOffset, Group, GroupState
from kclient.broker.group.member import Member
from kclient.broker.metadata.controller import Controller
from kclient.broker.metadata.topic_names import OFFSETS_TOPIC
from kclient.broker.replica.partition import Partition
from kclient.broker.replica.replica_manager import ReplicaManager
from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    CoordinatorNotAvailableError,
    InvalidCommitOffsetSizeError,
    KafkaError,
    NotCoordinatorError,
    NotEnoughReplicasError,
    RecordBatchTooLargeError,
    RecordTooLargeError,
    UnknownServerError,
    UnknownTopicOrPartitionError,
)
from kclient.errors import KafkaStorageError as StorageError
from kclient.protocol.codec import decode, encode
from kclient.protocol.messages.group_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kclient.record.builder import MemoryRecordsBuilder
from kclient.record.control import ControlRecordType, parse_type
from kclient.record.memory_records import Batch
from kclient.utils.log_context import LogContext
from kclient.utils.time import Time

OFFSET_KEY_TYPES = (0, 1)
GROUP_KEY_TYPE = 2
_OFFSET_KEY_TYPE = 1
_OFFSET_VALUE_VERSION = 3  # the newest that every Kafka since 2.1 reads
_GROUP_VALUE_VERSION = 3  # the newest that every Kafka since 2.3 reads
_TYPE = struct.Struct(">h")

Entry = tuple[bytes, bytes | None]


class GroupStore:
    """Appends to and reads from the offsets topic. Thread-safe.

    Each write is one batch: it is there wholly after a crash or not at all.
    """

    def __init__(
        self, controller: Controller, replicas: ReplicaManager, time: Time, log_context: LogContext
    ) -> None:
        self._controller = controller
        self._replicas = replicas
        self._time = time
        self._log = log_context.logger(__name__)
        self._unread: set[TopicPartition] = set()

    def create_topic(self) -> None:
        """Make the offsets topic if it is not there. Raises CoordinatorNotAvailableError."""
        try:
            self._controller.create_automatically(OFFSETS_TOPIC)
        except KafkaError as error:
            self._log.error("%s cannot be created: %s", OFFSETS_TOPIC, error)
            raise CoordinatorNotAvailableError(f"{OFFSETS_TOPIC} cannot be created: {error}") from error

    def partition_for(self, group_id: str) -> TopicPartition:
        """Return the partition with the records of a group.

        Raises NotCoordinatorError while there is no such topic, which is made for whoever looks for the coordinator,
        and CoordinatorNotAvailableError if the partition could not be read.
        """
        topic = self._controller.cache.topic(OFFSETS_TOPIC)
        if topic is None:
            raise NotCoordinatorError(f"Group {group_id} has no coordinator: there is no {OFFSETS_TOPIC}")
        tp = TopicPartition(OFFSETS_TOPIC, java_abs(java_hash(group_id)) % topic.partition_count)
        if tp in self._unread:
            raise CoordinatorNotAvailableError(f"{tp}, which has the offsets of group {group_id}, is offline")
        return tp

    def check_known(self, group_id: str) -> None:
        """Raise NotCoordinatorError if nothing can be said of the group: it may be in what could not be read."""
        try:
            self.partition_for(group_id)
        except CoordinatorNotAvailableError as error:
            raise NotCoordinatorError(str(error)) from error

    def write(self, group_id: str, entries: Iterable[Entry]) -> None:
        """Append the entries as one batch. Raises what a coordinator answers with if it failed."""
        tp = self.partition_for(group_id)
        builder = MemoryRecordsBuilder()
        now_ms = self._time.wall_ms()
        for key, value in entries:
            builder.append(now_ms, key, value)
        outcome = self._replicas.append_locally(tp, builder.close())
        if outcome.error is not None:
            self._log.error("Writing group %s to %s failed: %s", group_id, tp, outcome.error)
            raise _coordinator_error(outcome.error) from outcome.error

    def load(self) -> dict[str, Group]:
        """All groups, read from the beginning. Those of partitions that are offline are left out, and remembered as
        unknown: their members must not be told that they have committed nothing. Raises KafkaError.
        """
        topic = self._controller.cache.topic(OFFSETS_TOPIC)
        groups: dict[str, Group] = {}
        if topic is None:
            return groups
        for tp in topic.topic_partitions():
            try:
                _Loader(groups, self._time, self._log).read(self._replicas.partition(tp))
            except StorageError as error:
                self._log.error("The groups of %s cannot be served: %s", tp, error)
                self._unread.add(tp)
        # What is left without generations and offsets is what tombstones took away.
        groups = {name: group for name, group in groups.items() if group.generation_id or group.offsets}
        self._log.info("Loaded %d groups from %s", len(groups), OFFSETS_TOPIC)
        return groups


class _Loader:
    """Replays one partition."""

    def __init__(self, groups: dict[str, Group], time: Time, log: Any) -> None:
        self._groups = groups
        self._time = time
        self._log = log
        self._open_transactions: dict[int, list[Entry]] = {}

    def read(self, partition: Partition) -> None:
        for batch in partition.batches():
            self._take(batch)

    def _take(self, batch: Batch) -> None:
        if batch.is_control:
            committed = any(parse_type(record.key) is ControlRecordType.COMMIT for record in batch.records())
            for key, value in self._open_transactions.pop(batch.producer_id, ()):
                if committed:
                    self._apply(key, value)
            return
        for record in batch.records():
            if record.key is None:
                continue
            if batch.is_transactional:
                self._open_transactions.setdefault(batch.producer_id, []).append((record.key, record.value))
            else:
                self._apply(record.key, record.value)

    def _apply(self, key: bytes, value: bytes | None) -> None:
        try:
            kind = _TYPE.unpack_from(key)[0]
            if kind in OFFSET_KEY_TYPES:
                self._apply_offset(decode(OffsetCommitKey, 0, key[2:]), value)
            elif kind == GROUP_KEY_TYPE:
                self._apply_group(decode(GroupMetadataKey, 0, key[2:]).group, value)
        except (KafkaError, struct.error) as error:
            # Written by something newer, or damaged within a valid batch: the rest is still worth having.
            self._log.warning("A record of %s cannot be read and is left out: %s", OFFSETS_TOPIC, error)

    def _apply_offset(self, key: OffsetCommitKey, value: bytes | None) -> None:
        tp = TopicPartition(key.topic, key.partition)
        if value is None:
            group = self._groups.get(key.group)
            if group is not None:
                group.offsets.pop(tp, None)
            return
        commit = _decode_value(OffsetCommitValue, value)
        self._group(key.group).offsets[tp] = CommittedOffset(
            commit.offset,
            commit.leader_epoch,
            commit.metadata,
            commit.commit_timestamp,
            commit.expire_timestamp,
        )

    def _apply_group(self, group_id: str, value: bytes | None) -> None:
        if value is None:
            # Its offsets have tombstones of their own, which may come later.
            group = self._groups.get(group_id)
            if group is not None:
                fresh = Group(group_id, self._time.wall_ms())
                fresh.offsets = group.offsets
                self._groups[group_id] = fresh
            return
        offsets = self._group(group_id).offsets
        group = _restore_group(group_id, _decode_value(GroupMetadataValue, value), self._time.wall_ms())
        group.offsets = offsets
        self._groups[group_id] = group

    def _group(self, group_id: str) -> Group:
        group = self._groups.get(group_id)
        if group is None:
            group = self._groups[group_id] = Group(group_id, self._time.wall_ms())
        return group


def offset_entry(group_id: str, tp: TopicPartition, commit: CommittedOffset | None) -> Entry:
    """The record of a committed offset; None for its tombstone."""
    key = _TYPE.pack(_OFFSET_KEY_TYPE) + encode(
        OffsetCommitKey(group=group_id, topic=tp.topic, partition=tp.partition), 0
    )
    if commit is None:
        return key, None
    value = OffsetCommitValue(
        offset=commit.offset,
        leader_epoch=commit.leader_epoch,
        metadata=commit.metadata,
        commit_timestamp=commit.commit_timestamp_ms,
    )
    if commit.expire_timestamp_ms == -1:
        return key, _TYPE.pack(_OFFSET_VALUE_VERSION) + encode(value, _OFFSET_VALUE_VERSION)
    value.expire_timestamp = commit.expire_timestamp_ms
    return key, _TYPE.pack(1) + encode(value, 1)  # the only version with an expiry


def group_entry(group: Group, assignments: Mapping[str, bytes]) -> Entry:
    """The record of a group's members with what they are assigned."""
    name = group.protocol_name or ""
    value = GroupMetadataValue(
        protocol_type=group.protocol_type or "",
        generation=group.generation_id,
        protocol=group.protocol_name,
        leader=group.leader_id,
        current_state_timestamp=group.state_timestamp_ms,
        members=[
            MemberMetadata(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                rebalance_timeout=member.rebalance_timeout_ms,
                session_timeout=member.session_timeout_ms,
                subscription=member.metadata_for(name),
                assignment=assignments.get(member.member_id, b""),
            )
            for member in group.members.values()
        ],
    )
    return _group_key(group.id), _TYPE.pack(_GROUP_VALUE_VERSION) + encode(value, _GROUP_VALUE_VERSION)


def group_tombstones(group: Group, tps: Sequence[TopicPartition], *, whole: bool) -> list[Entry]:
    """The records that delete these offsets and, if `whole`, the group itself."""
    entries: list[Entry] = [offset_entry(group.id, tp, None) for tp in tps]
    if whole:
        entries.append((_group_key(group.id), None))
    return entries


def java_hash(text: str) -> int:
    """Java's String.hashCode, which decides on the partition of a group."""
    data = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for (unit,) in struct.iter_unpack(">H", data):
        value = (31 * value + unit) & 0xFFFFFFFF
    return value - (1 << 32) if value & 0x80000000 else value


def java_abs(value: int) -> int:
    """Kafka's Utils.abs: the absolute value, and 0 for the smallest integer, which has none in Java."""
    return 0 if value == -(1 << 31) else abs(value)


def _group_key(group_id: str) -> bytes:
    return _TYPE.pack(GROUP_KEY_TYPE) + encode(GroupMetadataKey(group=group_id), 0)


def _decode_value(cls: type[Any], value: bytes) -> Any:
    return decode(cls, _TYPE.unpack_from(value)[0], value[2:])


def _restore_group(group_id: str, value: GroupMetadataValue, now_wall_ms: int) -> Group:
    timestamp = value.current_state_timestamp if value.current_state_timestamp >= 0 else now_wall_ms
    group = Group(group_id, timestamp, GroupState.STABLE if value.members else GroupState.EMPTY)
    group.generation_id = value.generation
    group.protocol_type = value.protocol_type or None
    group.protocol_name = value.protocol
    group.leader_id = value.leader
    for member in value.members:
        group.add(
            Member(
                member.member_id,
                member.group_instance_id,
                member.client_id,
                member.client_host,
                member.session_timeout if member.rebalance_timeout < 0 else member.rebalance_timeout,
                member.session_timeout,
                value.protocol_type,
                [(value.protocol or "", member.subscription)],
                member.assignment,
            )
        )
    return group


def _coordinator_error(error: KafkaError) -> KafkaError:
    """The error of an append as clients of a coordinator understand it."""
    if isinstance(error, UnknownTopicOrPartitionError | NotEnoughReplicasError):
        return CoordinatorNotAvailableError()
    if isinstance(error, StorageError):
        return NotCoordinatorError()
    if isinstance(error, RecordTooLargeError | RecordBatchTooLargeError):
        return InvalidCommitOffsetSizeError()
    return UnknownServerError()
