"""`kclient acls`: list, add and remove access rules; the options of kafka-acls.sh."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable

import attrs

from kclient.admin import (
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    KafkaAdminClient,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kclient.cli.common import (
    add_client_arguments,
    add_output_argument,
    client_settings,
    error_console,
    print_table,
)
from kclient.errors import ConfigError

_NAMED = {
    "topic": ResourceType.TOPIC,
    "group": ResourceType.GROUP,
    "transactional_id": ResourceType.TRANSACTIONAL_ID,
    "delegation_token": ResourceType.DELEGATION_TOKEN,
    "user_principal": ResourceType.USER,
}
"""The resources with names, by the option for each."""

_A = AclOperation
_OPERATIONS = {
    ResourceType.TOPIC: (
        *(_A.READ, _A.WRITE, _A.CREATE, _A.DELETE, _A.ALTER, _A.DESCRIBE, _A.DESCRIBE_CONFIGS),
        _A.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (_A.READ, _A.DELETE, _A.DESCRIBE, _A.DESCRIBE_CONFIGS, _A.ALTER_CONFIGS),
    ResourceType.CLUSTER: (
        *(_A.CREATE, _A.ALTER, _A.DESCRIBE, _A.CLUSTER_ACTION, _A.DESCRIBE_CONFIGS, _A.ALTER_CONFIGS),
        _A.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (_A.WRITE, _A.DESCRIBE, _A.TWO_PHASE_COMMIT),
    ResourceType.DELEGATION_TOKEN: (_A.DESCRIBE,),
    ResourceType.USER: (_A.CREATE_TOKENS, _A.DESCRIBE_TOKENS),
}
"""The operations that brokers ask about, beside ALL; a rule for another one would never apply."""

_COLUMNS = ("resource_type", "name", "pattern_type", "principal", "host", "operation", "permission_type")


@attrs.frozen
class _Rules:
    """One resource, and the entries that are to be added or removed there."""

    resource_type: ResourceType
    name: str
    operations: tuple[AclOperation, ...]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--list", action="store_true", help="print rules, of the resources given or of all")
    action.add_argument("--add", action="store_true", help="add rules for the resources given")
    action.add_argument("--remove", action="store_true", help="remove rules of the resources given")
    resources = parser.add_argument_group("resources; each but --cluster may be repeated, `*` is every one")
    for option, kind in _NAMED.items():
        resources.add_argument(
            f"--{option.replace('_', '-')}",
            action="append",
            default=[],
            metavar="PRINCIPAL" if kind is ResourceType.USER else "NAME",
        )
    resources.add_argument("--cluster", action="store_true", help="the cluster itself")
    resources.add_argument(
        "--resource-pattern-type",
        type=str.lower,
        choices=["literal", "prefixed", "any", "match"],
        help="literal (the default): names as they are; prefixed: what begins so; to list and remove also any, and "
        "match: every rule that applies to the name",
    )
    entries = parser.add_argument_group("who may do what; each may be repeated")
    for effect in ("allow", "deny"):
        entries.add_argument(
            f"--{effect}-principal", action="append", default=[], metavar="PRINCIPAL", help="as User:alice"
        )
        entries.add_argument(
            f"--{effect}-host",
            action="append",
            default=[],
            metavar="ADDRESS",
            help=f"of --{effect}-principal (default: every one)",
        )
    entries.add_argument(
        "--operation",
        action="append",
        default=[],
        type=_operation,
        help="as Read or DescribeConfigs (default: All)",
    )
    entries.add_argument(
        "--principal", action="append", default=[], help="for --list: rules of this principal alone"
    )
    usual = parser.add_argument_group("in place of --operation")
    usual.add_argument(
        "--producer", action="store_true", help="what a producer needs for --topic and --transactional-id"
    )
    usual.add_argument(
        "--idempotent",
        action="store_true",
        help="with --producer: what idempotence needs of the cluster before Kafka 2.8",
    )
    usual.add_argument(
        "--consumer", action="store_true", help="what a consumer needs for --topic and --group"
    )
    parser.add_argument("--force", action="store_true", help="--remove without asking")
    add_output_argument(parser)
    add_client_arguments(parser, "admin client")


def run(options: argparse.Namespace) -> int:
    _check(options)
    rules = _rules(options)
    with KafkaAdminClient(client_settings(options)) as admin:
        if options.list:
            _print(_listed(admin, options, rules), options, "")
        elif options.add:
            added = _bindings(options, rules)
            admin.create_acls(added)
            _print(added, options, "Added")
        else:
            _remove(admin, options, rules)
    return 0


def _operation(text: str) -> AclOperation:
    """An argparse type for an operation in any of the ways that it is written."""
    names = {each.name.replace("_", ""): each for each in AclOperation if each not in (_A.UNKNOWN, _A.ANY)}
    found = names.get(text.upper().replace("_", "").replace("-", ""))
    if found is None:
        known = ", ".join(each.name for each in names.values())
        raise argparse.ArgumentTypeError(f"{text!r} is none of {known}")
    return found


def _check(options: argparse.Namespace) -> None:
    for option in ("principal", "allow_principal", "deny_principal"):
        for principal in getattr(options, option):
            kind, _, name = principal.strip().partition(":")
            if not kind or not name:
                raise ConfigError(f"--{option.replace('_', '-')} {principal!r} should be as User:alice")
    principals = options.allow_principal or options.deny_principal
    usual = options.producer or options.consumer
    if options.list:
        if principals or options.operation or usual or options.allow_host or options.deny_host:
            raise ConfigError(
                "--list takes resources and --principal; the other options are for --add and --remove"
            )
        return
    if options.principal:
        raise ConfigError(
            "--principal is for --list; --add and --remove take --allow-principal and --deny-principal"
        )
    if options.idempotent and not options.producer:
        raise ConfigError("--idempotent needs --producer")
    if usual and (options.operation or options.deny_principal or options.deny_host):
        raise ConfigError(
            "--producer and --consumer allow what they need: without --operation and --deny-..."
        )
    if options.producer and not options.topic:
        raise ConfigError("--producer needs --topic")
    if options.consumer and not (options.topic and options.group):
        raise ConfigError("--consumer needs --topic and --group")
    if usual and (options.cluster or options.delegation_token or options.user_principal):
        raise ConfigError("--producer and --consumer are for --topic, --group and --transactional-id")
    for effect in ("allow", "deny"):
        if getattr(options, f"{effect}_host") and not getattr(options, f"{effect}_principal"):
            raise ConfigError(f"--{effect}-host needs --{effect}-principal")
    if options.add and not principals:
        raise ConfigError("--add needs --allow-principal or --deny-principal")
    if (options.operation or usual) and not principals:
        # Kafka's own tool takes it for all rules of the resource.
        raise ConfigError("--remove of single operations needs --allow-principal or --deny-principal")
    if options.add and options.resource_pattern_type in ("any", "match"):
        raise ConfigError(
            f"--resource-pattern-type {options.resource_pattern_type} is for --list and --remove"
        )


def _rules(options: argparse.Namespace) -> list[_Rules]:
    """The resources of the command line, with what is to be allowed or denied there."""
    given = [(kind, name.strip()) for option, kind in _NAMED.items() for name in getattr(options, option)]
    if options.cluster:
        given.append((ResourceType.CLUSTER, ResourcePattern.CLUSTER_NAME))
    if not all(name for _, name in given):
        raise ConfigError("the name of a resource is empty; `*` is every one")
    if not given and not options.list:
        names = ", ".join(f"--{option.replace('_', '-')}" for option in _NAMED)
        raise ConfigError(f"--add and --remove need a resource: {names} or --cluster")
    operations = tuple(dict.fromkeys(options.operation)) or (_A.ALL,)
    if not (options.producer or options.consumer):
        rules = [_Rules(kind, name, operations) for kind, name in given]
    else:
        rules = [_Rules(kind, name, _usual(options, kind)) for kind, name in given]
        if options.idempotent:
            rules.append(_Rules(ResourceType.CLUSTER, ResourcePattern.CLUSTER_NAME, (_A.IDEMPOTENT_WRITE,)))
    for each in rules:
        known = _OPERATIONS[each.resource_type]
        for operation in each.operations:
            if operation is not _A.ALL and operation not in known:
                raise ConfigError(
                    f"--operation {operation.name} is none of a {each.resource_type.name}; there are ALL, "
                    f"{', '.join(one.name for one in known)}"
                )
    return rules


def _usual(options: argparse.Namespace, kind: ResourceType) -> tuple[AclOperation, ...]:
    """The operations on a resource that producers and consumers need."""
    found: list[AclOperation] = []
    if options.producer and kind is ResourceType.TOPIC:
        found += [_A.WRITE, _A.DESCRIBE, _A.CREATE]
    if options.producer and kind is ResourceType.TRANSACTIONAL_ID:
        found += [_A.WRITE, _A.DESCRIBE]
    if options.consumer and kind is ResourceType.TOPIC:
        found += [_A.READ, _A.DESCRIBE]
    if options.consumer and kind is ResourceType.GROUP:
        found += [_A.READ]
    if not found:
        role = "--producer" if options.producer else "--consumer"
        raise ConfigError(f"{role} needs nothing of a {kind.name}")
    return tuple(dict.fromkeys(found))


def _entries(options: argparse.Namespace, operations: Iterable[AclOperation]) -> list[AccessControlEntry]:
    return [
        AccessControlEntry(principal.strip(), operation, host=host.strip(), permission_type=permission)
        for effect, permission in (("allow", AclPermissionType.ALLOW), ("deny", AclPermissionType.DENY))
        for principal in getattr(options, f"{effect}_principal")
        for host in getattr(options, f"{effect}_host") or ["*"]
        for operation in operations
    ]


def _pattern_type(options: argparse.Namespace, kind: ResourceType) -> PatternType:
    if kind is ResourceType.CLUSTER or options.resource_pattern_type is None:
        return PatternType.LITERAL  # there is but one cluster
    return PatternType[options.resource_pattern_type.upper()]


def _bindings(options: argparse.Namespace, rules: list[_Rules]) -> list[AclBinding]:
    made = [
        AclBinding(
            ResourcePattern(each.resource_type, each.name, _pattern_type(options, each.resource_type)), entry
        )
        for each in rules
        for entry in _entries(options, each.operations)
    ]
    return list(dict.fromkeys(made))


def _filters(options: argparse.Namespace, rules: list[_Rules]) -> list[ResourcePatternFilter]:
    return [
        ResourcePatternFilter(each.resource_type, each.name, _pattern_type(options, each.resource_type))
        for each in rules
    ]


def _listed(admin: KafkaAdminClient, options: argparse.Namespace, rules: list[_Rules]) -> list[AclBinding]:
    if rules:
        patterns = _filters(options, rules)
    else:
        given = options.resource_pattern_type
        patterns = [
            ResourcePatternFilter(pattern_type=PatternType[given.upper()] if given else PatternType.ANY)
        ]
    principals: list[str | None] = [*options.principal] or [None]
    return [
        acl
        for pattern in patterns
        for principal in principals
        for acl in admin.describe_acls(AclBindingFilter(pattern, AccessControlEntryFilter(principal)))
    ]


def _remove(admin: KafkaAdminClient, options: argparse.Namespace, rules: list[_Rules]) -> None:
    filters: list[AclBindingFilter] = []
    for each, pattern in zip(rules, _filters(options, rules), strict=True):
        entries = _entries(options, each.operations)
        filters += [AclBindingFilter(pattern, entry.to_filter()) for entry in entries] or [
            AclBindingFilter(pattern)
        ]
    if not options.force and not _confirmed(filters):
        print("Nothing was removed.")
        return
    removed = admin.delete_acls(filters)
    _print((acl for found in removed.values() for acl in found), options, "Removed")


def _confirmed(filters: list[AclBindingFilter]) -> bool:
    console = error_console()
    for each in filters:
        console.print(f"  {each}", markup=False, highlight=False)
    console.print("Remove the rules above? (y/n) ", end="", markup=False, highlight=False)
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _print(acls: Iterable[AclBinding], options: argparse.Namespace, done: str) -> None:
    """Print rules: as a table, after a change as a line each."""
    found = sorted(set(acls), key=_row)
    if options.output == "json":
        for acl in found:
            print(json.dumps(dict(zip(_COLUMNS, _row(acl), strict=True)), ensure_ascii=False))
    elif not done:
        print_table([column.upper().replace("_", " ") for column in _COLUMNS], map(_row, found))
    else:
        for acl in found:
            print(f"{done}: {acl}")
        if not found:
            print(f"{done} nothing.")


def _row(acl: AclBinding) -> tuple[str, ...]:
    pattern, entry = acl.pattern, acl.entry
    return (
        pattern.resource_type.name,
        pattern.name,
        pattern.pattern_type.name,
        entry.principal,
        entry.host,
        entry.operation.name,
        entry.permission_type.name,
    )
