"""The parser of command lines: what it says of a word that is not known."""

from __future__ import annotations

import pytest

from kclient.cli.parser import Parser


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    parser = Parser(prog="p")
    parser.add_argument("--topic")
    parser.add_argument("--number", type=int, choices=[1, 2])
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("consume").add_argument("--offset")
    with pytest.raises(SystemExit) as ended:
        parser.parse_args(words)
    assert ended.value.code == 2
    return capsys.readouterr().err.splitlines()[-1]


def test_a_misspelt_option_is_told_with_the_nearest_and_without_its_value(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = "p: error: --topik is not known here; did you mean --topic?"
    assert refused(capsys, "--topik=secret") == said


def test_an_option_is_named_before_a_word_that_came_first(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "consume", "word", "--zzz")
    assert said == "p consume: error: --zzz is not known here"


def test_a_misspelt_option_of_a_command_is_sought_among_that_commands(
    capsys: pytest.CaptureFixture[str],
) -> None:
    said = refused(capsys, "consume", "--ofset", "3")
    assert said == "p consume: error: --ofset is not known here; did you mean --offset?"
    assert refused(capsys, "consume", "--topic", "t") == "p consume: error: --topic is not known here"


def test_a_choice_that_is_no_text_is_told_with_those_that_exist(capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, "consumee").endswith("'consumee' is none of consume; did you mean consume?")
