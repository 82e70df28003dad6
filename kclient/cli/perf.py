"""`kclient perf`: Kafka's perf tools, with their options and their way to print."""

from __future__ import annotations

import argparse
import importlib

from kclient.cli.common import add_command

PARTS = {
    "produce": "send records as fast as it goes, or at a rate; the options of kafka-producer-perf-test.sh",
    "consume": "read records as fast as it goes; the options of kafka-consumer-perf-test.sh",
    "latency": "send records one by one and wait until each is read back; the options of kafka-e2e-latency.sh",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parts = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    for name, summary in PARTS.items():
        # Kafka's tools do not agree on how a setting is given: a part may define an option of all parts anew.
        part = add_command(parts, name, summary, conflict_handler="resolve")
        importlib.import_module(f"kclient.cli.perf_{name}").add_arguments(part)
        part.add_argument(
            "-v", "--verbose", action="count", default=argparse.SUPPRESS, help=argparse.SUPPRESS
        )


def run(options: argparse.Namespace) -> int:
    code: int = importlib.import_module(f"kclient.cli.perf_{options.what}").run(options)
    return code
