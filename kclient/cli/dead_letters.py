"""`kclient pipeline replay-dead-letters`: its command line, and what it prints. Needs no Spark."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, Any

from kclient.cli.common import (
    add_client_arguments,
    add_command,
    add_output_argument,
    add_pairs,
    client_settings,
    error_console,
    pattern,
    positive,
    print_table,
)
from kclient.cli.pipeline_arguments import moment
from kclient.config import definition_of
from kclient.errors import ConfigError, UnknownTopicOrPartitionError, UnsupportedVersionError
from kclient.utils.text import counted

if TYPE_CHECKING:
    from kclient.processing.replay import Choice, Report

NAME = "replay-dead-letters"
SUMMARY = "send dead letters back to where they came from, each at most once"

_MOST_ROWS = 50
_OFFSETS = re.compile(r"(\d{1,9}):(\d{1,18})(?:-(\d{1,18}))?", re.ASCII)
_EPILOG = """\
For example, after a mistake in the schema was mended:
  kclient pipeline replay-dead-letters --bootstrap-server broker:9092 --topic orders-dead \\
    --reason "quantity is no int"
and, when the table that it prints is right, the same with --execute.

Letters are those of pipelines and of kclient.processing. A group remembers which were sent back: the next run leaves
them out, whatever it chooses. A record that comes to grief again has a higher kclient.replay.attempt then, and
stays when that is --max-attempts.
"""


def add_arguments(names: Any) -> None:
    """Add the parser to the subparsers `names`."""
    parser = add_command(names, NAME, SUMMARY, epilog=_EPILOG)
    parser.add_argument("--topic", required=True, help="the topic of dead letters")
    parser.add_argument("--to", metavar="TOPIC", help="the topic to send to (default: each letter's source)")
    parser.add_argument(
        "--group", metavar="ID", help="the group that remembers (default: kclient-replay-TOPIC)"
    )
    chosen = parser.add_argument_group("which letters (default: all)")
    chosen.add_argument("--reason", type=pattern, metavar="REGEX", help="those whose error has this in it")
    chosen.add_argument(
        "--source-topic",
        action="append",
        default=[],
        metavar="TOPIC",
        help="from this topic; may be repeated",
    )
    chosen.add_argument("--start", type=moment, metavar="WHEN", help="records from this time on (ISO or ms)")
    chosen.add_argument("--end", type=moment, metavar="WHEN", help="and before this one")
    chosen.add_argument(
        "--offsets",
        action="append",
        default=[],
        type=_offsets,
        metavar="PARTITION:FIRST[-LAST]",
        help="at these offsets of --topic; may be repeated",
    )
    chosen.add_argument("--limit", type=positive, metavar="N", help="at most so many")
    chosen.add_argument(
        "--max-attempts",
        type=positive,
        default=3,
        metavar="N",
        help="leave what was sent back so often already (default 3)",
    )
    parser.add_argument("--execute", action="store_true", help="do it")
    parser.add_argument("--dry-run", action="store_true", help="only print what would be done (the default)")
    parser.add_argument(
        "--delivery",
        choices=["exactly_once", "at_least_once"],
        default="exactly_once",
        help="at_least_once needs no transactions; a run that dies may send its last letters again",
    )
    add_output_argument(parser)
    add_client_arguments(parser, "client")
    for client in ("consumer", "producer"):
        add_pairs(
            parser,
            f"--{client}-property",
            dest=f"{client}_settings",
            help=f"one setting that only the {client} has; may be repeated",
        )


def run(options: argparse.Namespace) -> int:
    """Replay, and print what became of the letters."""
    if options.execute and options.dry_run:
        raise ConfigError("--execute and --dry-run exclude each other")
    if options.start is not None and options.end is not None and options.end <= options.start:
        raise ConfigError("--end has to be after --start", name="end")
    if options.to == options.topic:
        raise ConfigError("--to is --topic itself", name="to")
    from kclient.processing.replay import Replay

    reads, writes = _settings(options)
    replay = Replay(
        options.topic,
        reads,
        writes,
        group_id=options.group or f"kclient-replay-{options.topic}",
        choice=_choice(options),
        to=options.to,
        execute=options.execute,
        exactly_once=options.delivery == "exactly_once",
    )
    try:
        report = replay.run()
    except UnsupportedVersionError as error:
        raise UnsupportedVersionError(f"{error}; without transactions: --delivery at_least_once") from error
    except UnknownTopicOrPartitionError as error:
        raise UnknownTopicOrPartitionError(str(error).replace("'to'", "--to")) from error
    _print(report, options)
    return 0


def _choice(options: argparse.Namespace) -> Choice:
    from kclient.processing.replay import Choice

    offsets: dict[int, tuple[tuple[int, int], ...]] = {}
    for partition, first, last in options.offsets:
        offsets[partition] = (*offsets.get(partition, ()), (first, last))
    return Choice(
        reason=options.reason,
        source_topics=frozenset(options.source_topic),
        start_ms=options.start,
        end_ms=options.end,
        offsets=offsets,
        limit=options.limit,
        max_attempts=options.max_attempts,
    )


def _settings(options: argparse.Namespace) -> tuple[dict[str, object], dict[str, object]]:
    """Settings of the consumer and of the producer. Each leaves out what of the common ones only the other knows."""
    from kclient.consumer import ConsumerConfig
    from kclient.producer import ProducerConfig

    common = client_settings(options)
    reads, writes = definition_of(ConsumerConfig), definition_of(ProducerConfig)
    return (
        {**_without(common, reads, writes), **dict(options.consumer_settings)},
        {**_without(common, writes, reads), **dict(options.producer_settings)},
    )


def _without(
    common: Mapping[str, object], known: Container[str], others: Container[str]
) -> dict[str, object]:
    return {name: value for name, value in common.items() if name in known or name not in others}


def _print(report: Report, options: argparse.Namespace) -> None:
    word = "sent" if options.execute else "would be sent"
    rows: list[tuple[str, str | None, str | None, int]]
    rows = [(word, to, kind, number) for (to, kind), number in report.sent.most_common()]
    rows += [
        (f"left: {why}", None, kind or None, number) for (why, kind), number in report.left.most_common()
    ]
    if options.output == "json":
        for what, to, kind, number in rows:
            print(json.dumps({"outcome": what, "to": to, "reason": kind, "letters": number}))
    elif rows:
        shown, rest = rows[:_MOST_ROWS], rows[_MOST_ROWS:]
        if rest:
            shown.append(("and others", None, None, sum(row[3] for row in rest)))
        print_table(["OUTCOME", "TO", "REASON", ("LETTERS", "right")], shown)
    sent, left = report.sent.total(), report.left.total()
    said = f"{counted(sent, 'letter')} {word}, {left:,} left"
    if options.execute and options.delivery == "exactly_once":
        said += f", in {counted(report.transactions, 'transaction')}"
    if report.limited:
        said += "; --limit was reached before the end"
    if not options.execute:
        said += "; nothing was done, which --execute does"
    error_console().print(said, markup=False, highlight=False)


def _offsets(text: str) -> tuple[int, int, int]:
    """An argparse type for PARTITION:FIRST or PARTITION:FIRST-LAST."""
    found = _OFFSETS.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r} should be PARTITION:FIRST or PARTITION:FIRST-LAST")
    first = int(found[2])
    last = first if found[3] is None else int(found[3])
    if last < first:
        raise argparse.ArgumentTypeError(f"{text!r} ends before it begins")
    return int(found[1]), first, last
