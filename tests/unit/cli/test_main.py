"""`kclient` itself: which command is run, and the exit code and line that an error becomes."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import pytest

from kclient.cli import main as cli
from kclient.cli import perf
from kclient.cli.pipeline_arguments import PIPELINES
from kclient.errors import ConfigError, KafkaTimeoutError

Run = Callable[[argparse.Namespace], int]


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[[Run], None]:
    """Puts a function in the place of what `kclient topics` does."""

    def put(run: Run) -> None:
        module: Any = ModuleType("kclient.cli.topics")
        module.add_arguments = lambda parser: parser.add_argument("--list", action="store_true")
        module.run = run
        monkeypatch.setitem(sys.modules, "kclient.cli.topics", module)

    return put


def raising(error: BaseException) -> Run:
    def run(_: argparse.Namespace) -> int:
        raise error

    return run


@pytest.mark.parametrize("code", [0, 1, 7])
def test_the_code_of_the_command_is_that_of_the_program(command: Callable[[Run], None], code: int) -> None:
    command(lambda options: code if options.list else 99)
    assert cli.main(["topics", "--list"]) == code


def test_words_are_those_of_the_process_unless_they_are_given(
    command: Callable[[Run], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    command(lambda options: 5 if options.list else 6)
    monkeypatch.setattr(sys, "argv", ["kclient", "topics", "--list"])
    assert (cli.main(), cli.main(["topics"]), cli.main([])) == (5, 6, 2)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ConfigError("[bold]acks[/] is wrong", name="acks"), 2),
        (KafkaTimeoutError("[bold]too[/] late"), 1),
        (FileNotFoundError(2, "No such file", "[x]"), 1),
        (ConnectionRefusedError("nobody"), 1),
    ],
)
def test_an_error_is_one_line_as_it_is_and_a_code(
    command: Callable[[Run], None], error: Exception, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    command(raising(error))
    assert cli.main(["topics"]) == code
    assert capsys.readouterr() == ("", f"error: {error}\n")


def test_an_error_that_nobody_thought_of_keeps_its_traceback(command: Callable[[Run], None]) -> None:
    command(raising(ZeroDivisionError()))
    with pytest.raises(ZeroDivisionError):
        cli.main(["topics"])


def test_a_reader_that_is_gone_is_no_error_and_nothing_more_is_written_to_it(
    command: Callable[[Run], None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    receiver, sender = os.pipe()
    os.close(receiver)
    with os.fdopen(sender, "w") as gone:
        monkeypatch.setattr(sys, "stdout", gone)
        command(lambda _: print("x" * 100_000, flush=True) or 0)  # type: ignore[func-returns-value]
        assert cli.main(["topics"]) == 0
        print("at exit", flush=True)
    assert capsys.readouterr().err == ""


@pytest.fixture
def terminable() -> Iterator[None]:
    """SIGTERM as a program finds it."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.usefixtures("terminable")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_closes_everything_and_is_told_by_the_code(
    command: Callable[[Run], None], number: signal.Signals, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    closed = []

    def run(_: argparse.Namespace) -> int:
        try:
            signal.raise_signal(number)
        except KeyboardInterrupt:
            closed.append(number)
            raise
        return 0

    command(run)
    assert cli.main(["topics"]) == code
    assert closed == [number]
    assert capsys.readouterr() == ("", "")
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.usefixtures("terminable")
@pytest.mark.parametrize("theirs", [signal.SIG_IGN, lambda _number, _frame: None], ids=["ignored", "handled"])
def test_who_started_us_may_want_something_else_of_a_sigterm(
    command: Callable[[Run], None], theirs: Any
) -> None:
    signal.signal(signal.SIGTERM, theirs)
    command(lambda _: signal.raise_signal(signal.SIGTERM) or 3)  # type: ignore[func-returns-value]
    assert cli.main(["topics"]) == 3
    assert signal.getsignal(signal.SIGTERM) is theirs


@pytest.mark.parametrize(
    ("words", "level"),
    [([], logging.WARNING), (["-v"], logging.INFO), (["-vv"], logging.DEBUG), (["-vvvv"], logging.DEBUG)],
)
def test_more_is_logged_the_more_often_it_is_asked_for(
    command: Callable[[Run], None], monkeypatch: pytest.MonkeyPatch, words: list[str], level: int
) -> None:
    chosen: list[int] = []
    monkeypatch.setattr(logging, "basicConfig", lambda **given: chosen.append(given["level"]))
    command(lambda _: 0)
    cli.main(["topics", *words])
    assert chosen == [level]


def test_only_the_command_that_is_run_is_imported(
    command: Callable[[Run], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    command(lambda _: 0)
    for name in cli.COMMANDS:
        if name != "topics":
            monkeypatch.setitem(
                sys.modules, f"kclient.cli.{name.replace('-', '_')}", None
            )  # importing it fails
    assert cli.main(["topics"]) == 0
    with pytest.raises(ImportError):
        cli.build_parser()


CONNECTING = [
    *([name] for name in cli.COMMANDS if name not in {"perf", "pipeline"}),
    *(["perf", part] for part in perf.PARTS),
    *(["pipeline", name] for name, one in PIPELINES.items() if one.make is not None),
]


@pytest.mark.parametrize("words", CONNECTING, ids=" ".join)
def test_every_command_takes_a_file_of_settings_by_the_name_of_kafkas_tools(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        cli.main([*words, "--help"])
    assert "--command-config FILE" in capsys.readouterr().out
