"""Names of the options that begin with `kafka.`: those of the client that is used, and all others, which it never sees.

Spark's own connector hands all of them to its client, and Java's clients ignore what they do not know. So one set of
options may serve the reads and the writes of a job; what is ignored is told.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

import attrs

from kclient.spark.option_names import Use

if TYPE_CHECKING:
    from kclient.config import Config
    from kclient.config.config_def import ConfigDef, Support

KAFKA = "kafka."

_GROUP_ID = (
    "kafka.group.id is given to the consumers, which join no group: every query reads every record. "
    "Use commitGroupId to commit what was processed, and startingOffsets=group:ID to start from it."
)
_MAX_POLL_RECORDS = (
    "kafka.max.poll.records has no effect: records are read as whole fetches. maxRecordsPerPartition cuts what one "
    "task reads."
)


@attrs.frozen
class SettingNames:
    """Settings by the client that has them; names are without their prefix."""

    taken: tuple[str, ...]
    """Those of the client that is used."""
    others: Mapping[str, tuple[str, ...]]
    """Those of other clients alone, by the client, and of what all clients have in Java."""
    unknown: tuple[str, ...]

    def remarks(self, use: Use) -> list[str]:
        """Return what is to be said: a line for each client whose settings are left out, and for each wrong name."""
        found = [
            f"{_listed(names)} {'is a setting' if len(names) == 1 else 'are settings'} of the {client} alone, without "
            f"effect in {use.value}, and ignored."
            for client, names in self.others.items()
        ]
        found += map(_unknown, self.unknown)
        if use.reads:
            found += [_GROUP_ID] if "group.id" in self.taken else []
            found += [_MAX_POLL_RECORDS] if "max.poll.records" in self.taken else []
        return found


def sort_names(names: Iterable[str], use: Use) -> SettingNames:
    """Return which of the settings, named without their prefix, the client of `use` has, and which another one."""
    from kclient.config import definition_of
    from kclient.config.config_def import Support

    own = definition_of(config_class(reads=use.reads))
    names = list(names)
    left = [name for name in names if not _works(own, name)]
    others: dict[str, tuple[str, ...]] = {}
    for other in _others(use) if left else ():
        # A client may have a name and no use for it yet, such as the producer for client.rack, which consumers use.
        theirs = [name for name in left if _works(other, name) or (_has(other, name) and not _has(own, name))]
        if theirs:
            others[other.client] = tuple(theirs)
            left = [name for name in left if name not in theirs]
    of_the_jvm = tuple(name for name in left if _support(own, name) is Support.JVM)
    if of_the_jvm:
        # Every client of every task would warn of them.
        others["Java virtual machine"] = of_the_jvm
    gone = {name for each in others.values() for name in each}
    return SettingNames(
        tuple(name for name in names if name not in gone and _has(own, name)),
        others,
        tuple(name for name in left if not _has(own, name)),
    )


def setting_remarks(options: Mapping[str, str], use: Use) -> list[str]:
    """Return what is to be said of the options that begin with `kafka.`."""
    lower = (name.lower() for name in options)
    return sort_names((name.removeprefix(KAFKA) for name in lower if name.startswith(KAFKA)), use).remarks(
        use
    )


def config_class(*, reads: bool) -> type[Config]:
    """The settings of the client that reads, or of the one that writes; imports that one alone."""
    if reads:
        from kclient.consumer import ConsumerConfig

        return ConsumerConfig
    from kclient.producer import ProducerConfig

    return ProducerConfig


def _others(use: Use) -> Iterator[ConfigDef]:
    """The settings of the other clients; imported only where a name is not the own client's."""
    from kclient.admin.config import AdminConfig
    from kclient.config import definition_of

    yield definition_of(config_class(reads=not use.reads))
    yield definition_of(AdminConfig)


def _has(definition: ConfigDef, name: str) -> bool:
    from kclient.config.providers import PREFIX

    return name.startswith(PREFIX) or _dotted(name) in definition


def _works(definition: ConfigDef, name: str) -> bool:
    from kclient.config.config_def import Support

    return _has(definition, name) and _support(definition, name) in {None, Support.YES}


def _support(definition: ConfigDef, name: str) -> Support | None:
    dotted = _dotted(name)
    return definition[dotted].support if dotted in definition else None


def _dotted(name: str) -> str:
    return name if "." in name else name.replace("_", ".")


def _unknown(name: str) -> str:
    return f"{KAFKA}{name} is not a setting of any client and is ignored.{_hint(_dotted(name))}"


def _hint(name: str) -> str:
    from kclient.config.foreign_names import FOREIGN_NAMES

    instead = FOREIGN_NAMES.get(name)
    if instead is not None:
        return f" Here it is {instead}."
    known = {key.name for use in (Use.BATCH_READ, Use.BATCH_WRITE) for key in _definition(use)}
    nearest = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.6)
    return f" Did you mean {KAFKA + nearest[0]!r}?" if nearest else ""


def _definition(use: Use) -> ConfigDef:
    from kclient.config import definition_of

    return definition_of(config_class(reads=use.reads))


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(KAFKA + name for name in names)
