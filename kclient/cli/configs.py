"""`kclient configs`: read and change settings of topics, brokers, users and others; the options of kafka-configs.sh."""

from __future__ import annotations

import argparse
from collections.abc import Iterable

from kclient.admin import (
    AlterConfigOp,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigResourceType,
    ConfigSource,
    KafkaAdminClient,
)
from kclient.cli.common import add_client_arguments, add_output_argument, client_settings
from kclient.cli.config_arguments import (
    QUOTA_TYPES,
    Changes,
    Entity,
    Every,
    add_change_arguments,
    add_entity_arguments,
    changes_of,
    entity_of,
    refuse_unset,
)
from kclient.cli.config_rows import Row, print_changes, print_rows
from kclient.cli.parser import Parser
from kclient.errors import ConfigError, UnsupportedVersionError

_RESOURCES = {
    "topics": ConfigResourceType.TOPIC,
    "brokers": ConfigResourceType.BROKER,
    "broker-loggers": ConfigResourceType.BROKER_LOGGER,
    "groups": ConfigResourceType.GROUP,
    "client-metrics": ConfigResourceType.CLIENT_METRICS,
}
_OWN_SOURCES = {
    "topics": ConfigSource.DYNAMIC_TOPIC_CONFIG,
    "brokers": ConfigSource.DYNAMIC_BROKER_CONFIG,
    "groups": ConfigSource.DYNAMIC_GROUP_CONFIG,
    "client-metrics": ConfigSource.DYNAMIC_CLIENT_METRICS_CONFIG,
}
"""The source of what was set for the entity itself. Every logger has its level, wherever that was set."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    # A password with a blank and without quotes is a word by itself, and argparse repeats what it cannot complete.
    assert isinstance(parser, Parser)
    parser.shows_words = False
    parser.allow_abbrev = False
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--describe", action="store_true", help="print settings")
    action.add_argument("--alter", action="store_true", help="set and delete settings")
    parser.add_argument(
        "--all",
        action="store_true",
        help="--describe prints defaults and what brokers were started with as well",
    )
    add_entity_arguments(parser)
    add_change_arguments(parser)
    add_output_argument(parser)
    add_client_arguments(parser, "admin client")


def run(options: argparse.Namespace) -> int:
    entity = entity_of(options)
    if options.describe:
        if options.add_config or options.add_config_file or options.delete_config:
            raise ConfigError("--add-config, --add-config-file and --delete-config are for --alter")
        with KafkaAdminClient(client_settings(options)) as admin:
            print_rows(_described(admin, entity, every=options.all), options.output)
        return 0
    if options.all:
        raise ConfigError("--all is for --describe")
    if Every in entity.names.values():
        raise ConfigError("--alter needs --entity-name or --entity-default for each --entity-type")
    changes = changes_of(options)
    if entity.type in QUOTA_TYPES:
        from kclient.cli.user_configs import alter_user

        with KafkaAdminClient(client_settings(options)) as admin:
            alter_user(admin, entity, changes)
    else:
        with KafkaAdminClient(client_settings(options)) as admin:
            _alter(admin, entity, changes)
    print_changes(entity, changes, options.output)
    return 0


def _described(admin: KafkaAdminClient, entity: Entity, *, every: bool) -> Iterable[Row]:
    if entity.type in QUOTA_TYPES:
        from kclient.cli.user_configs import describe_users

        return describe_users(admin, entity)
    names = _names(admin, entity.type) if entity.name is Every else [entity.name or ""]
    resources = [ConfigResource(_RESOURCES[entity.type], str(name)) for name in names]
    if not resources:
        return []
    described = admin.describe_configs(resources)
    return [
        Row(
            {entity.type: resource.name or None},
            setting.name,
            setting.value,
            source=setting.source.name,
            sensitive=setting.is_sensitive,
        )
        for resource, settings in described.items()
        for _, setting in sorted(settings.items())
        if every or _is_own(entity.type, resource, setting)
    ]


def _is_own(kind: str, resource: ConfigResource, setting: ConfigEntry) -> bool:
    if kind == "brokers" and not resource.name:
        return setting.source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    return kind not in _OWN_SOURCES or setting.source is _OWN_SOURCES[kind]


def _names(admin: KafkaAdminClient, kind: str) -> list[str]:
    """Names of everything of a type that may have settings; an empty one is the default."""
    if kind == "topics":
        return sorted(admin.list_topics(include_internal=True))
    if kind in ("brokers", "broker-loggers"):
        ids = [str(node.id) for node in admin.describe_cluster().nodes]
        return [*ids, ""] if kind == "brokers" else ids
    found = set(admin.list_groups()) if kind == "groups" else set()
    try:
        found.update(each.name for each in admin.list_config_resources([_RESOURCES[kind]]))
    except UnsupportedVersionError:
        if kind != "groups":
            raise
        # Before Kafka 4.1 groups that have settings and nothing else are not to be found.
    return sorted(found)


def _alter(admin: KafkaAdminClient, entity: Entity, changes: Changes) -> None:
    resource = ConfigResource(_RESOURCES[entity.type], str(entity.name or ""))
    if changes.deleted:
        settings = admin.describe_configs([resource])[resource]
        known = {setting.name for setting in settings.values() if _is_own(entity.type, resource, setting)}
        refuse_unset(entity, changes, known)
    ops = [AlterConfigOp(name, value) for name, value in changes.added.items()]
    ops += [AlterConfigOp(name, op_type=AlterConfigOpType.DELETE) for name in changes.deleted]
    admin.incremental_alter_configs({resource: ops})
