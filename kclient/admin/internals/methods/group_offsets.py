"""Methods for the offsets of groups: those that consumers commit, and those from which share groups go on."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import overload

from kclient.admin.groups import SharePartitionOffsetInfo
from kclient.admin.internals import operations
from kclient.admin.internals.arguments import (
    check_flag,
    checked_commits,
    checked_group,
    checked_group_partitions,
    checked_partitions,
    checked_starts,
    checked_topics,
)
from kclient.admin.internals.methods.base import AdminMethods
from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition


class GroupOffsetMethods(AdminMethods):
    """Offsets of groups."""

    @overload
    def list_consumer_group_offsets(
        self,
        group_id: str,
        partitions: Collection[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, OffsetAndMetadata | None]: ...

    @overload
    def list_consumer_group_offsets(
        self,
        group_id: Mapping[str, Collection[TopicPartition] | None],
        *,
        require_stable: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[str, dict[TopicPartition, OffsetAndMetadata | None]]: ...

    def list_consumer_group_offsets(
        self,
        group_id: str | Mapping[str, Collection[TopicPartition] | None],
        partitions: Collection[TopicPartition] | None = None,
        *,
        require_stable: bool = False,
        timeout_ms: int | None = None,
    ) -> (
        dict[TopicPartition, OffsetAndMetadata | None]
        | dict[str, dict[TopicPartition, OffsetAndMetadata | None]]
    ):
        """Return the offsets that `group_id` has committed, for all its partitions or for `partitions`.

        Of several groups, given as a mapping from each to its partitions or None, they are returned by group, with one
        request to each coordinator (KIP-709).

        A partition of `partitions` without a committed offset has None. `require_stable` waits for transactions that
        have offsets of the group and have not ended (KIP-447); a partition without a committed offset has to be named
        for that. Raises UnsupportedVersionError for brokers before 2.5.
        """
        check_flag("require_stable", require_stable)
        if isinstance(group_id, Mapping):
            if partitions is not None:
                raise TypeError("partitions: those of several groups are values of the mapping")
            specs = checked_group_partitions(group_id)
            what, of_several = (
                f"Listing the offsets of groups {', '.join(specs)}",
                operations.group_offsets.list_groups_offsets,
            )
            return self._run(what, timeout_ms, of_several, specs, require_stable)
        checked_group(group_id)
        wanted = None if partitions is None else checked_partitions(partitions)
        what, of_one = f"Listing the offsets of group {group_id}", operations.group_offsets.list_group_offsets
        return self._run(what, timeout_ms, of_one, group_id, wanted, require_stable)

    def alter_consumer_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        *,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, None]:
        """Commit `offsets` in the place of a group without members; others of its partitions stay as they are.

        Raises UnknownMemberIdError for a group that has members, UnknownTopicOrPartitionError.
        """
        checked_group(group_id)
        wanted = checked_commits(offsets)
        what = f"Altering the offsets of group {group_id}"
        operation = operations.group_offsets.alter_group_offsets
        return self._run(what, timeout_ms, operation, group_id, wanted)

    def delete_consumer_group_offsets(
        self, group_id: str, partitions: Collection[TopicPartition], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, None]:
        """Delete the offsets that a group has committed for `partitions` (KIP-496).

        Raises GroupSubscribedToTopicError for topics that members read, GroupIdNotFoundError, GroupNotEmptyError where
        the members' topics are not known.
        """
        checked_group(group_id)
        wanted = checked_partitions(partitions)
        what = f"Deleting offsets of group {group_id}"
        operation = operations.group_offsets.delete_group_offsets
        return self._run(what, timeout_ms, operation, group_id, wanted)

    def list_share_group_offsets(
        self, groups: Mapping[str, Collection[TopicPartition] | None], *, timeout_ms: int | None = None
    ) -> dict[str, dict[TopicPartition, SharePartitionOffsetInfo | None]]:
        """Return the places from which share groups go on, for `groups`' partitions, or all of them for None (KIP-932).

        A partition of which a group knows nothing has None.
        """
        specs = checked_group_partitions(groups)
        what = f"Listing the offsets of share groups {', '.join(specs)}"
        operation = operations.share_group_offsets.list_share_group_offsets
        return self._run(what, timeout_ms, operation, specs)

    def alter_share_group_offsets(
        self, group_id: str, offsets: Mapping[TopicPartition, int], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, None]:
        """Have a share group without members go on from `offsets`; what it had acknowledged behind them is forgotten.

        Raises GroupNotEmptyError, UnknownTopicOrPartitionError.
        """
        checked_group(group_id)
        wanted = checked_starts(offsets)
        what = f"Altering the offsets of share group {group_id}"
        operation = operations.share_group_offsets.alter_share_group_offsets
        return self._run(what, timeout_ms, operation, group_id, wanted)

    def delete_share_group_offsets(
        self, group_id: str, topics: Iterable[str], *, timeout_ms: int | None = None
    ) -> dict[str, None]:
        """Have a share group without members forget `topics`, all of their partitions.

        Raises GroupNotEmptyError, GroupIdNotFoundError, UnknownTopicOrPartitionError.
        """
        checked_group(group_id)
        wanted = checked_topics(topics, "topics")
        what = f"Deleting offsets of share group {group_id}"
        operation = operations.share_group_offsets.delete_share_group_offsets
        return self._run(what, timeout_ms, operation, group_id, wanted)
