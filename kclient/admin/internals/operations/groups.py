"""Listing and deleting groups, and removing their members."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import attrgetter
from typing import Any

from kclient.admin.groups import GroupListing
from kclient.admin.internals.context import (
    COORDINATOR_MOVED,
    OperationContext,
    accepted_answer_about,
    retry_on_codes,
    settle_each,
)
from kclient.admin.internals.driver import Target
from kclient.admin.internals.fan_out import RetryOn, ask_coordinators, ask_every_broker, settle_brokers
from kclient.admin.internals.operations.group_descriptions import describe_consumer_groups
from kclient.admin.internals.steps import Operation
from kclient.errors import Errors, KafkaError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.list_groups import ListGroupsRequest
from kclient.utils.futures import KafkaFuture

# The first version in which several members can leave, and those of a given group.instance.id (KIP-345).
_FIRST_LEAVE_GROUP_OF_SEVERAL = 3

_LONGEST_REASON = 255


def list_groups(
    context: OperationContext,
    states: Collection[str],
    types: Collection[str],
    protocol_types: Collection[str],
) -> Operation[dict[str, GroupListing]]:
    """ListGroups at every broker, as each knows only the groups that it coordinates."""
    # A broker that cannot filter says no more of a group either by which it could be done here.
    first_version = 5 if types else 4 if states else None
    request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))
    retry = retry_on_codes(lambda message: [message], *COORDINATOR_MOVED)
    answers = yield from ask_every_broker(context, request, retry, min_version=first_version)

    def listed(_: int, answer: Any) -> dict[str, GroupListing]:
        return {
            group.group_id: GroupListing(
                group.group_id, group.protocol_type, group.group_state, group.group_type
            )
            for group in answer.groups
            if not protocol_types or group.protocol_type in protocol_types
        }

    return settle_brokers(answers, listed, "Listing groups")


def delete_groups(context: OperationContext, group_ids: Sequence[str]) -> Operation[dict[str, None]]:
    """DeleteGroups at the groups' coordinators, which ask for no type."""
    from kclient.protocol.messages.delete_groups import DeleteGroupsRequest

    def ask(coordinator: Target, groups: list[str], retry_on: RetryOn | None) -> KafkaFuture[Any]:
        request = DeleteGroupsRequest(groups_names=groups)
        return context.call(ApiKeys.DELETE_GROUPS, request, coordinator, retry_on)

    def read(_: list[str], answer: Any) -> dict[str, KafkaError | None]:
        return {each.group_id: Errors.for_code(each.error_code) for each in answer.results}

    retry = retry_on_codes(attrgetter("results"), *COORDINATOR_MOVED)
    outcomes = yield from ask_coordinators(context, group_ids, ask, read, retry)
    return settle_each(group_ids, outcomes, "Deleting groups")


def remove_members(
    context: OperationContext, group_id: str, instance_ids: Collection[str] | None, reason: str | None
) -> Operation[dict[str, None]]:
    """LeaveGroup at the group's coordinator for members; without `instance_ids` for all that it describes."""
    from kclient.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity

    said = "member was removed by an admin" + (f": {reason}" if reason else "")
    said = said[:_LONGEST_REASON]
    if instance_ids is None:
        described = yield from describe_consumer_groups(context, [group_id], False)
        leaving = [
            MemberIdentity(member_id=member.member_id, reason=said)
            if member.group_instance_id is None
            else MemberIdentity(group_instance_id=member.group_instance_id, reason=said)
            for member in described[group_id].members
        ]
    else:
        leaving = [MemberIdentity(group_instance_id=each, reason=said) for each in instance_ids]
    if not leaving:
        return {}
    call = context.call(
        ApiKeys.LEAVE_GROUP,
        LeaveGroupRequest(group_id=group_id, members=leaving),
        Target.of_group(group_id),
        retry_on_codes(lambda message: [message], *COORDINATOR_MOVED),
        min_version=_FIRST_LEAVE_GROUP_OF_SEVERAL,
    )
    answer = yield from accepted_answer_about(group_id, call, "Removing members")
    outcomes = {_name(member): Errors.for_code(member.error_code) for member in answer.members}
    return settle_each(list(map(_name, leaving)), outcomes, f"Removing members from group {group_id}")


def _name(member: Any) -> str:
    name: str = member.member_id if member.group_instance_id is None else member.group_instance_id
    return name
