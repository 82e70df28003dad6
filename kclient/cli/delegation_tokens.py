"""`kclient delegation-tokens`: create, renew, end and list tokens; the options of kafka-delegation-tokens.sh."""

from __future__ import annotations

import argparse
import base64
import binascii
import datetime as dt
import json
import sys
from collections.abc import Iterable

from kclient.admin import DelegationToken, KafkaAdminClient
from kclient.cli.common import (
    add_client_arguments,
    add_output_argument,
    client_settings,
    natural,
    print_table,
)
from kclient.cli.parser import Parser
from kclient.errors import ConfigError

_PERIODS = {
    "create": ("max_life_time_period", "latest time that the token can be renewed to, in ms from now"),
    "renew": ("renew_time_period", "new end of the token, in ms from now"),
    "expire": ("expiry_time_period", "end of the token, in ms from now"),
}
_DEFAULTS = {"create": "what the broker has", "renew": "what the broker has", "expire": "at once"}
_OPTIONS = {
    "create": {"owner_principal", "renewer_principal", "max_life_time_period"},
    "renew": {"hmac", "renew_time_period"},
    "expire": {"hmac", "expiry_time_period"},
    "describe": {"owner_principal"},
}
"""The options that each action takes."""
_COLUMNS = ("token_id", "hmac", "owner", "requester", "renewers", "issue_date", "expiry_date", "max_date")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    # What stands in the wrong place may be the secret of a token.
    assert isinstance(parser, Parser)
    parser.shows_words = False
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--create", action="store_true", help="create a token, and print it with its secret")
    action.add_argument("--renew", action="store_true", help="give a token more time")
    action.add_argument("--expire", action="store_true", help="end a token")
    action.add_argument("--describe", action="store_true", help="print tokens with their secrets")
    parser.add_argument(
        "--owner-principal",
        action="append",
        default=[],
        metavar="PRINCIPAL",
        help="as User:alice: whose token is created (default: one's own), or whose are described (default: all that "
        "one may see; may be repeated)",
    )
    parser.add_argument(
        "--renewer-principal",
        action="append",
        default=[],
        metavar="PRINCIPAL",
        help="who may renew the token that is created, beside its owner; may be repeated",
    )
    parser.add_argument(
        "--hmac",
        help="for --renew and --expire: the token's secret as it is printed; `-` reads it from standard input, which "
        "others on the machine cannot see",
    )
    for name, (option, text) in _PERIODS.items():
        parser.add_argument(
            f"--{option.replace('_', '-')}",
            type=_period,
            metavar="MS",
            help=f"for --{name}: {text} (default, and for -1: {_DEFAULTS[name]})",
        )
    add_output_argument(parser)
    add_client_arguments(parser, "admin client")


def run(options: argparse.Namespace) -> int:
    action = next(name for name in _OPTIONS if getattr(options, name))
    _check(options, action)
    hmac = _hmac(options.hmac) if "hmac" in _OPTIONS[action] else b""
    with KafkaAdminClient(client_settings(options)) as admin:
        match action:
            case "create":
                token = admin.create_delegation_token(
                    owner=next(iter(options.owner_principal), None),
                    renewers=dict.fromkeys(options.renewer_principal),
                    max_lifetime_ms=_given(options.max_life_time_period),
                )
                _print([token], options.output)
            case "describe":
                owners = [*dict.fromkeys(options.owner_principal)] or None
                _print(admin.describe_delegation_token(owners), options.output)
            case "renew":
                period_ms = _given(options.renew_time_period)
                ends_ms = admin.renew_delegation_token(hmac, renew_period_ms=period_ms)
                _print_end("Renewed", ends_ms, options.output)
            case "expire":
                period_ms = _given(options.expiry_time_period)
                ends_ms = admin.expire_delegation_token(hmac, expiry_period_ms=period_ms)
                _print_end("Ended", ends_ms, options.output)
    return 0


def _period(text: str) -> int:
    """An argparse type for ms, or -1."""
    return -1 if text == "-1" else natural(text)


def _given(period_ms: int | None) -> int | None:
    """Kafka's tool wants a period always, and takes -1 for none."""
    return None if period_ms == -1 else period_ms


def _check(options: argparse.Namespace, action: str) -> None:
    for name in sorted(set[str]().union(*_OPTIONS.values()) - _OPTIONS[action]):
        if getattr(options, name) not in (None, []):
            raise ConfigError(f"--{name.replace('_', '-')} is not for --{action}")
    if action == "create" and len(options.owner_principal) > 1:
        raise ConfigError("--create takes one --owner-principal")
    if options.max_life_time_period == 0:
        raise ConfigError("--max-life-time-period must be 1 or more, or -1")
    for option in ("owner_principal", "renewer_principal"):
        for principal in getattr(options, option):
            kind, _, name = principal.partition(":")
            if not kind or not name:
                raise ConfigError(f"--{option.replace('_', '-')} {principal!r} should be as User:alice")


def _hmac(text: str | None) -> bytes:
    """The secret of --hmac; no error repeats it."""
    if text is None:
        raise ConfigError("--renew and --expire need --hmac")
    if text == "-":
        text = sys.stdin.readline()
    try:
        decoded = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):  # the latter for what is not ASCII
        decoded = b""
    if not decoded:
        raise ConfigError("--hmac should be the Base64 text that --create and --describe print")
    return decoded


def _print(tokens: Iterable[DelegationToken], output: str) -> None:
    """Print tokens, as a table or as an object a line."""
    for_people = output != "json"
    rows = [_row(token, for_people) for token in sorted(tokens, key=lambda each: each.token_info.token_id)]
    if for_people:
        print_table([column.upper().replace("_", " ") for column in _COLUMNS], rows)
        return
    names = [column.replace("_date", "_timestamp_ms") for column in _COLUMNS]
    for row in rows:
        print(json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False))


def _row(token: DelegationToken, for_people: bool) -> tuple[object, ...]:
    info = token.token_info
    times = (info.issue_timestamp_ms, info.expiry_timestamp_ms, info.max_timestamp_ms)
    return (
        info.token_id,
        token.hmac_as_base64,
        info.owner,
        info.token_requester,
        ",".join(info.renewers) if for_people else info.renewers,
        *(map(_date, times) if for_people else times),
    )


def _print_end(done: str, ends_ms: int, output: str) -> None:
    if output == "json":
        print(json.dumps({"expiry_timestamp_ms": ends_ms}))
    else:
        print(f"{done}: the token's time ends at {_date(ends_ms)}.")


def _date(timestamp_ms: int) -> str:
    """A time in UTC; as a number where no calendar has it."""
    try:
        return dt.datetime.fromtimestamp(timestamp_ms / 1000, dt.UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        return str(timestamp_ms)
