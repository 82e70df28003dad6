"""`kclient topics`: list, describe, create and delete topics; the options of kafka-topics.sh."""

from __future__ import annotations

import argparse
import re

from kclient.admin import KafkaAdminClient, NewTopic
from kclient.cli.common import add_client_arguments, add_pairs, client_settings, positive, print_table
from kclient.common.node import Node
from kclient.common.topic_partition import PartitionInfo
from kclient.errors import ConfigError, TopicExistsError, UnknownTopicOrPartitionError
from kclient.utils.text import counted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--list", action="store_true", help="print the names of all topics")
    action.add_argument("--describe", action="store_true", help="print partitions, leaders and replicas")
    action.add_argument("--create", action="store_true", help="create --topic")
    action.add_argument("--delete", action="store_true", help="delete --topic and all its records")
    parser.add_argument("--topic", help="the topic; a regular expression for --describe and --delete")
    parser.add_argument(
        "--partitions", type=positive, help="for --create (default: the broker's num.partitions)"
    )
    parser.add_argument("--replication-factor", type=positive, help="for --create (default: the broker's)")
    add_pairs(parser, "--config", help="a topic setting for --create; may be repeated")
    parser.add_argument(
        "--if-not-exists", action="store_true", help="--create succeeds if the topic is there"
    )
    parser.add_argument(
        "--if-exists", action="store_true", help="--delete succeeds if the topic is not there"
    )
    parser.add_argument("--exclude-internal", action="store_true", help="leave Kafka's own topics out")
    add_client_arguments(parser, "admin client")


def run(options: argparse.Namespace) -> int:
    if (options.create or options.delete) and not options.topic:
        raise ConfigError("--create and --delete need --topic")
    with KafkaAdminClient(client_settings(options)) as admin:
        if options.create:
            return _create(admin, options)
        names = sorted(admin.list_topics(include_internal=not options.exclude_internal))
        if options.topic:
            names = [name for name in names if re.fullmatch(options.topic, name) or name == options.topic]
        if options.list:
            for name in names:
                print(name)
            return 0
        if options.topic and not names and not options.if_exists:
            raise UnknownTopicOrPartitionError(f"There is no topic {options.topic}")
        return _delete(admin, names) if options.delete else _describe(admin, names)


def _create(admin: KafkaAdminClient, options: argparse.Namespace) -> int:
    topic = NewTopic(
        options.topic, options.partitions, options.replication_factor, configs=dict(options.config)
    )
    try:
        created = admin.create_topics([topic], retry_on_quota_violation=False)[options.topic]
    except TopicExistsError:
        if not options.if_not_exists:
            raise
        print(f"Topic {options.topic} is there already.")
        return 0
    print(f"Created topic {options.topic} with {counted(created.num_partitions, 'partition')}.")
    return 0


def _delete(admin: KafkaAdminClient, names: list[str]) -> int:
    if names:
        admin.delete_topics(names, retry_on_quota_violation=False)
    for name in names:
        print(f"Deleted topic {name}.")
    return 0


def _describe(admin: KafkaAdminClient, names: list[str]) -> int:
    described = admin.describe_topics(names) if names else {}
    print_table(
        ["TOPIC", ("PARTITION", "right"), ("LEADER", "right"), "REPLICAS", "IN SYNC", "TOPIC ID"],
        [
            [
                name,
                info.partition,
                _leader(info),
                _ids(info.replicas),
                _ids(info.in_sync_replicas),
                topic.topic_id,
            ]
            for name, topic in sorted(described.items())
            for info in topic.partitions
        ],
    )
    return 0


def _leader(info: PartitionInfo) -> object:
    return "none" if info.leader is None else info.leader.id


def _ids(nodes: tuple[Node, ...]) -> str:
    return ",".join(str(node.id) for node in nodes)
