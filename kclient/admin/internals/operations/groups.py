"""Listing, describing and deleting consumer groups."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from kclient.admin.internals.context import COORDINATOR_MOVED, OperationContext, retry_on_codes, settle
from kclient.admin.internals.driver import Role, Target, coordinator_of, coordinator_request
from kclient.admin.internals.steps import Operation
from kclient.admin.types import GroupDescription, GroupListing, MemberDescription
from kclient.common.node import Node
from kclient.common.topic_partition import TopicPartition
from kclient.errors import Errors, KafkaError, SchemaError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.codec import decode_versioned
from kclient.protocol.messages.consumer_protocol import ConsumerProtocolAssignment
from kclient.protocol.messages.delete_groups import DeleteGroupsRequest
from kclient.protocol.messages.describe_groups import DescribeGroupsRequest
from kclient.protocol.messages.list_groups import ListGroupsRequest
from kclient.protocol.messages.metadata import MetadataRequest


def list_groups(
    context: OperationContext, states: Collection[str], types: Collection[str]
) -> Operation[dict[str, GroupListing]]:
    """ListGroups at every broker, as each knows only the groups that it coordinates."""
    (metadata,) = yield [context.call(ApiKeys.METADATA, MetadataRequest(topics=[]))]
    if isinstance(metadata, KafkaError):
        raise metadata

    def build(version: int) -> ListGroupsRequest:
        # The broker filters where it can; older ones are filtered below.
        return ListGroupsRequest(
            states_filter=list(states) if version >= 4 else [],
            types_filter=list(types) if version >= 5 else [],
        )

    retry = retry_on_codes(lambda message: [message.error_code], *COORDINATOR_MOVED)
    brokers = [broker.node_id for broker in metadata.brokers]
    answers = yield [
        context.call(ApiKeys.LIST_GROUPS, build, Target(Role.NODE, node_id=node_id), retry)
        for node_id in brokers
    ]
    results: dict[str, GroupListing] = {}
    errors: dict[str, KafkaError] = {}
    for node_id, answer in zip(brokers, answers, strict=True):
        error = answer if isinstance(answer, KafkaError) else Errors.for_code(answer.error_code)
        if error is not None:
            errors[f"broker {node_id}"] = error
            continue
        for group in answer.groups:
            listing = GroupListing(group.group_id, group.protocol_type, group.group_state, group.group_type)
            if states and listing.state and listing.state not in states:
                continue
            results[group.group_id] = listing
    return settle(results, errors, "Listing groups")


def describe_groups(
    context: OperationContext, group_ids: Sequence[str]
) -> Operation[dict[str, GroupDescription]]:
    """DescribeGroups at each group's coordinator."""
    retry = retry_on_codes(lambda message: [group.error_code for group in message.groups], *COORDINATOR_MOVED)
    answers = yield [
        context.call(
            ApiKeys.DESCRIBE_GROUPS,
            DescribeGroupsRequest(groups=[group_id]),
            Target(Role.COORDINATOR, group_id),
            retry,
        )
        for group_id in group_ids
    ]
    # Where each group's coordinator is, for the description; a lookup of its own, as the driver's may be older.
    places = yield [
        context.call(ApiKeys.FIND_COORDINATOR, coordinator_request(group_id)) for group_id in group_ids
    ]
    results: dict[str, GroupDescription] = {}
    errors: dict[str, KafkaError] = {}
    for group_id, answer, place in zip(group_ids, answers, places, strict=True):
        if isinstance(answer, KafkaError):
            errors[group_id] = answer
            continue
        group = answer.groups[0]
        error = Errors.for_code(group.error_code, group.error_message)
        if error is not None:
            errors[group_id] = error
            continue
        results[group_id] = _description(group, place)
    return settle(results, errors, "Describing groups")


def _description(group: Any, place: Any) -> GroupDescription:
    coordinator = Node(-1, "", -1)
    if not isinstance(place, KafkaError):
        there = coordinator_of(place)
        coordinator = Node(there.node_id, there.host, there.port)
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
    retry = retry_on_codes(
        lambda message: [result.error_code for result in message.results], *COORDINATOR_MOVED
    )
    answers = yield [
        context.call(
            ApiKeys.DELETE_GROUPS,
            DeleteGroupsRequest(groups_names=[group_id]),
            Target(Role.COORDINATOR, group_id),
            retry,
        )
        for group_id in group_ids
    ]
    results: dict[str, None] = {}
    errors: dict[str, KafkaError] = {}
    for group_id, answer in zip(group_ids, answers, strict=True):
        error = answer if isinstance(answer, KafkaError) else Errors.for_code(answer.results[0].error_code)
        if error is None:
            results[group_id] = None
        else:
            errors[group_id] = error
    return settle(results, errors, "Deleting groups")
