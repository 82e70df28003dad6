"""Listing, describing and deleting consumer groups."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from functools import partial
from operator import attrgetter
from typing import Any

from kclient.admin.internals.context import (
    COORDINATOR_MOVED,
    OperationContext,
    retry_on_codes,
    settle,
    settle_each,
)
from kclient.admin.internals.driver import Target
from kclient.admin.internals.fan_out import ask_every_broker, settle_brokers
from kclient.admin.internals.steps import Operation
from kclient.admin.types import GroupDescription, GroupListing, MemberDescription
from kclient.common.node import Node
from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    Errors,
    GroupIdNotFoundError,
    KafkaError,
    SchemaError,
    UnknownServerError,
    UnsupportedVersionError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.codec import decode_versioned
from kclient.protocol.messages.consumer_protocol import ConsumerProtocolAssignment
from kclient.protocol.messages.delete_groups import DeleteGroupsRequest
from kclient.protocol.messages.describe_groups import DescribeGroupsRequest
from kclient.protocol.messages.list_groups import ListGroupsRequest
from kclient.utils.futures import KafkaFuture

_SAYS_NOTHING = UnknownServerError("The coordinator's answer says nothing of the group")


def list_groups(
    context: OperationContext, states: Collection[str], types: Collection[str]
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
        }

    return settle_brokers(answers, listed, "Listing groups")


def describe_groups(
    context: OperationContext, group_ids: Sequence[str]
) -> Operation[dict[str, GroupDescription]]:
    """DescribeGroups at each group's coordinator, ConsumerGroupDescribe where the group is of the new protocol."""
    answers = yield [
        _describe(context, DescribeGroupsRequest(groups=[group_id]), group_id) for group_id in group_ids
    ]
    found: dict[str, Callable[[Node], GroupDescription]] = {}
    errors: dict[str, KafkaError] = {}
    for group_id, answer in zip(group_ids, answers, strict=True):
        failed = _failure(answer)
        if failed is None:
            found[group_id] = partial(_classic, answer.groups[0])
        else:
            errors[group_id] = failed
    # A group of the new protocol is no classic group, so to that request it does not exist.
    others = [group_id for group_id, error in errors.items() if isinstance(error, GroupIdNotFoundError)]
    if others:
        from kclient.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest

        answers = yield [
            _describe(context, ConsumerGroupDescribeRequest(group_ids=[group_id]), group_id)
            for group_id in others
        ]
        for group_id, answer in zip(others, answers, strict=True):
            failed = _failure(answer)
            if failed is None:
                del errors[group_id]
                found[group_id] = partial(_consumer, answer.groups[0])
            elif not isinstance(failed, UnsupportedVersionError):
                # A broker that has no such request has no such group; any other failure leaves open if there is one.
                errors[group_id] = failed
    places = yield [context.coordinator(Target.of_group(group_id)) for group_id in found]
    results = {
        group_id: describe(Node(-1, "", -1) if isinstance(place, KafkaError) else place)
        for (group_id, describe), place in zip(found.items(), places, strict=True)
    }
    return settle(group_ids, results, errors, "Describing groups")


def _describe(context: OperationContext, request: Any, group_id: str) -> KafkaFuture[Any]:
    retry = retry_on_codes(attrgetter("groups"), *COORDINATOR_MOVED)
    return context.call(request.API_KEY, request, Target.of_group(group_id), retry)


def _failure(answer: Any) -> KafkaError | None:
    if isinstance(answer, KafkaError):
        return answer
    if not answer.groups:
        return _SAYS_NOTHING
    group = answer.groups[0]
    return Errors.for_code(group.error_code, group.error_message)


def _classic(group: Any, coordinator: Node) -> GroupDescription:
    members = [
        MemberDescription(
            member.member_id,
            member.client_id,
            member.client_host,
            member.group_instance_id,
            _assignment(member.member_assignment) if group.protocol_type == "consumer" else (),
        )
        for member in group.members
    ]
    return GroupDescription(
        group.group_id,
        group.group_state,
        group.protocol_type,
        group.protocol_data,
        tuple(members),
        coordinator,
    )


def _consumer(group: Any, coordinator: Node) -> GroupDescription:
    members = [
        MemberDescription(
            member.member_id,
            member.client_id,
            member.client_host,
            member.instance_id,
            tuple(
                TopicPartition(topic.topic_name, partition)
                for topic in member.assignment.topic_partitions
                for partition in topic.partitions
            ),
        )
        for member in group.members
    ]
    return GroupDescription(
        group.group_id, group.group_state, "consumer", group.assignor_name, tuple(members), coordinator
    )


def _assignment(data: bytes) -> tuple[TopicPartition, ...]:
    if not data:
        return ()  # a member that waits for the rebalance to end
    try:
        _, assignment = decode_versioned(ConsumerProtocolAssignment, data)
    except SchemaError:
        return ()  # the group's clients speak a protocol of their own
    return tuple(
        TopicPartition(entry.topic, partition)
        for entry in assignment.assigned_partitions
        for partition in entry.partitions
    )


def delete_groups(context: OperationContext, group_ids: Sequence[str]) -> Operation[dict[str, None]]:
    """DeleteGroups at each group's coordinator."""
    retry = retry_on_codes(attrgetter("results"), *COORDINATOR_MOVED)
    answers = yield [
        context.call(
            ApiKeys.DELETE_GROUPS,
            DeleteGroupsRequest(groups_names=[group_id]),
            Target.of_group(group_id),
            retry,
        )
        for group_id in group_ids
    ]
    outcomes: dict[str, Any] = {}
    for group_id, answer in zip(group_ids, answers, strict=True):
        if isinstance(answer, KafkaError):
            outcomes[group_id] = answer
        else:
            found = answer.results
            outcomes[group_id] = Errors.for_code(found[0].error_code) if found else _SAYS_NOTHING
    return settle_each(group_ids, outcomes, "Deleting groups")
