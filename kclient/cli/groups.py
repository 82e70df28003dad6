"""`kclient groups`: list, describe and delete consumer groups; the options of kafka-consumer-groups.sh."""

from __future__ import annotations

import argparse

from kclient.admin import GroupDescription, KafkaAdminClient, OffsetSpec
from kclient.cli.common import add_client_arguments, client_settings, print_table
from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    AdminError,
    ConfigError,
    GroupIdNotFoundError,
    KafkaError,
    UnknownTopicOrPartitionError,
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--list", action="store_true", help="print the ids of all groups")
    action.add_argument("--describe", action="store_true", help="print committed offsets and lag")
    action.add_argument("--delete", action="store_true", help="delete groups that have no members")
    parser.add_argument("--group", action="append", default=[], help="a group; may be repeated")
    parser.add_argument("--all-groups", action="store_true", help="every group")
    shown = parser.add_mutually_exclusive_group()
    shown.add_argument(
        "--members", action="store_true", help="--describe prints members and their partitions"
    )
    shown.add_argument(
        "--state", action="store_true", help="--describe and --list print states and coordinators"
    )
    add_client_arguments(parser, "admin client")


def run(options: argparse.Namespace) -> int:
    if not options.list and not options.group and not options.all_groups:
        raise ConfigError("name groups with --group, or take them all with --all-groups")
    with KafkaAdminClient(client_settings(options)) as admin:
        if options.list:
            _list(admin, options.state)
            return 0
        groups = _groups_of_consumers(admin) if options.all_groups else options.group
        if options.delete:
            admin.delete_groups(groups)
            for group in groups:
                print(f"Deleted group {group}.")
            return 0
        described = _describe(admin, groups)
        if options.state:
            _describe_states(described)
        elif options.members:
            _describe_members(described)
        else:
            _describe_offsets(admin, described)
    return 0


def _groups_of_consumers(admin: KafkaAdminClient) -> list[str]:
    """Without share groups and those of Kafka Streams, which are described by other requests."""
    groups = admin.list_groups()
    return sorted(group for group, one in groups.items() if one.group_type in ("", "classic", "consumer"))


def _describe(admin: KafkaAdminClient, groups: list[str]) -> dict[str, GroupDescription]:
    errors: dict[str, KafkaError] = {}
    try:
        described = admin.describe_groups(groups)
    except GroupIdNotFoundError:
        described, errors = {}, {groups[0]: GroupIdNotFoundError()}
    except AdminError as error:
        described, errors = dict(error.results), dict(error.errors)
    # Brokers before Kafka 4.0 do not know a group that is not there from one that is dead.
    missing = [group for group in groups if isinstance(errors.get(group), GroupIdNotFoundError)]
    missing += [group for group, one in described.items() if one.state == "Dead"]
    if missing:
        what = "group" if len(missing) == 1 else "groups"
        raise GroupIdNotFoundError(f"There is no {what} {', '.join(missing)}")
    if errors:
        raise next(iter(errors.values()))
    return described


def _list(admin: KafkaAdminClient, with_state: bool) -> None:
    listed = sorted(admin.list_groups().items())
    if with_state:
        print_table(["GROUP", "STATE", "PROTOCOL"], [[g, one.state, one.protocol_type] for g, one in listed])
        return
    for group, _ in listed:
        print(group)


def _describe_states(described: dict[str, GroupDescription]) -> None:
    print_table(
        ["GROUP", "COORDINATOR", "ASSIGNOR", "STATE", ("MEMBERS", "right")],
        [
            [group, one.coordinator, one.partition_assignor or None, one.state, len(one.members)]
            for group, one in sorted(described.items())
        ],
    )


def _describe_members(described: dict[str, GroupDescription]) -> None:
    print_table(
        ["GROUP", "MEMBER", "HOST", "CLIENT", ("PARTITIONS", "right"), "ASSIGNMENT"],
        [
            [
                group,
                member.member_id,
                member.host,
                member.client_id,
                len(member.assignment),
                ", ".join(map(str, member.assignment)) or None,
            ]
            for group, one in sorted(described.items())
            for member in one.members
        ],
    )


def _describe_offsets(admin: KafkaAdminClient, described: dict[str, GroupDescription]) -> None:
    rows: list[list[object]] = []
    for group, one in sorted(described.items()):
        committed = admin.list_consumer_group_offsets(group)
        owners = {tp: member for member in one.members for tp in member.assignment}
        partitions = sorted({*committed, *owners})
        ends = _end_offsets(admin, partitions)
        for tp in partitions:
            offset = committed.get(tp)
            end = ends.get(tp)
            lag = None if offset is None or end is None else max(end - offset.offset, 0)
            owner = owners.get(tp)
            rows.append(
                [
                    group,
                    tp.topic,
                    tp.partition,
                    None if offset is None else offset.offset,
                    end,
                    lag,
                    None if owner is None else owner.member_id,
                    None if owner is None else owner.host,
                ]
            )
    right = "right"
    print_table(
        [
            "GROUP",
            "TOPIC",
            ("PARTITION", right),
            ("COMMITTED", right),
            ("END", right),
            ("LAG", right),
            "MEMBER",
            "HOST",
        ],
        rows,
    )


def _end_offsets(admin: KafkaAdminClient, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
    if not partitions:
        return {}
    try:
        listed = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST))
    except AdminError as error:
        listed = dict(error.results)  # a topic that was deleted since has no end; the others still do
    except UnknownTopicOrPartitionError:
        listed = {}  # the only one
    return {tp: offset.offset for tp, offset in listed.items()}
