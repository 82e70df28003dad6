"""`kclient groups`: groups of consumers, their offsets and members; the options of kafka-consumer-groups.sh."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from functools import partial

from kclient.admin import GroupDescription, GroupListing, KafkaAdminClient
from kclient.cli.common import client_settings, complain
from kclient.cli.group_arguments import add_group_arguments, add_reset_arguments, check_options, words
from kclient.cli.group_csv import Plan, read_plans
from kclient.cli.group_output import (
    Row,
    of_each,
    print_deleted,
    print_rows,
)
from kclient.cli.group_plans import Planner, print_plans
from kclient.cli.group_regex import validate_regex
from kclient.cli.group_tables import print_described
from kclient.common.topic_partition import TopicPartition
from kclient.errors import (
    GroupIdNotFoundError,
    GroupSubscribedToTopicError,
    IllegalStateError,
    KafkaError,
    TopicAuthorizationError,
    UnknownTopicOrPartitionError,
)

_TYPES = ("classic", "consumer", "share", "streams")
_STATES = (
    *("PreparingRebalance", "CompletingRebalance", "Stable", "Dead", "Empty"),
    *("Assigning", "Reconciling"),
)
_OF_PARTITIONS = (GroupSubscribedToTopicError, TopicAuthorizationError, UnknownTopicOrPartitionError)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_group_arguments(parser, "consumer")
    parser.add_argument(
        "--type",
        nargs="?",
        const="",
        default=None,
        metavar="TYPE[,...]",
        help=f"--list prints types, and only groups of those given: {', '.join(_TYPES)}",
    )
    add_reset_arguments(parser, "by-duration", "shift-by")


def run(options: argparse.Namespace) -> int:
    check_options(options)
    if options.validate_regex is not None:
        return validate_regex(options)
    with KafkaAdminClient(client_settings(options)) as admin:
        if options.action == "list":
            return _list(admin, options)
        groups = _groups_of_consumers(admin, options) if options.all_groups else options.group
        if options.action == "delete":
            delete = partial(admin.delete_consumer_groups, groups, timeout_ms=options.timeout)
            deleted, errors = of_each(delete, groups)
            return print_deleted(deleted, errors, "consumer", options)
        if options.action == "delete_offsets":
            return _delete_offsets(admin, options)
        describe = partial(admin.describe_consumer_groups, groups, timeout_ms=options.timeout)
        described, errors = of_each(describe, groups)
        if options.action == "describe":
            return print_described(admin, described, errors, options)
        return _reset(admin, groups, described, errors, options)


def _of_consumers(group: GroupListing) -> bool:
    return group.group_type in ("", "classic", "consumer") and group.protocol_type in ("", "consumer")


def _groups_of_consumers(admin: KafkaAdminClient, options: argparse.Namespace) -> list[str]:
    listed = admin.list_groups(timeout_ms=options.timeout)
    return sorted(group for group, one in listed.items() if _of_consumers(one))


def _list(admin: KafkaAdminClient, options: argparse.Namespace) -> int:
    states, types = words("--state", options.state, _STATES), words("--type", options.type, _TYPES)
    listed = admin.list_groups(states=states, timeout_ms=options.timeout)
    rows = [
        {"group": group, "type": one.group_type, "state": one.state, "protocol_type": one.protocol_type}
        for group, one in sorted(listed.items())
        if (one.group_type in types and (_of_consumers(one) or one.group_type not in ("classic", "consumer")))
        or (not types and _of_consumers(one))
    ]
    columns = {"group": "GROUP"}
    if options.type is not None:
        columns["type"] = "TYPE"
    if options.state is not None:
        columns["state"] = "STATE"
    if options.output == "json":
        print_rows(columns, rows, options)
    elif len(columns) == 1:
        for row in rows:
            print(row["group"])
    else:
        named = ({**row, "type": row["type"].capitalize() or "Unknown"} for row in rows)
        print_rows(columns, named, options)
    return 0


def _reset(
    admin: KafkaAdminClient,
    groups: Sequence[str],
    described: Mapping[str, GroupDescription],
    errors: Mapping[str, KafkaError],
    options: argparse.Namespace,
) -> int:
    planner, plans = Planner(admin, options), dict[str, Plan]()
    from_file = None if options.from_file is None else read_plans(options.from_file, groups)
    for group in groups:
        try:
            _check_inactive(admin, group, described.get(group), errors.get(group), options)
            plans[group] = _plan(admin, planner, group, from_file, options)
            if options.execute and plans[group]:
                admin.alter_consumer_group_offsets(group, plans[group], timeout_ms=options.timeout)
        except KafkaError as error:
            plans.pop(group, None)
            complain("error", error)
    print_plans(plans, options, with_groups=options.all_groups or len(options.group) > 1)
    return 0 if len(plans) == len(groups) else 1


def _check_inactive(
    admin: KafkaAdminClient,
    group: str,
    described: GroupDescription | None,
    error: KafkaError | None,
    options: argparse.Namespace,
) -> None:
    if described is not None:
        if described.state not in ("Empty", "Dead"):
            raise IllegalStateError(
                f"Offsets can only be reset while a group is inactive; '{group}' is {described.state}"
            )
    elif isinstance(error, GroupIdNotFoundError):
        # A group that is not there begins with these offsets, unless it is one of others.
        other = admin.list_groups(timeout_ms=options.timeout).get(group)
        if other is not None:
            raise IllegalStateError(f"'{group}' is no group of consumers, its type is {other.group_type}")
    elif error is not None:
        raise error


def _plan(
    admin: KafkaAdminClient,
    planner: Planner,
    group: str,
    from_file: Mapping[str, Plan] | None,
    options: argparse.Namespace,
) -> Plan:
    if from_file is not None:
        if group not in from_file:
            raise KafkaError(f"{options.from_file} has no plan for group {group}")
        return planner.within_log(from_file[group])

    def current() -> dict[TopicPartition, int]:
        committed = admin.list_consumer_group_offsets(group, timeout_ms=options.timeout)
        return {tp: one.offset for tp, one in committed.items() if one is not None}

    return planner.plan(list(current()) if options.all_topics else planner.chosen(options.topic), current)


def _delete_offsets(admin: KafkaAdminClient, options: argparse.Namespace) -> int:
    (group,) = options.group
    whole = [choice.topic for choice in options.topic if choice.partitions is None]
    describe = partial(admin.describe_topics, whole, timeout_ms=options.timeout)
    described, unknown = of_each(describe, whole) if whole else ({}, {})
    known = [choice for choice in options.topic if choice.topic in described or choice.partitions is not None]
    partitions = Planner(admin, options).chosen(known)
    errors: dict[TopicPartition, KafkaError] = {}
    if partitions:
        delete = partial(admin.delete_consumer_group_offsets, group, partitions, timeout_ms=options.timeout)
        _, errors = of_each(delete, partitions)
    if len(partitions) == 1 and errors and not isinstance(errors[partitions[0]], _OF_PARTITIONS):
        raise errors[partitions[0]]  # of the group as a whole
    rows = [_status(tp.topic, tp.partition, errors.get(tp)) for tp in partitions]
    rows += [_status(topic, None, error) for topic, error in unknown.items()]
    print_rows({"topic": "TOPIC", "partition": "PARTITION", "status": "STATUS"}, rows, options)
    return 1 if errors or unknown else 0


def _status(topic: str, partition: int | None, error: KafkaError | None) -> Row:
    status = "Successful" if error is None else f"Error: {error}"
    return {"topic": topic, "partition": partition, "status": status}
