"""The command line of `kclient configs`: what settings are of, and which are set and deleted.

Values may be passwords. So no error here repeats one, nor anything that may be a part of one.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection, Mapping, Sequence

import attrs

from kclient.config.properties import load_properties
from kclient.errors import ConfigError, InvalidConfigurationError

TYPES = ("topics", "brokers", "broker-loggers", "groups", "client-metrics", "users", "clients", "ips")
QUOTA_TYPES = {"users": "user", "clients": "client-id", "ips": "ip"}
"""The types whose settings are quotas, with Kafka's names for them."""
_WITH_DEFAULT = ("brokers", *QUOTA_TYPES)

_KEY = re.compile(r"[\w.$-]+")
_CLOSING = re.compile(r"\]\s*(?:,|$)")


class Every:
    """In place of a name: everything of the type."""


Name = str | None | type[Every]
"""A name, None for the default of the type, or `Every`."""


@attrs.frozen
class Entity:
    """The thing whose settings are meant: a name by type, of which only users and clients go together."""

    names: Mapping[str, Name]

    @property
    def type(self) -> str:
        """The type, of users and clients together users."""
        return next(iter(self.names))

    @property
    def name(self) -> Name:
        """The name of that type."""
        return self.names[self.type]

    def __str__(self) -> str:
        return ", ".join(
            f"{kind} default" if name is None else kind if name is Every else f"{kind} {name}"
            for kind, name in self.names.items()
        )


@attrs.frozen
class Changes:
    """Settings to set and to delete."""

    added: dict[str, str] = attrs.field(repr=False)
    deleted: tuple[str, ...]


def add_entity_arguments(parser: argparse.ArgumentParser) -> None:
    """Options that name what settings are of."""
    entity = parser.add_argument_group("what the settings are of")
    entity.add_argument(
        "--entity-type", action="append", default=[], choices=TYPES, metavar="TYPE", help=", ".join(TYPES)
    )
    # One list of both, in their order, as each of them is for the type at its place.
    entity.add_argument("--entity-name", dest="entity_names", action="append", default=[], metavar="NAME")
    entity.add_argument(
        "--entity-default",
        dest="entity_names",
        action="append_const",
        const=None,
        help="the default of the type, for brokers, users, clients and ips",
    )
    short = parser.add_argument_group("the same in short")
    for kind in TYPES:
        option = kind if kind == "client-metrics" else kind.removesuffix("s")
        short.add_argument(f"--{option}", dest=f"short_{kind}", action="append", default=[], metavar="NAME")
        if kind in _WITH_DEFAULT:
            short.add_argument(
                f"--{option}-defaults", dest=f"short_{kind}", action="append_const", const=None
            )


def add_change_arguments(parser: argparse.ArgumentParser) -> None:
    """Options that say what is set and deleted."""
    changes = parser.add_argument_group("for --alter")
    changes.add_argument(
        "--add-config",
        action="append",
        default=[],
        metavar="KEY=VALUE[,...]",
        help="settings to set; lists in brackets, as key=[a,b]; SCRAM-SHA-512=[iterations=8192,password=...] for users",
    )
    changes.add_argument("--add-config-file", metavar="FILE", help="the same as a properties file")
    changes.add_argument(
        "--delete-config", action="append", default=[], metavar="KEY[,...]", help="settings to delete"
    )


def entity_of(options: argparse.Namespace) -> Entity:
    """The entity that the options name. Raises ConfigError for one that cannot be."""
    if len(options.entity_names) > len(options.entity_type):
        raise ConfigError("--entity-name and --entity-default need an --entity-type each")
    missing: list[Name] = [Every] * (len(options.entity_type) - len(options.entity_names))
    pairs: list[tuple[str, Name]] = list(
        zip(options.entity_type, [*options.entity_names, *missing], strict=True)
    )
    pairs += [(kind, name) for kind in TYPES for name in getattr(options, f"short_{kind}")]
    names = dict(pairs)
    if not names:
        raise ConfigError(f"--entity-type is missing; there are {', '.join(TYPES)}")
    if len(names) < len(pairs):
        raise ConfigError("each type of entity may be named once")
    if len(names) > 1 and set(names) != {"users", "clients"}:
        raise ConfigError("only users and clients can be named together")
    for kind, name in names.items():
        if name is None and kind not in _WITH_DEFAULT:
            raise ConfigError(f"--entity-default is for {', '.join(_WITH_DEFAULT)}, not for {kind}")
        if name == "":
            raise ConfigError(f"the name for {kind} is empty; --entity-default is the default of {kind}")
        if kind in ("brokers", "broker-loggers") and isinstance(name, str) and not _is_id(name):
            raise ConfigError(f"a broker's name is its id, not {name!r}")
    return Entity({kind: names[kind] for kind in TYPES if kind in names})


def changes_of(options: argparse.Namespace) -> Changes:
    """Settings that the options set and delete. Raises ConfigError."""
    if options.add_config and options.add_config_file:
        raise ConfigError("--add-config and --add-config-file cannot be given together")
    added: dict[str, str] = {}
    for text in options.add_config:
        for key, value in parse_pairs(text):
            if key in added:
                raise ConfigError(f"--add-config: {key} comes twice")
            added[key] = value
    if options.add_config_file:
        added = {key: _inside(key, value) for key, value in load_properties(options.add_config_file).items()}
    deleted = dict.fromkeys(key.strip() for text in options.delete_config for key in text.split(","))
    if not added and not deleted:
        raise ConfigError("--alter needs --add-config, --add-config-file or --delete-config")
    if "" in deleted:
        raise ConfigError("--delete-config: a name is empty")
    both = [key for key in deleted if key in added]
    if both:
        raise ConfigError(f"{', '.join(both)} cannot be set and deleted at once")
    return Changes(added, tuple(deleted))


def refuse_unset(entity: Entity, changes: Changes, known: Collection[str]) -> None:
    """Raise InvalidConfigurationError for settings to delete that are not `known`, as they were never set."""
    unset = [key for key in changes.deleted if key not in known]
    if unset:
        raise InvalidConfigurationError(
            f"{entity}: {', '.join(unset)} cannot be deleted, as it is not set there"
        )


def _is_id(name: str) -> bool:
    return name.isascii() and name.isdigit() and len(name) <= 10 and int(name) < 2**31


def _inside(key: str, value: str) -> str:
    """A value of a file. Credentials may have the brackets there that they need on the command line."""
    in_brackets = value.startswith("[") and value.endswith("]")
    return value[1:-1] if in_brackets and key.upper().startswith("SCRAM-") else value


def parse_pairs(text: str) -> Sequence[tuple[str, str]]:
    """KEY=VALUE pairs, with commas between them; a value in brackets may have commas itself. Raises ConfigError."""
    pairs: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        key, equals, value = text[at:].partition("=")
        key = key.strip()
        if not equals or not _KEY.fullmatch(key):
            raise ConfigError(
                f"--add-config: entry {len(pairs) + 1} is not KEY=VALUE; a value with commas stands in brackets, as "
                "key=[a,b]"
            )
        start = len(text) - len(value)
        if value.lstrip().startswith("["):
            closing = _CLOSING.search(value)
            if closing is None:
                raise ConfigError(f"--add-config {key}: the bracket is not closed")
            value, at = value[: closing.start()].lstrip()[1:], start + closing.end()
        else:
            value, comma, rest = value.partition(",")
            at = len(text) - len(rest)
            if key.upper().startswith("SCRAM-") and comma:
                # Anything behind it may still be the password.
                raise ConfigError(f"--add-config {key}: the value has to stand in brackets")
        pairs.append((key, value.strip()))
    return pairs
