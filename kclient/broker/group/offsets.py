"""GroupOffsets: what groups have committed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import attrs

from kclient.broker.config import BrokerConfig
from kclient.broker.group.group import CommittedOffset, Group, GroupState
from kclient.broker.group.group_store import GroupStore, group_tombstones, offset_entry
from kclient.broker.metadata.image.metadata_delta import MetadataDelta
from kclient.broker.metadata.image.metadata_image import MetadataImage
from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    CoordinatorNotAvailableError,
    Errors,
    GroupIdNotFoundError,
    GroupNotEmptyError,
    IllegalGenerationError,
    InvalidGroupIdError,
    KafkaError,
    RebalanceInProgressError,
    UnknownMemberIdError,
)
from kclient.utils.log_context import LogContext
from kclient.utils.time import Time

if TYPE_CHECKING:
    from kclient.broker.group.coordinator import GroupCoordinator

_S = GroupState
_NO_TIME = -1
_LAST_MS = (1 << 63) - 1  # that a commit's record can hold
NO_GENERATION = -1


@attrs.frozen
class OffsetToCommit:
    """One partition's offset as a client sends it. `retention_ms` -1 leaves it to the broker."""

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    retention_ms: int = -1


@attrs.frozen
class Committer:
    """The sender of a commit: a member of a generation, or, with the defaults, a consumer that assigns
    partitions to itself and is no member.
    """

    member_id: str = ""
    instance_id: str | None = None
    generation_id: int = NO_GENERATION

    @property
    def is_member(self) -> bool:
        """True if it says that it is a member of the group."""
        return self.generation_id >= 0 or bool(self.member_id) or self.instance_id is not None


class GroupOffsets:
    """Commits, reads, deletes and expires offsets. Thread-safe by the groups' locks."""

    def __init__(
        self,
        groups: GroupCoordinator,
        store: GroupStore,
        time: Time,
        log_context: LogContext,
        config: BrokerConfig,
    ) -> None:
        self._groups = groups
        self._store = store
        self._time = time
        self._log = log_context.logger(__name__)
        self._metadata_max_bytes = config.offset_metadata_max_bytes
        self._retention_ms = config.offsets_retention_minutes * 60_000

    def commit(
        self, group_id: str, committer: Committer, offsets: Mapping[TopicPartition, OffsetToCommit]
    ) -> dict[TopicPartition, int]:
        """Commit; returns an error code for each partition.

        Raises, if nothing can be committed, InvalidGroupIdError, UnknownMemberIdError, FencedInstanceIdError,
        IllegalGenerationError, RebalanceInProgressError, GroupIdNotFoundError and the errors of writing.
        """
        if not group_id:
            raise InvalidGroupIdError("The group id is empty")
        group = self._groups.group(group_id)
        if group is None:
            if committer.generation_id >= 0:
                raise GroupIdNotFoundError(
                    f"There is no group {group_id} with generation {committer.generation_id}"
                )
            group = self._groups.group_or_new(group_id)
        now_ms = self._time.wall_ms()
        with group.lock:
            self._check_committer(group, committer)
            codes: dict[TopicPartition, int] = {}
            accepted: dict[TopicPartition, CommittedOffset] = {}
            for tp, given in offsets.items():
                if len(given.metadata.encode()) > self._metadata_max_bytes:
                    codes[tp] = int(Errors.OFFSET_METADATA_TOO_LARGE)
                    continue
                codes[tp] = 0
                # Clients say "for ever" by the longest time there is.
                expires_ms = (
                    _NO_TIME if given.retention_ms == -1 else min(now_ms + given.retention_ms, _LAST_MS)
                )
                accepted[tp] = CommittedOffset(
                    given.offset, given.leader_epoch, given.metadata, now_ms, expires_ms
                )
            if accepted:
                self._store.write(
                    group_id, [offset_entry(group_id, tp, offset) for tp, offset in accepted.items()]
                )
                group.offsets.update(accepted)
            return codes

    def fetch(
        self, group_id: str, tps: Iterable[TopicPartition] | None
    ) -> dict[TopicPartition, CommittedOffset | None]:
        """Return the commits for `tps`, or for everything if that is None. A group that is not there has nothing.

        Raises NotCoordinatorError if it cannot be told.
        """
        group = self._groups.group(group_id)
        if group is None:
            return {} if tps is None else dict.fromkeys(tps)
        with group.lock:
            if tps is None:
                return dict(group.offsets)
            return {tp: group.offsets.get(tp) for tp in tps}

    def delete(self, group_id: str, tps: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Delete offsets; returns an error code for each partition.

        Raises, if none can be deleted, GroupIdNotFoundError, GroupNotEmptyError, InvalidGroupIdError and the
        errors of writing.
        """
        group = self._groups.existing_group(group_id, GroupIdNotFoundError)
        with group.lock:
            if group.is_in(_S.DEAD):
                raise GroupIdNotFoundError(f"There is no group {group_id}")
            if group.protocol_type not in {None, "consumer"} and not group.is_in(_S.EMPTY):
                raise GroupNotEmptyError(f"Group {group_id} has members that are not consumers")
            codes: dict[TopicPartition, int] = {}
            deleted: dict[TopicPartition, None] = {}  # a request may name one twice
            for tp in tps:
                if not group.is_in(_S.EMPTY) and group.subscribes_to(tp.topic):
                    codes[tp] = int(Errors.GROUP_SUBSCRIBED_TO_TOPIC)
                    continue
                codes[tp] = 0
                if tp in group.offsets:
                    deleted[tp] = None
            self._remove(group, list(deleted))
            return codes

    def on_metadata_update(self, delta: MetadataDelta, image: MetadataImage) -> None:
        """Delete the offsets in topics that are gone."""
        del image
        if delta.topics is not None and delta.topics.deleted:
            self.partitions_deleted(
                [tp for topic in delta.topics.deleted.values() for tp in topic.topic_partitions()]
            )

    def partitions_deleted(self, tps: Sequence[TopicPartition]) -> None:
        """Topics are gone: so are the offsets in them."""
        for group in self._groups.all_groups():
            with group.lock:
                self._remove_quietly(group, [tp for tp in tps if tp in group.offsets])

    def expire(self) -> None:
        """Delete offsets that nobody has used for too long, and groups that have neither members nor offsets."""
        now_ms = self._time.wall_ms()
        for group in self._groups.all_groups():
            with group.lock:
                expired = [
                    tp for tp, offset in group.offsets.items() if self._is_expired(group, tp, offset, now_ms)
                ]
                if not self._remove_quietly(group, expired):
                    continue
                if group.is_in(_S.EMPTY) and not group.offsets and not group.pending_members:
                    try:
                        self._groups.remove_group(group)
                    except KafkaError as error:
                        self._log.warning("Group %s could not be removed: %s", group.id, error)

    def _check_committer(self, group: Group, committer: Committer) -> None:
        if group.is_in(_S.DEAD):
            raise CoordinatorNotAvailableError
        if committer.generation_id < 0 and group.is_in(_S.EMPTY):
            return  # a group of one who assigns partitions to himself
        if not committer.is_member:
            raise UnknownMemberIdError(f"Group {group.id} has members; only they can commit")
        group.validated_member(committer.member_id, committer.instance_id)
        if committer.generation_id != group.generation_id:
            raise IllegalGenerationError(
                f"Group {group.id} has generation {group.generation_id}, not {committer.generation_id}"
            )
        # While a rebalance is being prepared the members of the old generation still own what they read, and
        # commit it before they give it up. Once the new generation is there, the partitions may be somebody
        # else's.
        if group.is_in(_S.COMPLETING_REBALANCE):
            raise RebalanceInProgressError

    def _is_expired(self, group: Group, tp: TopicPartition, offset: CommittedOffset, now_ms: int) -> bool:
        if group.is_in(_S.EMPTY):
            if offset.expire_timestamp_ms != _NO_TIME:
                return now_ms >= offset.expire_timestamp_ms
            unused_since_ms = offset.commit_timestamp_ms
            if group.protocol_type is not None:
                unused_since_ms = max(unused_since_ms, group.state_timestamp_ms)
            return now_ms - unused_since_ms >= self._retention_ms
        if group.is_in(_S.STABLE) and group.protocol_type == "consumer" and not group.subscribes_to(tp.topic):
            return now_ms - offset.commit_timestamp_ms >= self._retention_ms
        return False

    def _remove(self, group: Group, tps: Sequence[TopicPartition]) -> None:
        if tps:
            self._store.write(group.id, group_tombstones(group, tps, whole=False))
            for tp in tps:
                del group.offsets[tp]

    def _remove_quietly(self, group: Group, tps: Sequence[TopicPartition]) -> bool:
        try:
            self._remove(group, tps)
        except KafkaError as error:
            self._log.warning("Offsets of group %s could not be removed: %s", group.id, error)
            return False
        return True
