"""Tables of `kclient groups --describe`: offsets, members and states of groups of consumers."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial

from kclient.admin import GroupDescription, KafkaAdminClient, OffsetSpec
from kclient.cli.group_output import Row, by_topic, complain_of_groups, node_text, note, of_each, print_rows
from kclient.cli.group_plans import leaders_of
from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.errors import GroupIdNotFoundError, KafkaError

_REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


def print_described(
    admin: KafkaAdminClient,
    described: Mapping[str, GroupDescription],
    errors: dict[str, KafkaError],
    options: argparse.Namespace,
) -> int:
    """Print the table that the options ask for, and say which groups there are not; the exit code."""
    # Brokers before Kafka 4.0 do not know a group that is not there from one that is dead.
    dead = {group: GroupIdNotFoundError() for group, one in described.items() if one.state == "Dead"}
    groups = [one for group, one in sorted(described.items()) if group not in dead]
    if groups or not (errors or dead):
        if options.state is not None:
            _print_states(groups, options)
        elif options.members:
            _print_members(groups, options)
        else:
            _print_offsets(admin, groups, options)
    for one in groups:
        if one.state == "Empty":
            note(f"Consumer group '{one.group_id}' has no active members.")
        elif one.state in _REBALANCING:
            note(f"Warning: Consumer group '{one.group_id}' is rebalancing.")
    return complain_of_groups({**errors, **dead})


def _print_states(groups: Sequence[GroupDescription], options: argparse.Namespace) -> None:
    columns = {
        "group": "GROUP",
        "coordinator": "COORDINATOR (ID)",
        "assignment_strategy": "ASSIGNMENT-STRATEGY",
        "state": "STATE",
    }
    if options.details:
        columns |= {"group_epoch": "GROUP-EPOCH", "target_assignment_epoch": "TARGET-ASSIGNMENT-EPOCH"}
    rows = (
        {
            "group": one.group_id,
            "coordinator": node_text(one.coordinator),
            "assignment_strategy": one.partition_assignor or None,
            "state": one.state,
            "group_epoch": one.group_epoch,
            "target_assignment_epoch": one.target_assignment_epoch,
            "members": len(one.members),
        }
        for one in groups
    )
    print_rows(columns | {"members": "#MEMBERS"}, rows, options)


def _print_members(groups: Sequence[GroupDescription], options: argparse.Namespace) -> None:
    rows: list[Row] = [
        {
            "group": one.group_id,
            "consumer_id": member.member_id,
            "group_instance_id": member.group_instance_id,
            "host": member.host,
            "client_id": member.client_id,
            "partitions": len(member.assignment),
            "current_epoch": member.member_epoch,
            "current_assignment": by_topic(member.assignment),
            "target_epoch": one.target_assignment_epoch,
            "target_assignment": by_topic(member.target_assignment),
            "upgraded": member.upgraded,
        }
        for one in groups
        for member in one.members
    ]
    columns = {"group": "GROUP", "consumer_id": "CONSUMER-ID"}
    if any(row["group_instance_id"] is not None for row in rows):
        columns["group_instance_id"] = "GROUP-INSTANCE-ID"
    columns |= {"host": "HOST", "client_id": "CLIENT-ID", "partitions": "#PARTITIONS"}
    if options.details:
        columns |= {
            "current_epoch": "CURRENT-EPOCH",
            "current_assignment": "CURRENT-ASSIGNMENT",
            "target_epoch": "TARGET-EPOCH",
            "target_assignment": "TARGET-ASSIGNMENT",
        }
        if any({True, False} <= {member.upgraded for member in one.members} for one in groups):
            columns["upgraded"] = "UPGRADED"  # members of both protocols
    print_rows(columns, rows, options)


def _print_offsets(
    admin: KafkaAdminClient, groups: Sequence[GroupDescription], options: argparse.Namespace
) -> None:
    wanted = {one.group_id: None for one in groups}
    committed = admin.list_consumer_group_offsets(wanted, timeout_ms=options.timeout) if wanted else {}
    everything = {tp for offsets in committed.values() for tp in offsets}
    everything |= {tp for one in groups for member in one.members for tp in member.assignment}
    ends = _ends(admin, everything, options.timeout)
    columns = {"group": "GROUP", "topic": "TOPIC", "partition": "PARTITION"}
    if options.details:
        columns["leader_epoch"] = "LEADER-EPOCH"
    columns |= {
        "current_offset": "CURRENT-OFFSET",
        "log_end_offset": "LOG-END-OFFSET",
        "lag": "LAG",
        "consumer_id": "CONSUMER-ID",
        "host": "HOST",
        "client_id": "CLIENT-ID",
    }
    rows = (row for one in groups for row in _offsets(one, committed[one.group_id], ends))
    print_rows(columns, rows, options)


def _offsets(
    group: GroupDescription,
    committed: Mapping[TopicPartition, OffsetAndMetadata | None],
    ends: Mapping[TopicPartition, int],
) -> Iterator[Row]:
    """Partitions of members, of those with the most first; then those that nobody has."""
    shares = [
        (member.assignment, (member.member_id, member.host, member.client_id))
        for member in sorted(group.members, key=lambda member: -len(member.assignment))
    ]
    assigned = {tp for share, _ in shares for tp in share}
    left = tuple(tp for tp in committed if tp not in assigned)
    for share, (consumer_id, host, client_id) in [*shares, (left, (None, None, None))]:
        for tp in sorted(share):
            offset, end = committed.get(tp), ends.get(tp)
            yield {
                "group": group.group_id,
                "topic": tp.topic,
                "partition": tp.partition,
                "leader_epoch": None if offset is None else offset.leader_epoch,
                "current_offset": None if offset is None else offset.offset,
                "log_end_offset": end,
                "lag": None if offset is None or end is None else end - offset.offset,
                "consumer_id": consumer_id,
                "host": host,
                "client_id": client_id,
            }


def _ends(
    admin: KafkaAdminClient, partitions: Collection[TopicPartition], timeout_ms: int | None
) -> dict[TopicPartition, int]:
    """Ends of partitions that have one: a topic may be deleted, or without a leader for now."""
    led = [tp for tp, has_leader in leaders_of(admin, partitions, timeout_ms).items() if has_leader]
    if not led:
        return {}
    list_ends = partial(admin.list_offsets, dict.fromkeys(led, OffsetSpec.LATEST), timeout_ms=timeout_ms)
    return {tp: one.offset for tp, one in of_each(list_ends, led)[0].items()}
