"""Version and options of each command, as it tells them."""

from __future__ import annotations

import pytest

from kclient import __version__
from kclient._accel import IMPL
from kclient.cli import dead_letters, perf
from kclient.cli.main import COMMANDS, main
from kclient.cli.pipeline_arguments import PIPELINES

PARTS = [
    [],
    *([command] for command in COMMANDS),
    *(["perf", part] for part in perf.PARTS),
    ["transactions", "find-hanging"],
    *(["pipeline", part] for part in [*PIPELINES, dead_letters.NAME]),
]


@pytest.mark.parametrize("words", PARTS, ids=" ".join)
def test_every_command_prints_the_version_and_does_nothing_else(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*words, "--version"])
    assert ended.value.code == 0
    assert capsys.readouterr() == (f"kclient {__version__} ({IMPL} implementation)\n", "")


def test_the_version_is_printed_whatever_else_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["topics", "--bootstrap-server", "no.such.host:1", "--delete", "--version", "--topic", "t"])
    assert ended.value.code == 0
    assert capsys.readouterr() == (f"kclient {__version__} ({IMPL} implementation)\n", "")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_its_options(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert "options:" in capsys.readouterr().out
