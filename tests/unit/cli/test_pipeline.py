"""`kclient pipeline`: the line that an error becomes, and what is found out before Spark is started."""

from __future__ import annotations

import pytest

from kclient.cli.main import main
from kclient.cli.pipeline import _said
from kclient.spark.pipelines import session


def test_without_pyspark_one_line_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session.importlib.util, "find_spec", lambda _name: None)
    assert main(["pipeline", "demo"]) == 1
    said = capsys.readouterr().err
    assert "pip install 'kclient-kafka[spark]'" in said
    assert len(said.strip().splitlines()) == 1


@pytest.mark.parametrize("home", [None, "/nowhere"])
def test_without_java_one_line_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, home: str | None
) -> None:
    monkeypatch.setattr(session.importlib.util, "find_spec", lambda name: name)
    monkeypatch.setenv("PATH", "")
    if home is None:
        monkeypatch.delenv("JAVA_HOME", raising=False)
    else:
        monkeypatch.setenv("JAVA_HOME", home)
    assert main(["pipeline", "demo"]) == 1
    said = capsys.readouterr().err
    assert "openjdk-17" in said
    assert (home or "There is no java,") in said
    assert len(said.strip().splitlines()) == 1


def test_of_an_error_of_sparks_the_line_of_python_is_shown() -> None:
    error = Exception(
        "[STREAM_FAILED] Query [id = 1] terminated with exception: Traceback (most recent call last):\n"
        '  File "source.py", line 1, in f\nValueError: not this\n'
        "kclient.errors.client.ConfigError: subscribe: there is no topic 'orders'.\n\n"
        "During handling of the above exception, another exception occurred:\n\n"
        "UnboundLocalError: cannot access local variable 'reader'\n\tat org.apache.spark.X"
    )
    assert _said(error) == "subscribe: there is no topic 'orders'."
    assert (
        _said(Exception("[PATH_ALREADY_EXISTS] There is one.\n\tat x"))
        == "[PATH_ALREADY_EXISTS] There is one."
    )


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("one line", "one line"),
        ("", ""),
        ("first\nsecond\n", "first"),
        ("x\nValueError: not this\nKeyError: but this\nat org", "but this"),
        ("x\nmy.package.OddException: of others\n", "of others"),
        ("x\nkclient.errors.A: no error's name\nTypeError: t", "t"),
        ("x\nkclient.errors.client.ConfigError: first\nkclient.errors.broker.NetworkError: last\n", "last"),
        ("kclient.errors.client.ConfigError: at once", "at once"),
        ("x\n  ValueError: indented, so of a stack\n", "x"),
        ("x\nkclient.errors.OurError: ours\nkclienta.OwnError: of another package\nOSError: later", "ours"),
    ],
)
def test_the_last_line_of_ours_comes_first_then_any_of_pythons_then_the_first_of_sparks(
    text: str, line: str
) -> None:
    assert _said(Exception(text)) == line


def test_options_that_do_not_go_are_told_where_there_is_no_spark(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session.importlib.util, "find_spec", lambda _name: None)
    words = ["--topic", "t", "--schema", "t timestamp", "--time-column", "t", "--output", "o"]
    assert main(["pipeline", "etl", *words, "--checkpoint", " "]) == 2
    assert capsys.readouterr().err == "error: --checkpoint is empty.\n"
    assert main(["pipeline", "etl", *words, "--checkpoint", "c"]) == 1
    assert "pyspark is not installed" in capsys.readouterr().err
