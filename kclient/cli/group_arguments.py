"""Command lines of `kclient groups` and `kclient share-groups`: options that both have, and which go together."""

from __future__ import annotations

import argparse
import re
from collections.abc import Sequence
from datetime import UTC, datetime

import attrs

from kclient.cli.common import add_client_arguments, add_output_argument, natural, positive
from kclient.common.topic_name import check_topic
from kclient.errors import ConfigError, KafkaError

_DURATION = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<days>[-+]?\d+)D)?"
    r"(?P<time>T(?:(?P<hours>[-+]?\d+)H)?(?:(?P<minutes>[-+]?\d+)M)?(?:(?P<seconds>[-+]?\d+(?:[.,]\d{0,9})?)S)?)?",
    re.ASCII | re.IGNORECASE,
)
_UNITS_MS = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1000}
_MAX_INT64 = 2**63 - 1

DESCRIBED = ("members", "offsets", "state")
_RESETS = ("dry_run", "execute", "export", "all_topics")
_ONLY_WITH = {
    **dict.fromkeys(("members", "offsets", "details"), ("describe",)),
    "state": ("describe", "list"),
    "type": ("list",),
    "topic": ("reset_offsets", "delete_offsets"),
    "group": ("describe", "delete", "reset_offsets", "delete_offsets"),
    "all_groups": ("describe", "delete", "reset_offsets"),
}


@attrs.frozen
class TopicChoice:
    """A topic of --topic: those of its `partitions` that were named, or all of them for None."""

    topic: str
    partitions: tuple[int, ...] | None = None


def add_group_arguments(parser: argparse.ArgumentParser, kind: str) -> None:
    """Options of both commands but those of --reset-offsets; `kind` is the word for their groups."""
    actions = parser.add_mutually_exclusive_group(required=True)
    for name, summary in {
        "list": f"print the ids of all {kind} groups",
        "describe": "print offsets and lag, members or states",
        "delete": "delete groups that have no members",
        "reset-offsets": "have a group without members go on elsewhere; a dry run without --execute",
        "delete-offsets": "delete what a group has of --topic",
    }.items():
        dest = name.replace("-", "_")
        actions.add_argument(f"--{name}", dest="action", action="store_const", const=dest, help=summary)
    if kind == "consumer":
        actions.add_argument(
            "--validate-regex",
            metavar="REGEX",
            help="have a broker say if it can use the regular expression of a SubscriptionPattern (RE2's syntax)",
        )
    parser.add_argument("--group", action="append", default=[], metavar="ID", help="a group; may be repeated")
    parser.add_argument("--all-groups", action="store_true", help=f"every {kind} group")
    parser.add_argument(
        "--topic",
        action="append",
        default=[],
        type=topic_choice,
        metavar="TOPIC[:0,1,...]",
        help="a topic for --reset-offsets and --delete-offsets, or some of its partitions; may be repeated",
    )
    parser.add_argument("--all-topics", action="store_true", help="every topic that the group has offsets of")
    parser.add_argument("--members", action="store_true", help="--describe prints members")
    parser.add_argument(
        "--offsets", action="store_true", help="--describe prints offsets, as it does by itself"
    )
    parser.add_argument(
        "--state",
        nargs="?",
        const="",
        default=None,
        metavar="STATE[,...]",
        help="--describe and --list print states; --list only groups in those given",
    )
    parser.add_argument(
        "--verbose", dest="details", action="store_true", help="--describe prints epochs as well"
    )
    parser.add_argument(
        "--timeout",
        type=positive,
        metavar="MS",
        help="time for each request (default: default.api.timeout.ms)",
    )
    add_output_argument(parser)
    add_client_arguments(parser, "admin client")


def add_reset_arguments(parser: argparse.ArgumentParser, *more: str) -> None:
    """Options of --reset-offsets; `more` are those that not all groups have."""
    resets = parser.add_argument_group("--reset-offsets")
    places = resets.add_mutually_exclusive_group()
    places.add_argument("--to-earliest", action="store_true", help="to the first record")
    places.add_argument("--to-latest", action="store_true", help="to the end")
    places.add_argument("--to-current", action="store_true", help="to where the group is; else to the end")
    places.add_argument("--to-offset", type=natural, metavar="OFFSET", help="to this offset")
    places.add_argument(
        "--to-datetime",
        type=datetime_ms,
        metavar="YYYY-MM-DDThh:mm:ss.sss",
        help="to the first record at or after that time (UTC, or with a zone: Z, +02:00)",
    )
    if "by-duration" in more:
        places.add_argument(
            "--by-duration",
            type=duration_ms,
            metavar="PnDTnHnMnS",
            help="to the first record that is no older than that",
        )
    if "shift-by" in more:
        places.add_argument("--shift-by", type=int, metavar="N", help="by so many offsets, back if negative")
    places.add_argument("--from-file", metavar="FILE", help="to what a CSV file says, as --export writes it")
    resets.add_argument("--execute", action="store_true", help="do it")
    resets.add_argument("--dry-run", action="store_true", help="only print what would be done (the default)")
    resets.add_argument("--export", action="store_true", help="print it as CSV")


def place(options: argparse.Namespace) -> str | None:
    """Name of the option that says where to reset to."""
    names = ("to_earliest", "to_latest", "to_current", "to_offset", "to_datetime", "by_duration", "shift_by")
    return next((name for name in (*names, "from_file") if _given(options, name)), None)


def check_options(options: argparse.Namespace) -> None:
    """Raise ConfigError for options that do not go together."""
    action = options.action
    for name, actions in {**_ONLY_WITH, **dict.fromkeys(_RESETS, ("reset_offsets",))}.items():
        if _given(options, name) and action not in actions:
            raise ConfigError(f"{_flag(name)} goes with {' and '.join(map(_flag, actions))}")
    where = place(options)
    if where is not None and action != "reset_offsets":
        raise ConfigError(f"{_flag(where)} goes with --reset-offsets")
    if options.group and options.all_groups:
        raise ConfigError("--group and --all-groups exclude each other")
    if action in ("describe", "delete", "reset_offsets") and not options.group and not options.all_groups:
        raise ConfigError("name groups with --group, or take them all with --all-groups")
    if action == "describe":
        if sum(_given(options, name) for name in DESCRIBED) > 1:
            raise ConfigError(f"--describe takes one of {', '.join(map(_flag, DESCRIBED))}")
        if options.state:
            raise ConfigError(f"--describe takes no states; {options.state!r} is for --list")
    if action == "delete_offsets" and (len(options.group) != 1 or not options.topic):
        raise ConfigError("--delete-offsets needs one --group, and --topic")
    if action == "reset_offsets":
        _check_reset(options, where)


def _check_reset(options: argparse.Namespace, where: str | None) -> None:
    if where is None:
        raise ConfigError(
            "--reset-offsets needs a place to go to: --to-earliest, --to-latest or another --to-..."
        )
    if options.export and options.output == "json":
        raise ConfigError("--export prints CSV, for --from-file; --output json goes without it")
    if options.execute and options.dry_run:
        raise ConfigError("--execute and --dry-run exclude each other")
    if options.topic and options.all_topics:
        raise ConfigError("--topic and --all-topics exclude each other")
    scoped = bool(options.topic) or options.all_topics
    if where == "from_file" and scoped:
        raise ConfigError("--from-file names topics by itself, and goes without --topic and --all-topics")
    if where != "from_file" and not scoped:
        raise ConfigError("--reset-offsets needs topics: --topic, or --all-topics")


def _given(options: argparse.Namespace, name: str) -> bool:
    value = getattr(options, name, None)
    return value is not None and value is not False and value != []


def _flag(name: str) -> str:
    return "--verbose" if name == "details" else f"--{name.replace('_', '-')}"


def words(option: str, text: str | None, valid: Sequence[str]) -> list[str]:
    """Words of a list with commas, in any case, as `valid` spells them; raises ConfigError for others."""
    spelt = {word.lower(): word for word in valid}
    given = [word.strip().lower() for word in (text or "").split(",") if word.strip()]
    wrong = [word for word in given if word not in spelt]
    if wrong:
        raise ConfigError(f"{option} {wrong[0]} is not known; there are: {', '.join(valid)}")
    return [spelt[word] for word in given]


def topic_choice(text: str) -> TopicChoice:
    """An argparse type for TOPIC, or TOPIC:0,1,2 with partitions."""
    topic, colon, numbers = text.partition(":")
    try:
        check_topic(topic, "TOPIC")
    except (KafkaError, ValueError) as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if not colon:
        return TopicChoice(topic)
    if not re.fullmatch(r"\d{1,9}(,\d{1,9})*", numbers, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} should be TOPIC:0,1,... with numbers of partitions")
    return TopicChoice(topic, tuple(map(int, numbers.split(","))))


def datetime_ms(text: str) -> int:
    """An argparse type for a date with a time, in ms since the epoch; of UTC unless it says otherwise."""
    try:
        if "T" not in text:
            raise ValueError("it has no T between date and time")
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r} should be YYYY-MM-DDThh:mm:ss.sss: {error}") from None
    found = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime(1970, 1, 1, tzinfo=UTC)
    in_ms = found.days * 86_400_000 + found.seconds * 1000 + found.microseconds // 1000
    if in_ms < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is before 1970")
    return in_ms


def duration_ms(text: str) -> int:
    """An argparse type for a duration of ISO 8601 in days, hours, minutes and seconds, as Java has it, in ms."""
    found = _DURATION.fullmatch(text)
    parts = {} if found is None else {unit: found[unit] for unit in _UNITS_MS if found[unit] is not None}
    if found is None or not parts or (found["time"] or "").upper() == "T":
        raise argparse.ArgumentTypeError(f"{text!r} should be PnDTnHnMnS, such as P7D or PT1H30M")
    seconds = parts.pop("seconds", "0").replace(",", ".")
    total = sum(int(number) * _UNITS_MS[unit] for unit, number in parts.items()) + int(float(seconds) * 1000)
    if abs(total) > _MAX_INT64:
        raise argparse.ArgumentTypeError(f"{text!r} is too long")
    return -total if found["sign"] == "-" else total
