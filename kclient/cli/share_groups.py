"""`kclient share-groups`: share groups, their offsets and members; the options of kafka-share-groups.sh."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import partial

from kclient.admin import GroupDescription, KafkaAdminClient
from kclient.cli.common import client_settings
from kclient.cli.group_arguments import add_group_arguments, add_reset_arguments, check_options, words
from kclient.cli.group_csv import Plan, read_plans
from kclient.cli.group_output import (
    Row,
    by_topic,
    complain_of_groups,
    node_text,
    note,
    of_each,
    print_deleted,
    print_rows,
)
from kclient.cli.group_plans import Planner, print_plans
from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    ConfigError,
    GroupIdNotFoundError,
    GroupNotEmptyError,
    IllegalStateError,
    KafkaError,
    TopicAuthorizationError,
    UnknownTopicOrPartitionError,
)

_STATES = ("Stable", "Dead", "Empty")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_group_arguments(parser, "share")
    add_reset_arguments(parser)


def run(options: argparse.Namespace) -> int:
    check_options(options)
    if options.action == "reset_offsets" and len(options.group) != 1:
        raise ConfigError("--reset-offsets of share groups is for one --group at a time")
    if any(choice.partitions is not None for choice in options.topic) and options.action == "delete_offsets":
        raise ConfigError("share groups forget topics as a whole: --delete-offsets takes no partitions")
    with KafkaAdminClient(client_settings(options)) as admin:
        if options.action == "list":
            return _list(admin, options)
        groups = _share_groups(admin, options) if options.all_groups else options.group
        if options.action == "delete":
            return _delete(admin, groups, options)
        if options.action == "delete_offsets":
            return _delete_offsets(admin, options)
        describe = partial(admin.describe_share_groups, groups, timeout_ms=options.timeout)
        described, errors = of_each(describe, groups)
        if options.action == "describe":
            return _describe(admin, described, errors, options)
        return _reset(admin, described, errors, options)


def _share_groups(admin: KafkaAdminClient, options: argparse.Namespace) -> list[str]:
    return sorted(admin.list_groups(types=["share"], timeout_ms=options.timeout))


def _list(admin: KafkaAdminClient, options: argparse.Namespace) -> int:
    states = words("--state", options.state, _STATES)
    listed = admin.list_groups(types=["share"], states=states, timeout_ms=options.timeout)
    rows = [{"group": group, "state": one.state} for group, one in sorted(listed.items())]
    if options.state is not None or options.output == "json":
        print_rows({"group": "GROUP", "state": "STATE"}, rows, options)
    else:
        for row in rows:
            print(row["group"])
    return 0


def _delete(admin: KafkaAdminClient, groups: Sequence[str], options: argparse.Namespace) -> int:
    # A broker would delete groups of every type.
    listed = set(_share_groups(admin, options))
    others: dict[str, KafkaError] = {
        group: IllegalStateError(f"Group '{group}' is not a share group.")
        for group in groups
        if group not in listed
    }
    wanted = [group for group in groups if group in listed]
    delete = partial(admin.delete_share_groups, wanted, timeout_ms=options.timeout)
    deleted, errors = of_each(delete, wanted) if wanted else ({}, {})
    return print_deleted(deleted, {**others, **errors}, "share", options)


def _describe(
    admin: KafkaAdminClient,
    described: Mapping[str, GroupDescription],
    errors: Mapping[str, KafkaError],
    options: argparse.Namespace,
) -> int:
    groups = [one for _, one in sorted(described.items())]
    if groups or not errors:
        if options.state is not None:
            _print_states(groups, options)
        elif options.members:
            _print_members(groups, options)
        else:
            _print_offsets(admin, groups, options)
    for one in groups:
        if one.state == "Empty":
            note(f"Share group '{one.group_id}' has no active members.")
    return complain_of_groups(errors)


def _print_states(groups: Sequence[GroupDescription], options: argparse.Namespace) -> None:
    columns = {"group": "GROUP", "coordinator": "COORDINATOR (ID)", "state": "STATE"}
    if options.details:
        columns |= {"group_epoch": "GROUP-EPOCH", "assignment_epoch": "ASSIGNMENT-EPOCH"}
    rows = (
        {
            "group": one.group_id,
            "coordinator": node_text(one.coordinator),
            "state": one.state,
            "group_epoch": one.group_epoch,
            "assignment_epoch": one.target_assignment_epoch,
            "members": len(one.members),
        }
        for one in groups
    )
    print_rows(columns | {"members": "#MEMBERS"}, rows, options)


def _print_members(groups: Sequence[GroupDescription], options: argparse.Namespace) -> None:
    columns = {
        "group": "GROUP",
        "consumer_id": "CONSUMER-ID",
        "host": "HOST",
        "client_id": "CLIENT-ID",
        "partitions": "#PARTITIONS",
    }
    if options.details:
        columns["member_epoch"] = "MEMBER-EPOCH"
    rows = (
        {
            "group": one.group_id,
            "consumer_id": member.member_id,
            "host": member.host,
            "client_id": member.client_id,
            "partitions": len(member.assignment),
            "member_epoch": member.member_epoch,
            "assignment": by_topic(member.assignment),
        }
        for one in groups
        for member in sorted(one.members, key=lambda member: member.member_id)
    )
    print_rows(columns | {"assignment": "ASSIGNMENT"}, rows, options)


def _print_offsets(
    admin: KafkaAdminClient, groups: Sequence[GroupDescription], options: argparse.Namespace
) -> None:
    wanted = {one.group_id: None for one in groups}
    starts = admin.list_share_group_offsets(wanted, timeout_ms=options.timeout) if wanted else {}
    columns = {"group": "GROUP", "topic": "TOPIC", "partition": "PARTITION"}
    if options.details:
        columns["leader_epoch"] = "LEADER-EPOCH"
    rows = (
        {
            "group": group,
            "topic": tp.topic,
            "partition": tp.partition,
            "leader_epoch": None if one is None else one.leader_epoch,
            "start_offset": None if one is None else one.start_offset,
            "lag": None if one is None else one.lag,
        }
        for group, found in sorted(starts.items())
        for tp, one in sorted(found.items())
    )
    print_rows(columns | {"start_offset": "START-OFFSET", "lag": "LAG"}, rows, options)
    for group, found in sorted(starts.items()):
        if not found:
            note(f"Share group '{group}' has no offset information.")


def _reset(
    admin: KafkaAdminClient,
    described: Mapping[str, GroupDescription],
    errors: Mapping[str, KafkaError],
    options: argparse.Namespace,
) -> int:
    (group,) = options.group
    error = errors.get(group)
    # A group that is not there begins with these offsets.
    if error is not None and not isinstance(error, GroupIdNotFoundError):
        raise error
    if error is None and described[group].state not in ("Empty", "Dead"):
        raise GroupNotEmptyError(f"Share group '{group}' is not empty")
    plan = _plan(admin, group, options)
    if options.execute and plan:
        admin.alter_share_group_offsets(group, plan, timeout_ms=options.timeout)
    print_plans({group: plan}, options, with_groups=False)
    return 0


def _plan(admin: KafkaAdminClient, group: str, options: argparse.Namespace) -> Plan:
    planner = Planner(admin, options)
    if options.from_file is not None:
        plans = read_plans(options.from_file, [group])
        if group not in plans:
            raise KafkaError(f"{options.from_file} has no plan for group {group}")
        return planner.within_log(plans[group])
    if options.all_topics:
        starts = admin.list_share_group_offsets({group: None}, timeout_ms=options.timeout)[group]
        partitions = list(starts)
    else:
        partitions = planner.chosen(options.topic)

    def current() -> dict[TopicPartition, int]:
        found = admin.list_share_group_offsets({group: None}, timeout_ms=options.timeout)[group]
        return {tp: one.start_offset for tp, one in found.items() if one is not None}

    return planner.plan(partitions, current)


def _delete_offsets(admin: KafkaAdminClient, options: argparse.Namespace) -> int:
    (group,) = options.group
    topics = list(dict.fromkeys(choice.topic for choice in options.topic))
    delete = partial(admin.delete_share_group_offsets, group, topics, timeout_ms=options.timeout)
    _, errors = of_each(delete, topics)
    of_topics = (TopicAuthorizationError, UnknownTopicOrPartitionError)
    if len(topics) == 1 and errors and not isinstance(errors[topics[0]], of_topics):
        raise errors[topics[0]]  # of the group as a whole
    rows: list[Row] = [
        {"topic": topic, "status": f"Error: {errors[topic]}" if topic in errors else "Successful"}
        for topic in sorted(topics)
    ]
    print_rows({"topic": "TOPIC", "status": "STATUS"}, rows, options)
    return 1 if errors else 0
