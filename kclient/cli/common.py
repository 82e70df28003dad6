"""Options and small tools that the commands share."""

from __future__ import annotations

import argparse
import base64
import contextlib
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from kclient._accel import IMPL
from kclient._version import __version__
from kclient.cli.parser import Parser
from kclient.config.properties import load_properties
from kclient.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from kclient.consumer import KafkaConsumer
    from kclient.producer import KafkaProducer

DEFAULT_SERVER = "localhost:9092"
INTERRUPTED_MS = 1000
"""Time that a client may take to close after a Ctrl-C."""
_SERIALIZERS = {f"{which}.{kind}" for which in ("key", "value") for kind in ("serializer", "deserializer")}

C = TypeVar("C", bound="KafkaProducer[Any, Any] | KafkaConsumer[Any, Any]")


@contextlib.contextmanager
def closing(client: C) -> Iterator[C]:
    """`client`, closed at the end; soon after a Ctrl-C, whether brokers answer or not."""
    with client:
        try:
            yield client
        except KeyboardInterrupt:
            client.close(INTERRUPTED_MS)
            raise


def error_console() -> Console:
    """Return the console for messages and progress: standard error, so that standard output stays data."""
    # Rich is imported where it is used: a command that has nothing to say should not wait for it.
    from rich.console import Console

    return Console(stderr=True, soft_wrap=True)


def complain(what: str, message: object) -> None:
    """Print `what` in red on standard error, then `message` as it is: text in its brackets is no markup."""
    from rich.markup import escape

    error_console().print(f"[bold red]{what}:[/] {escape(str(message))}", highlight=False)


def output_console() -> Console:
    """Return the console for tables: standard output."""
    from rich.console import Console

    return Console(soft_wrap=True)


def add_client_arguments(parser: argparse.ArgumentParser, settings_of: str) -> None:
    """`--bootstrap-server`, `--command-config` and `-X`, as every client command has them."""
    parser.add_argument(
        "--bootstrap-server",
        metavar="HOST:PORT[,...]",
        help=f"brokers to start from; 'embedded:///PATH' for one of our own (default: from --command-config, else "
        f"{DEFAULT_SERVER})",
    )
    add_settings_arguments(parser, settings_of, f"of {settings_of} settings")


def add_settings_arguments(parser: argparse.ArgumentParser, settings_of: str, file: str) -> None:
    """`--command-config` and `-X`; `file` says which file that is."""
    parser.add_argument("--command-config", metavar="FILE", help=f"Java properties file {file}")
    add_pairs(
        parser,
        "-X",
        "--command-property",
        dest="settings",
        help=f"one {settings_of} setting; wins over the file; may be repeated",
    )


def add_pairs(parser: argparse.ArgumentParser, *flags: str, **more: Any) -> None:
    """An option that takes KEY=VALUE and may be repeated; `more` is what else argparse takes."""
    pairs = {"action": "append", "default": [], "type": key_value, "metavar": "KEY=VALUE"}
    parser.add_argument(*flags, **{**pairs, **more})


def add_output_argument(parser: argparse.ArgumentParser) -> None:
    """`--output`, for commands whose output programs read as well."""
    parser.add_argument(
        "--output", choices=["text", "json"], default="text", help="json is one object a line"
    )


def add_command(commands: Any, name: str, summary: str, **more: Any) -> Parser:
    """The parser of a command or of a part of one, whose help begins with `summary`."""
    made: Parser = commands.add_parser(
        name,
        help=summary,
        description=summary[0].upper() + summary[1:] + ".",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        **more,
    )
    add_version(made)
    return made


def add_version(parser: argparse.ArgumentParser) -> None:
    """`--version`, which every tool of Kafka's has, whatever else stands on the command line."""
    version = f"kclient {__version__} ({IMPL} implementation)"
    parser.add_argument("--version", action="version", version=version, help="print the version and exit")


def client_settings(options: argparse.Namespace, **defaults: object) -> dict[str, object]:
    """The settings that the options ask for: `defaults`, then the file, then -X, then --bootstrap-server.

    Serializers and deserializers are left out: commands write and read bytes, whatever the program whose file it is
    makes of them.
    """
    settings: dict[str, object] = {"bootstrap.servers": DEFAULT_SERVER}
    settings.update({key.replace("_", "."): value for key, value in defaults.items()})
    settings.update(given_settings(options))
    if options.bootstrap_server:
        settings["bootstrap.servers"] = options.bootstrap_server
    return {name: value for name, value in settings.items() if name not in _SERIALIZERS}


def given_settings(options: argparse.Namespace) -> dict[str, object]:
    """The settings of the file, over which those of -X win; a name with underscores is that with dots."""
    of_file = load_properties(options.command_config) if options.command_config else {}
    return {_dotted(name): value for name, value in [*of_file.items(), *options.settings]}


def _dotted(name: str) -> str:
    """Return a setting's name with dots; one that has any keeps its underscores, which are a listener's."""
    return name if "." in name else name.replace("_", ".")


def key_value(text: str) -> tuple[str, str]:
    """An argparse type for KEY=VALUE."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"{text!r} should be KEY=VALUE")
    return key, value


def natural(text: str, least: int = 0) -> int:
    """An argparse type for a whole number >= 0, or >= `least`."""
    try:
        value = int(text)
    except ValueError:
        value = -1
    if value < least:
        raise argparse.ArgumentTypeError(f"{text!r} should be a whole number, {least} or more")
    return value


def positive(text: str) -> int:
    """An argparse type for a whole number >= 1."""
    return natural(text, 1)


def pattern(text: str) -> re.Pattern[str]:
    """An argparse type for a regular expression."""
    try:
        return re.compile(text)
    except re.error as error:
        raise argparse.ArgumentTypeError(f"{text!r} is not a regular expression: {error}") from None


def properties(pairs: Iterable[tuple[str, str]], known: dict[str, str], option: str) -> dict[str, str]:
    """Options given as KEY=VALUE over their defaults; raises ConfigError for a key that is not `known`."""
    chosen = dict(known)
    for key, value in pairs:
        if key not in known:
            raise ConfigError(f"{option} {key} is not known; there are: {', '.join(known)}", name=key)
        chosen[key] = unescape(value)
    return chosen


def unescape(text: str) -> str:
    """Backslash escapes such as \\t and \\n, so that separators can be typed in a shell. Raises ConfigError."""
    try:
        meant = text.encode("latin-1", "backslashreplace").decode("unicode_escape")
        meant.encode()
    except UnicodeDecodeError as error:
        raise ConfigError(f"{text}: {error.reason} is no escape; a backslash itself is \\\\") from None
    except UnicodeEncodeError:
        # A surrogate: an escape for one, or a byte of the command line that is not UTF-8.
        raise ConfigError(f"{text!a} cannot be written as UTF-8") from None
    return meant


def json_bytes(data: bytes | None, name: str) -> dict[str, str | None]:
    """`{name: text}` for UTF-8, `{name_base64: ...}` for anything else."""
    if data is None:
        return {name: None}
    try:
        return {name: data.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode()}


def table(columns: Sequence[str | tuple[str, str]], rows: Iterable[Sequence[object]]) -> Table:
    """A plain table; a column given as (name, "right") is a number."""
    from rich.markup import escape
    from rich.table import Table

    made = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        name, justify = (column, "left") if isinstance(column, str) else column
        made.add_column(name, justify="right" if justify == "right" else "left", no_wrap=True)
    for row in rows:
        made.add_row(*("-" if cell is None else escape(str(cell)) for cell in row))
    return made


def print_table(columns: Sequence[str | tuple[str, str]], rows: Iterable[Sequence[object]]) -> None:
    """Print a table for people on a terminal, tab-separated values for a pipe."""
    if sys.stdout.isatty():
        output_console().print(table(columns, rows))
        return
    print("\t".join(column if isinstance(column, str) else column[0] for column in columns))
    for row in rows:
        print("\t".join("-" if cell is None else str(cell) for cell in row))
