"""Options and small tools that the commands share: settings and their order, arguments, output."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any, Self

import pytest

from kclient.cli import common
from kclient.errors import ConfigError


def options(*words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    common.add_client_arguments(parser, "consumer")
    return parser.parse_args(words)


def settings_file(tmp_path: Path, text: str) -> str:
    file = tmp_path / "client.properties"
    file.write_text(text)
    return str(file)


def test_options_win_over_the_file_and_the_file_over_defaults(tmp_path: Path) -> None:
    file = settings_file(tmp_path, "client.id=file\nfetch.min.bytes=2\nbootstrap.servers=file:1\n")
    given = options("--command-config", file, "-X", "fetch.min.bytes=3", "-X", "fetch.min.bytes=4")
    found = common.client_settings(given, client_id="default", group_id="g")
    assert found == {
        "bootstrap.servers": "file:1",
        "client.id": "file",
        "group.id": "g",
        "fetch.min.bytes": "4",
    }


def test_the_option_for_servers_wins_over_everything(tmp_path: Path) -> None:
    given = [
        "-X",
        "bootstrap.servers=x:1",
        "--command-config",
        settings_file(tmp_path, "bootstrap.servers=f:1"),
    ]
    assert common.client_settings(options(*given))["bootstrap.servers"] == "x:1"
    assert common.client_settings(options(*given, "--bootstrap-server", "o:1"))["bootstrap.servers"] == "o:1"
    assert common.client_settings(options()) == {"bootstrap.servers": "localhost:9092"}


def test_a_setting_with_underscores_is_the_same_one(tmp_path: Path) -> None:
    file = settings_file(tmp_path, "linger_ms=1\nbootstrap_servers=file:1\n")
    found = common.client_settings(
        options("--command-config", file, "-X", "linger.ms=2", "-X", "client_id=me"), client_id="default"
    )
    assert found == {"bootstrap.servers": "file:1", "client.id": "me", "linger.ms": "2"}


@pytest.mark.parametrize(
    "name", ["key.serializer", "value_serializer", "key_deserializer", "value.deserializer"]
)
def test_serializers_are_left_out_however_they_are_written(name: str) -> None:
    assert common.client_settings(options("-X", f"{name}=x")) == {"bootstrap.servers": "localhost:9092"}


def test_a_pair_is_split_at_its_first_equals_sign() -> None:
    assert common.key_value("a=b=c") == ("a", "b=c")
    assert common.key_value("a=") == ("a", "")
    for text in ("a", "=b", ""):
        with pytest.raises(argparse.ArgumentTypeError, match="should be KEY=VALUE"):
            common.key_value(text)


def test_a_whole_number_has_a_least_one() -> None:
    assert (common.natural("0"), common.positive("1")) == (0, 1)
    for parse, text in ((common.natural, "-1"), (common.natural, "1.5"), (common.positive, "0")):
        with pytest.raises(argparse.ArgumentTypeError, match=f"{text!r} should be a whole number"):
            parse(text)


def test_properties_are_given_over_their_defaults_with_escapes() -> None:
    known = {"a": "1", "b": "2"}
    assert common.properties([("b", "3"), ("b", r"\t")], known, "--property") == {"a": "1", "b": "\t"}
    assert known == {"a": "1", "b": "2"}
    with pytest.raises(ConfigError, match="--property c is not known; there are: a, b") as caught:
        common.properties([("c", "")], known, "--property")
    assert caught.value.name == "c"


@pytest.mark.parametrize(
    ("text", "meant"),
    [(r"\t\n", "\t\n"), (r"a\\b", "a\\b"), ("é ключ ✓", "é ключ ✓"), (r"\u2713", "✓"), ("", "")],
)
def test_escapes_are_understood_in_any_text(text: str, meant: str) -> None:
    assert common.unescape(text) == meant


@pytest.mark.parametrize("text", ["\\", "a\\", r"\x1", r"\u12", r"\N{no such name}"])
def test_an_escape_that_is_none_is_refused_as_a_setting_is(text: str) -> None:
    with pytest.raises(ConfigError, match="is no escape"):
        common.unescape(text)


@pytest.mark.parametrize("text", [r"\ud800", r"\ud83d\ude00", "a\udcff", r"\t\udfff|"])
def test_what_cannot_be_written_as_utf_8_is_refused_and_said_in_ascii(text: str) -> None:
    with pytest.raises(ConfigError, match="cannot be written as UTF-8") as caught:
        common.unescape(text)
    assert str(caught.value).isascii()


def test_a_regular_expression_that_is_none_is_refused() -> None:
    assert common.pattern("t.*").match("topic")
    with pytest.raises(argparse.ArgumentTypeError, match=r"'\(' is not a regular expression: missing \)"):
        common.pattern("(")


@pytest.mark.parametrize(
    ("data", "shown"),
    [(None, {"k": None}), (b"", {"k": ""}), ("é".encode(), {"k": "é"}), (b"\xff\0", {"k_base64": "/wA="})],
)
def test_bytes_become_text_where_they_are_text(data: bytes | None, shown: dict[str, str | None]) -> None:
    assert common.json_bytes(data, "k") == shown


def test_a_table_for_a_pipe_has_tabs_and_a_dash_for_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    common.print_table(["NAME", ("COUNT", "right")], [["[red]a[/]", 0], [None, None]])
    assert capsys.readouterr().out == "NAME\tCOUNT\n[red]a[/]\t0\n-\t-\n"


class Client:
    """The part of a client that `closing` uses, and how it was closed."""

    def __init__(self) -> None:
        self.closed: list[int | None] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self, timeout_ms: int | None = None) -> None:
        self.closed.append(timeout_ms)


@pytest.mark.parametrize(
    ("raised", "closed"), [(KeyboardInterrupt, [common.INTERRUPTED_MS, None]), (ConfigError, [None])]
)
def test_after_a_ctrl_c_a_client_has_little_time_to_close(raised: Any, closed: list[int | None]) -> None:
    client: Any = Client()
    with pytest.raises(raised), common.closing(client):
        raise raised
    assert client.closed == closed
