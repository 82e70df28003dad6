"""Command lines of `kclient groups` and `kclient share-groups`: what goes together, and times, durations and topics."""

from __future__ import annotations

import argparse
import importlib

import pytest

from kclient.cli.group_arguments import (
    TopicChoice,
    check_options,
    datetime_ms,
    duration_ms,
    place,
    topic_choice,
    words,
)
from kclient.errors import ConfigError


def parsed(text: str, command: str = "groups") -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    importlib.import_module(f"kclient.cli.{command}").add_arguments(parser)
    return parser.parse_args(text.split())


RESET = "--reset-offsets --group g"


@pytest.mark.parametrize("command", ["groups", "share_groups"])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("--describe", "--group"),
        ("--delete", "--group"),
        ("--reset-offsets --to-latest --all-topics", "--group"),
        ("--describe --group g --all-groups", "exclude each other"),
        (f"{RESET} --to-latest --topic t --export --output json", "--export prints CSV"),
        ("--list --group g", "--group goes with"),
        ("--list --all-groups", "--all-groups goes with"),
        ("--list --members", "--members goes with --describe"),
        ("--list --verbose", "--verbose goes with --describe"),
        ("--delete --group g --state", "--state goes with --describe and --list"),
        ("--describe --group g --members --state", "one of --members, --offsets, --state"),
        ("--describe --group g --state Stable", "takes no states"),
        ("--describe --group g --topic t", "--topic goes with --reset-offsets and --delete-offsets"),
        ("--describe --group g --execute", "--execute goes with --reset-offsets"),
        ("--describe --group g --to-latest", "--to-latest goes with --reset-offsets"),
        ("--describe --group g --to-offset 0", "--to-offset goes with --reset-offsets"),
        ("--delete-offsets --group g", "--topic"),
        ("--delete-offsets --group g --group h --topic t", "one --group"),
        (f"{RESET} --topic t", "needs a place"),
        (f"{RESET} --to-latest", "needs topics"),
        (f"{RESET} --to-latest --topic t --all-topics", "--topic and --all-topics"),
        (f"{RESET} --to-latest --topic t --execute --dry-run", "--execute and --dry-run"),
        (f"{RESET} --from-file f --topic t", "--from-file names topics by itself"),
    ],
)
def test_options_that_do_not_go_together_are_refused(text: str, said: str, command: str) -> None:
    with pytest.raises(ConfigError, match=said):
        check_options(parsed(text, command))


def test_a_regular_expression_is_of_no_group() -> None:
    with pytest.raises(ConfigError, match="--group goes with"):
        check_options(parsed("--validate-regex a.* --group g"))
    check_options(parsed("--validate-regex a.* --timeout 5 --output json"))


@pytest.mark.parametrize(
    ("text", "where"),
    [
        (f"{RESET} --to-earliest --all-topics", "to_earliest"),
        (f"{RESET} --to-offset 0 --topic t:0", "to_offset"),
        (f"{RESET} --shift-by -5 --topic t", "shift_by"),
        (f"{RESET} --shift-by 0 --topic t", "shift_by"),
        (f"{RESET} --by-duration PT0S --topic t", "by_duration"),
        (f"{RESET} --to-datetime 1970-01-01T00:00:00.000 --topic t", "to_datetime"),
        (f"{RESET} --from-file f --export", "from_file"),
        ("--list --state", None),
        ("--list --state Stable --type classic", None),
        ("--describe --all-groups --members --verbose", None),
    ],
)
def test_the_place_to_reset_to_is_the_option_that_was_given(text: str, where: str | None) -> None:
    options = parsed(text)
    check_options(options)
    assert place(options) == where


@pytest.mark.parametrize(
    "text",
    ["--list --describe", "--list --validate-regex a", "", f"{RESET} --to-latest --to-earliest --topic t"],
)
def test_there_is_one_action_and_one_place(text: str) -> None:
    with pytest.raises(SystemExit):
        parsed(text)


@pytest.mark.parametrize("option", ["--type", "--by-duration P1D", "--shift-by 1", "--validate-regex a"])
def test_share_groups_lack_what_kafkas_tool_lacks_for_them(option: str) -> None:
    with pytest.raises(SystemExit):
        parsed(f"--list {option}", "share_groups")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("t", TopicChoice("t")),
        ("a.b-c_d", TopicChoice("a.b-c_d")),
        ("t:0", TopicChoice("t", (0,))),
        ("t:2,0,11", TopicChoice("t", (2, 0, 11))),
    ],
)
def test_a_topic_may_have_partitions(text: str, expected: TopicChoice) -> None:
    assert topic_choice(text) == expected


@pytest.mark.parametrize(
    "text", ["", ":0", "t:", "t:x", "t:0,", "t:-1", "t:0:1", "a b", "t:٣", "t:9999999999"]
)
def test_a_topic_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        topic_choice(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:01.500", 1500),
        ("1970-01-01T00:00:01", 1000),
        ("1970-01-01T01:00:00.000+01:00", 0),
        ("1970-01-01T00:00:00.001Z", 1),
        ("2024-02-29T12:00:00.123-0530", 1709227800123),
    ],
)
def test_a_time_is_of_utc_unless_it_has_a_zone(text: str, expected: int) -> None:
    assert datetime_ms(text) == expected


@pytest.mark.parametrize(
    "text", ["", "1970-01-01", "T", "1970-13-01T00:00:00.000", "1969-12-31T23:59:59Z", "now"]
)
def test_a_time_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        datetime_ms(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("PT20.345S", 20345),
        ("PT15M", 900_000),
        ("PT10H", 36_000_000),
        ("P2D", 172_800_000),
        ("P2DT3H4M", 183_840_000),
        ("PT-6H3M", -21_420_000),
        ("-PT6H3M", -21_780_000),
        ("-PT-6H+3M", 21_420_000),
        ("pt1s", 1000),
        ("PT1,5S", 1500),
    ],
)
def test_a_duration_is_read_as_java_reads_it(text: str, expected: int) -> None:
    assert duration_ms(text) == expected


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "P1DT", "1D", "P1Y", "P1W", "PT1.5H", "P1H", "P٣D", f"P{'9' * 30}D"]
)
def test_a_duration_that_cannot_be_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        duration_ms(text)


def test_states_are_known_in_any_case() -> None:
    assert words("--state", " stable,EMPTY,", ("Stable", "Empty")) == ["Stable", "Empty"]
    assert words("--state", None, ("Stable",)) == []
    with pytest.raises(ConfigError, match="--state unstable is not known; there are: Stable, Empty"):
        words("--state", "stable,unstable", ("Stable", "Empty"))
