"""Describing groups: each type has a request of its own, to which groups of other types do not exist."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import Any

import attrs

from kclient.admin.groups import GroupDescription, MemberDescription
from kclient.admin.internals.context import COORDINATOR_MOVED, OperationContext, retry_on_codes, settle_each
from kclient.admin.internals.driver import Target
from kclient.admin.internals.fan_out import RetryOn, ask_coordinators
from kclient.admin.internals.steps import Operation
from kclient.common.acl import AclOperation
from kclient.common.node import Node
from kclient.common.topic_partition import TopicPartition
from kclient.errors import Errors, GroupIdNotFoundError, KafkaError, SchemaError, UnsupportedVersionError
from kclient.protocol.codec import decode_versioned
from kclient.protocol.messages.consumer_protocol import ConsumerProtocolAssignment
from kclient.utils.futures import KafkaFuture

# The number in place of a set of operations that was not asked for, or that the broker is too old to tell.
_OMITTED_OPERATIONS = -(2**31)
_FIRST_DESCRIBE_GROUPS_WITH_OPERATIONS = 3
_NOWHERE = Node(-1, "", -1)


@attrs.frozen
class _Kind:
    """A type of groups: its request, and a description from the answer's part about one group."""

    request: Callable[[list[str], bool], Any]
    describe: Callable[[Any, Node], GroupDescription]
    first_version_with_operations: int = 0


def describe_groups(
    context: OperationContext, group_ids: Sequence[str], with_operations: bool
) -> Operation[dict[str, GroupDescription]]:
    """Describe groups of any type but streams."""
    kinds = (*_OF_CONSUMERS, _SHARE)
    outcomes = yield from _describe(context, group_ids, kinds, with_operations)
    return settle_each(group_ids, outcomes, "Describing groups")


def describe_consumer_groups(
    context: OperationContext, group_ids: Sequence[str], with_operations: bool
) -> Operation[dict[str, GroupDescription]]:
    """Describe groups of the type consumer, and classic ones of consumers or without members ever."""
    outcomes = yield from _describe(context, group_ids, _OF_CONSUMERS, with_operations)
    for group_id, outcome in outcomes.items():
        if isinstance(outcome, GroupDescription) and outcome.protocol_type not in ("", "consumer"):
            said = f"Group {group_id} is not a consumer group, its protocol is {outcome.protocol_type}."
            outcomes[group_id] = GroupIdNotFoundError(said)
    return settle_each(group_ids, outcomes, "Describing groups")


def describe_classic_groups(
    context: OperationContext, group_ids: Sequence[str], with_operations: bool
) -> Operation[dict[str, GroupDescription]]:
    """Describe classic groups, whatever their members are."""
    outcomes = yield from _describe(context, group_ids, (_CLASSIC,), with_operations)
    return settle_each(group_ids, outcomes, "Describing groups")


def describe_share_groups(
    context: OperationContext, group_ids: Sequence[str], with_operations: bool
) -> Operation[dict[str, GroupDescription]]:
    """Describe share groups."""
    outcomes = yield from _describe(context, group_ids, (_SHARE,), with_operations)
    return settle_each(group_ids, outcomes, "Describing groups")


def _describe(
    context: OperationContext, group_ids: Sequence[str], kinds: Iterable[_Kind], with_operations: bool
) -> Operation[dict[str, GroupDescription | KafkaError]]:
    """Ask for groups as of one of `kinds`, and as of the next those that are none of it."""
    found: dict[str, tuple[_Kind, Any]] = {}
    errors: dict[str, KafkaError] = {}
    left = list(group_ids)
    for kind in kinds:
        answers = yield from _ask(context, left, kind, with_operations)
        left = []
        for group_id, answer in answers.items():
            if not isinstance(answer, KafkaError):
                errors.pop(group_id, None)
                found[group_id] = (kind, answer)
                continue
            # A broker that has no such request has no such group; any other failure leaves open if there is one.
            unsupported = isinstance(answer, UnsupportedVersionError)
            if not (unsupported and group_id in errors):
                errors[group_id] = answer
            if unsupported or isinstance(answer, GroupIdNotFoundError):
                left.append(group_id)
    places = yield [context.coordinator(Target.of_group(group_id)) for group_id in found]
    descriptions = {
        group_id: kind.describe(group, _NOWHERE if isinstance(place, KafkaError) else place)
        for (group_id, (kind, group)), place in zip(found.items(), places, strict=True)
    }
    return {group_id: descriptions.get(group_id) or errors[group_id] for group_id in group_ids}


def _ask(
    context: OperationContext, group_ids: list[str], kind: _Kind, with_operations: bool
) -> Operation[dict[str, Any]]:
    def ask(coordinator: Target, groups: list[str], retry_on: RetryOn | None) -> KafkaFuture[Any]:
        request = kind.request(groups, with_operations)
        first_version = kind.first_version_with_operations if with_operations else None
        return context.call(request.API_KEY, request, coordinator, retry_on, min_version=first_version)

    def read(_: list[str], answer: Any) -> dict[str, Any]:
        return {
            group.group_id: Errors.for_code(group.error_code, group.error_message) or group
            for group in answer.groups
        }

    retry = retry_on_codes(attrgetter("groups"), *COORDINATOR_MOVED)
    return (yield from ask_coordinators(context, group_ids, ask, read, retry))


def _classic_request(group_ids: list[str], with_operations: bool) -> Any:
    from kclient.protocol.messages.describe_groups import DescribeGroupsRequest

    return DescribeGroupsRequest(groups=group_ids, include_authorized_operations=with_operations)


def _consumer_request(group_ids: list[str], with_operations: bool) -> Any:
    from kclient.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest

    return ConsumerGroupDescribeRequest(group_ids=group_ids, include_authorized_operations=with_operations)


def _share_request(group_ids: list[str], with_operations: bool) -> Any:
    from kclient.protocol.messages.share_group_describe import ShareGroupDescribeRequest

    return ShareGroupDescribeRequest(group_ids=group_ids, include_authorized_operations=with_operations)


def _classic(group: Any, coordinator: Node) -> GroupDescription:
    members = [
        MemberDescription(
            member.member_id,
            member.client_id,
            member.client_host,
            member.group_instance_id,
            _decoded(member.member_assignment) if group.protocol_type == "consumer" else (),
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
        authorized_operations=_operations(group.authorized_operations),
    )


def _consumer(group: Any, coordinator: Node) -> GroupDescription:
    members = [
        MemberDescription(
            member.member_id,
            member.client_id,
            member.client_host,
            member.instance_id,
            _partitions(member.assignment),
            _partitions(member.target_assignment),
            member.member_epoch,
            None if member.member_type < 0 else member.member_type == 1,
            member.rack_id,
        )
        for member in group.members
    ]
    return _of_broker_side("consumer", group, members, coordinator)


def _share(group: Any, coordinator: Node) -> GroupDescription:
    members = [
        MemberDescription(
            member.member_id,
            member.client_id,
            member.client_host,
            None,
            _partitions(member.assignment),
            member_epoch=member.member_epoch,
            rack_id=member.rack_id,
        )
        for member in group.members
    ]
    return _of_broker_side("share", group, members, coordinator)


def _of_broker_side(
    kind: str, group: Any, members: Iterable[MemberDescription], coordinator: Node
) -> GroupDescription:
    """A group whose partitions the broker assigns."""
    return GroupDescription(
        group.group_id,
        group.group_state,
        kind,
        group.assignor_name,
        tuple(members),
        coordinator,
        kind,
        group.group_epoch,
        group.assignment_epoch,
        _operations(group.authorized_operations),
    )


def _partitions(assignment: Any) -> tuple[TopicPartition, ...]:
    return tuple(
        TopicPartition(topic.topic_name, partition)
        for topic in assignment.topic_partitions
        for partition in topic.partitions
    )


def _decoded(data: bytes) -> tuple[TopicPartition, ...]:
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


def _operations(bits: int) -> frozenset[AclOperation] | None:
    if bits == _OMITTED_OPERATIONS:
        return None
    codes = (code for code in range(31) if bits >> code & 1)
    words = {AclOperation.UNKNOWN, AclOperation.ANY, AclOperation.ALL}
    return frozenset(map(AclOperation, codes)) - words


_CONSUMER = _Kind(_consumer_request, _consumer)
_CLASSIC = _Kind(_classic_request, _classic, _FIRST_DESCRIBE_GROUPS_WITH_OPERATIONS)
_SHARE = _Kind(_share_request, _share)
# A classic group that its first new member migrates between two requests is of neither type to them.
_OF_CONSUMERS = (_CONSUMER, _CLASSIC, _CONSUMER)
