"""`kclient produce`: one record a line, from standard input or a file; the options of kafka-console-producer.sh."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeElapsedColumn

from kclient.cli.common import (
    add_client_arguments,
    add_pairs,
    client_settings,
    closing,
    complain,
    error_console,
    natural,
    properties,
)
from kclient.errors import ConfigError, KafkaError
from kclient.producer import KafkaProducer, RecordMetadata
from kclient.utils.text import counted

_READER = {
    "parse.key": "false",
    "key.separator": "\t",
    "parse.headers": "false",
    "headers.delimiter": "\t",
    "headers.separator": ",",
    "headers.key.separator": ":",
    "null.marker": "",
    "ignore.error": "false",
}
_SHOWN_ERRORS = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--topic", required=True, help="where the records go")
    parser.add_argument("--file", type=Path, help="read this file instead of standard input")
    parser.add_argument("--partition", type=natural, help="send everything to this partition")
    parser.add_argument("--compression-codec", help="none, gzip, snappy, lz4 or zstd")
    parser.add_argument("--request-required-acks", dest="acks", help="0, 1 or all")
    add_pairs(
        parser,
        "--reader-property",
        "--property",
        dest="reader",
        help=f"how lines are read: {', '.join(_READER)}; may be repeated",
    )
    parser.add_argument("--no-progress", action="store_true", help="print only the closing line")
    add_client_arguments(parser, "producer")


def run(options: argparse.Namespace) -> int:
    reader = properties(options.reader, _READER, "--reader-property")
    settings = client_settings(options)
    if options.compression_codec:
        settings["compression.type"] = options.compression_codec
    if options.acks:
        settings["acks"] = options.acks
    tally = _Tally()
    try:
        _send_all(options, reader, settings, tally)
    except KeyboardInterrupt:
        _report(tally)
        raise
    return _report(tally)


def _send_all(
    options: argparse.Namespace, reader: dict[str, str], settings: dict[str, object], tally: _Tally
) -> None:
    with contextlib.ExitStack() as stack:
        file = sys.stdin.buffer if options.file is None else stack.enter_context(options.file.open("rb"))
        total_bytes = None if options.file is None else options.file.stat().st_size
        typed = options.file is None and sys.stdin.isatty()
        lines = _prompted(file) if typed else file
        progress = stack.enter_context(_progress(options.no_progress or typed))
        task = progress.add_task("sending", total=total_bytes)
        # Entered last, so that it closes (and delivers what is left) while the progress still shows.
        producer = stack.enter_context(closing(KafkaProducer(settings)))
        for number, line in enumerate(lines, 1):
            tally.taken += 1
            try:
                key, value, headers = parse_line(line.rstrip(b"\r\n"), reader)
                producer.send(
                    options.topic,
                    value,
                    key=key,
                    headers=headers,
                    partition=options.partition,
                    on_delivery=tally.delivered_or_failed,
                )
            except (KafkaError, ValueError) as error:
                tally.fail(f"line {number}: {error}")
                if isinstance(error, ConfigError) or tally.failed > _SHOWN_ERRORS > tally.delivered:
                    break  # nothing gets through: stop rather than wait out every line
            progress.update(task, advance=len(line))
        producer.flush()


def _report(tally: _Tally) -> int:
    """Say what became of the records; the exit code."""
    for message, count in tally.errors.most_common(_SHOWN_ERRORS):
        complain("failed", message + (f" ({counted(count, 'record')})" if count > 1 else ""))
    left = tally.taken - tally.delivered - tally.failed
    given_up = f", {left} given up" if left else ""
    error_console().print(f"{tally.delivered} delivered, {tally.failed} failed{given_up}", highlight=False)
    return 1 if tally.failed or left else 0


class _Tally:
    """Counts outcomes; `delivered_or_failed` runs on the producer's I/O thread, which alone writes `delivered`."""

    def __init__(self) -> None:
        self.taken = 0
        self.delivered = 0
        self.failed = 0
        self.errors: Counter[str] = Counter()

    def delivered_or_failed(self, _metadata: RecordMetadata, error: KafkaError | None) -> None:
        if error is None:
            self.delivered += 1
        else:
            self.fail(str(error))

    def fail(self, message: str) -> None:
        self.failed += 1
        self.errors[message] += 1


def _prompted(lines: Iterable[bytes]) -> Iterator[bytes]:
    """`lines` as a person types them, each after a prompt."""
    print(end=">", file=sys.stderr, flush=True)
    for line in lines:
        yield line
        print(end=">", file=sys.stderr, flush=True)
    print(file=sys.stderr)


def _progress(silent: bool) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeElapsedColumn(),
        console=error_console(),
        transient=True,
        disable=silent or not sys.stderr.isatty(),
    )


def parse_line(
    line: bytes, reader: dict[str, str]
) -> tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]]]:
    """Key, value and headers of one line. Raises ValueError if a part that was asked for is missing."""
    headers: list[tuple[str, bytes | None]] = []
    rest = line
    if _true(reader["parse.headers"]):
        found, rest = _split(rest, reader["headers.delimiter"], "headers.delimiter", reader)
        if found and _unless_null(found, reader) is not None:
            headers = list(_headers(found, reader))
    key: bytes | None = None
    if _true(reader["parse.key"]):
        found, rest = _split(rest, reader["key.separator"], "key.separator", reader)
        key = _unless_null(found, reader)
    return key, _unless_null(rest, reader), headers


def _true(text: str) -> bool:
    return text.lower() == "true"


def _split(data: bytes, separator: str, name: str, reader: dict[str, str]) -> tuple[bytes | None, bytes]:
    before, found, after = data.partition(separator.encode())
    if found:
        return before, after
    if _true(reader["ignore.error"]):
        return None, data
    raise ValueError(
        f"no {name} ({separator!r}) in the line; ignore.error=true sends it as far as it can be understood"
    )


def _unless_null(data: bytes | None, reader: dict[str, str]) -> bytes | None:
    marker = reader["null.marker"].encode()
    return None if marker and data == marker else data


def _headers(data: bytes, reader: dict[str, str]) -> Iterator[tuple[str, bytes | None]]:
    parts = data.split(reader["headers.separator"].encode())
    while parts and not parts[-1]:
        parts.pop()
    for part in parts:
        name, value = _split(part, reader["headers.key.separator"], "headers.key.separator", reader)
        if name is None:
            yield value.decode(), None
            continue
        if _unless_null(name, reader) is None:
            raise ValueError("the name of a header cannot be null, which null.marker stands for")
        yield name.decode(), _unless_null(value, reader)
