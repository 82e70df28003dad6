"""Methods for groups of every type and their members."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from kclient.admin.groups import GroupDescription, GroupListing
from kclient.admin.internals import operations
from kclient.admin.internals.arguments import (
    check_flag,
    checked_group,
    checked_groups,
    checked_members,
    checked_reason,
    checked_words,
)
from kclient.admin.internals.methods.base import AdminMethods


class GroupMethods(AdminMethods):
    """Groups and their members."""

    def list_groups(
        self,
        *,
        states: Collection[str] = (),
        types: Collection[str] = (),
        protocol_types: Collection[str] = (),
        timeout_ms: int | None = None,
    ) -> dict[str, GroupListing]:
        """Every group by id, of all brokers, narrowed to `states`, `types` and `protocol_types` where given.

        `types` are "classic", "consumer", "share" and "streams"; the protocol type of a group of offsets alone is "".
        Raises UnsupportedVersionError for brokers that know no states (before 2.6, KIP-518) or types (before 3.8).
        """
        wanted_states, wanted_types = checked_words("states", states), checked_words("types", types)
        protocols = checked_words("protocol_types", protocol_types)
        operation = operations.groups.list_groups
        return self._run("Listing groups", timeout_ms, operation, wanted_states, wanted_types, protocols)

    def describe_groups(
        self,
        group_ids: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[str, GroupDescription]:
        """State, members and assignments of groups, for who does not know of which type they are.

        Groups of Kafka Streams are not described. `include_authorized_operations` asks for what the caller may do with
        each (KIP-430). Raises GroupIdNotFoundError; brokers before 4.0 say instead that the group is Dead.
        """
        wanted = checked_groups(group_ids)
        check_flag("include_authorized_operations", include_authorized_operations)
        what, operation = (
            f"Describing groups {', '.join(wanted)}",
            operations.group_descriptions.describe_groups,
        )
        return self._run(what, timeout_ms, operation, wanted, include_authorized_operations)

    def describe_consumer_groups(
        self,
        group_ids: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[str, GroupDescription]:
        """As `describe_groups`, of groups of consumers alone, of either protocol (KIP-848)."""
        wanted = checked_groups(group_ids)
        check_flag("include_authorized_operations", include_authorized_operations)
        what = f"Describing consumer groups {', '.join(wanted)}"
        operation = operations.group_descriptions.describe_consumer_groups
        return self._run(what, timeout_ms, operation, wanted, include_authorized_operations)

    def describe_classic_groups(
        self,
        group_ids: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[str, GroupDescription]:
        """As `describe_groups`, of classic groups alone, whatever their members are (KIP-1043)."""
        wanted = checked_groups(group_ids)
        check_flag("include_authorized_operations", include_authorized_operations)
        what = f"Describing classic groups {', '.join(wanted)}"
        operation = operations.group_descriptions.describe_classic_groups
        return self._run(what, timeout_ms, operation, wanted, include_authorized_operations)

    def describe_share_groups(
        self,
        group_ids: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout_ms: int | None = None,
    ) -> dict[str, GroupDescription]:
        """As `describe_groups`, of share groups alone (KIP-932)."""
        wanted = checked_groups(group_ids)
        check_flag("include_authorized_operations", include_authorized_operations)
        what = f"Describing share groups {', '.join(wanted)}"
        operation = operations.group_descriptions.describe_share_groups
        return self._run(what, timeout_ms, operation, wanted, include_authorized_operations)

    def delete_groups(self, group_ids: Iterable[str], *, timeout_ms: int | None = None) -> dict[str, None]:
        """Delete groups without members, and their offsets (KIP-229). Brokers do not ask of which type they are.

        Raises GroupNotEmptyError and GroupIdNotFoundError.
        """
        wanted = checked_groups(group_ids)
        what = f"Deleting groups {', '.join(wanted)}"
        return self._run(what, timeout_ms, operations.groups.delete_groups, wanted)

    delete_consumer_groups = delete_groups
    delete_share_groups = delete_groups

    def remove_members_from_consumer_group(
        self,
        group_id: str,
        group_instance_ids: Iterable[str] | None = None,
        *,
        reason: str | None = None,
        timeout_ms: int | None = None,
    ) -> dict[str, None]:
        """Remove the static members that have these `group_instance_ids`, or all members without them (KIP-345).

        Members that still run are told at their next heartbeat, and join again. `reason` is for the brokers' logs.
        Returns the members by group.instance.id, those that are not static by member id. Raises UnknownMemberIdError.
        """
        checked_group(group_id)
        wanted, said = checked_members(group_instance_ids), checked_reason(reason)
        what = f"Removing members from group {group_id}"
        return self._run(what, timeout_ms, operations.groups.remove_members, group_id, wanted, said)
