"""`kclient`: parses the command line, runs one command, turns errors into one line and an exit code.

Exit codes: 0 all went well, 1 something failed, 2 the command line or a setting is wrong, 130 interrupted by Ctrl-C,
143 by SIGTERM.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import logging
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from kclient.cli.common import add_command, add_version, complain
from kclient.cli.parser import Parser
from kclient.errors import ConfigError, KafkaError

# Imported when asked for: `kclient --help` should not wait for code that it does not run.
COMMANDS = {
    "demo": "produce and consume 100,000 records on an embedded broker, and verify them",
    "produce": "send lines from standard input or a file",
    "consume": "print records",
    "topics": "list, describe, create and delete topics",
    "groups": "list, describe and delete groups of consumers, reset and delete their offsets",
    "share-groups": "list, describe and delete share groups, reset and delete their offsets",
    "acls": "list, add and remove access rules",
    "delegation-tokens": "create, renew, end and list tokens that stand for their owners",
    "configs": "read and change settings of topics, brokers, users and others",
    "transactions": "list, describe and abort transactions, and find hanging ones",
    "doctor": "see how far a client comes with every broker, and what is wrong",
    "broker": "run the embedded broker on its own",
    "perf": "measure producing, consuming and latency",
    "pipeline": "run a pipeline on Spark, or see one at work",
}


def build_parser(only: str | None = None) -> argparse.ArgumentParser:
    """The parser; with `only`, just that command's options are filled in."""
    parser = Parser(
        prog="kclient",
        description="Apache Kafka from Python: produce, consume, look around, and run a broker for tests.",
    )
    add_version(parser)
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        command = add_command(commands, name, summary)
        if only in (None, name):
            _module(name).add_arguments(command)
        # Some commands have Kafka's option of that name, which is about their output.
        flags = ["-v"] if command.has_option("--verbose") else ["-v", "--verbose"]
        command.add_argument(
            *flags,
            dest="verbose",
            action="count",
            default=0,
            help="log connections (-v) and everything (-vv)",
        )
    return parser


def _module(command: str) -> Any:
    return importlib.import_module(f"kclient.cli.{command.replace('-', '_')}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code."""
    try:
        with _sigterm_like_ctrl_c():
            return _run(list(sys.argv[1:] if arguments is None else arguments))
    except _TerminatedError:
        return 128 + signal.SIGTERM
    except KeyboardInterrupt:
        return 128 + signal.SIGINT


class _TerminatedError(KeyboardInterrupt):
    """A SIGTERM came: everything is closed as after a Ctrl-C, so that members leave their groups."""


@contextlib.contextmanager
def _sigterm_like_ctrl_c() -> Iterator[None]:
    def terminate(_number: int, _frame: object) -> None:
        raise _TerminatedError

    if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        yield  # whoever started us wants something else
        return
    signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _run(words: list[str]) -> int:
    if not words:
        build_parser().print_help(sys.stderr)
        return 2
    options = build_parser(words[0] if words[0] in COMMANDS else None).parse_args(words)
    levels = (logging.WARNING, logging.INFO, logging.DEBUG)
    logging.basicConfig(
        level=levels[min(options.verbose, 2)], format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    try:
        code: int = _module(options.command).run(options)
    except ConfigError as error:
        complain("error", error)
        return 2
    except BrokenPipeError:
        # The reader of our output is gone (`kclient consume | head`): nothing more to say, also not at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (KafkaError, OSError) as error:
        complain("error", error)
        return 1
    return code
