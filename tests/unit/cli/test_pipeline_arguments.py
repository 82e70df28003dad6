"""The options of each pipeline: how the command line becomes the options object, and what is refused of it."""

from __future__ import annotations

import argparse
import shlex
import time
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

from kclient.cli import pipeline_arguments
from kclient.cli.main import build_parser, main
from kclient.errors import ConfigError
from kclient.spark.pipelines import EventsOptions


def parsed(*words: str) -> argparse.Namespace:
    return build_parser("pipeline").parse_args(["pipeline", *words])


def test_the_command_line_makes_the_options_object() -> None:
    made = pipeline_arguments.pipeline_options(
        parsed(
            *("events", "--bootstrap-server", "b:1", "--topic", "orders", "--schema", "a int, t timestamp"),
            *("--time-column", "t", "--required", "a, t", "--conditions", "event.a > 0"),
            *("--conditions", "event.a < 9", "--checkpoint", "/c", "--output", "/o", "--sums", "a"),
            *("--window-topic", "w", "--dead-letter-topic", "d", "--max-offsets-per-trigger", "10"),
            *(
                "-X",
                "client.id=me",
                "--producer-property",
                "acks=all",
                "--consumer-property",
                "fetch.min.bytes=9",
            ),
        )
    )
    assert made == EventsOptions(
        bootstrap_servers="b:1",
        settings={"client.id": "me"},
        consumer_settings={"fetch.min.bytes": "9"},
        producer_settings={"acks": "all"},
        topic="orders",
        schema="a int, t timestamp",
        time_column="t",
        required=("a", "t"),
        conditions=("event.a > 0", "event.a < 9"),
        checkpoint="/c",
        output="/o",
        sums=("a",),
        window_topic="w",
        dead_letter_topic="d",
        max_offsets_per_trigger=10,
    )


@pytest.mark.parametrize("name", [name for name in pipeline_arguments.PIPELINES if name != "demo"])
def test_every_field_of_an_options_object_has_an_option(name: str) -> None:
    pipeline = pipeline_arguments.PIPELINES[name]
    assert pipeline.make is not None
    options = {argument.name for argument in pipeline.arguments}
    clients = {"bootstrap_servers", "settings", "consumer_settings", "producer_settings"}
    assert attrs.fields_dict(pipeline.make).keys() == options | clients


def test_serializers_of_a_java_client_are_no_settings_of_a_pipeline(tmp_path: Path) -> None:
    of_java = tmp_path / "client.properties"
    of_java.write_text(
        "client.id=me\nvalue.deserializer=org.apache.kafka.common.serialization.StringDeserializer\n"
    )
    words = ["etl", "--topic", "t", "--schema", "t timestamp", "--time-column", "t", "--output", "o"]
    made = pipeline_arguments.pipeline_options(
        parsed(*words, "--checkpoint", "c", "--command-config", str(of_java))
    )
    assert made.settings == {"client.id": "me"}


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("1735689600000", 1_735_689_600_000),
        ("2025-01-01", 1_735_689_600_000),
        ("2025-01-01T01:00:00+01:00", 1_735_689_600_000),
    ],
)
def test_a_moment_is_iso_or_ms_and_in_utc_without_a_zone(text: str, ms: int) -> None:
    words = ["backfill", "--topic", "t", "--schema", "t timestamp", "--time-column", "t", "--output", "o"]
    made = pipeline_arguments.pipeline_options(
        parsed(*words, "--start", text, "--end", "2025-01-02T00:00:00Z")
    )
    assert (made.start_ms, made.end_ms) == (ms, 1_735_776_000_000)


@pytest.mark.parametrize("name", pipeline_arguments.PIPELINES)
def test_every_pipeline_explains_its_options(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["pipeline", name, "--help"])
    assert ended.value.code == 0
    assert "--conf" in capsys.readouterr().out


@pytest.mark.parametrize("name", [name for name in pipeline_arguments.PIPELINES if name != "demo"])
def test_the_command_in_the_help_is_one_that_goes(name: str) -> None:
    epilog = pipeline_arguments.PIPELINES[name].epilog
    assert epilog is not None
    command = epilog.removeprefix("For example:").partition("\n\n")[0]
    assert max(map(len, epilog.splitlines())) <= 120
    program, *words = shlex.split(command.replace("\\\n", ""))
    assert (program, words[1]) == ("kclient", name)
    made = pipeline_arguments.pipeline_options(build_parser().parse_args(words))
    assert type(made) is pipeline_arguments.PIPELINES[name].make
    assert made.time_column in made.schema


def test_a_wrong_option_is_one_line_and_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "--topic",
        "t",
        "--schema",
        "t timestamp",
        "--time-column",
        "t",
        "--checkpoint",
        "c",
        "--output",
        "o",
    ]
    assert main(["pipeline", "etl", *words, "--every", "now"]) == 2
    assert capsys.readouterr().err.strip().startswith("error: --every is 'now'")
    assert main(["pipeline", "etl", *words, "--max-offsets-per-trigger", "0"]) == 2
    assert (
        capsys.readouterr().err.strip() == "error: --max-offsets-per-trigger is 0 and has to be more than 0."
    )


def test_an_error_names_flags_where_the_options_have_other_names(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--topic", "t", "--schema", "t timestamp", "--time-column", "t", "--output", "o"]
    assert main(["pipeline", "backfill", *words, "--start", "2025-01-02", "--end", "2025-01-01"]) == 2
    assert capsys.readouterr().err.strip() == "error: --end has to be after --start."


@pytest.mark.parametrize("text", ["soon", "", "2025-13-01", "-5", "2025-01-01T25:00", "1.5"])
def test_what_is_no_moment_is_refused_before_anything_is_started(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["backfill", "--topic", "t", "--schema", "t timestamp", "--time-column", "t", "--output", "o"]
    with pytest.raises(SystemExit) as ended:
        parsed(*words, f"--start={text}", "--end", "2025-01-02")
    assert ended.value.code == 2
    assert f"argument --start: {text!r} should be like 2025-01-31T12:00:00Z, or ms" in capsys.readouterr().err


@pytest.mark.parametrize(("text", "names"), [("a", ("a",)), (" a , b,,", ("a", "b")), (",", ()), ("", ())])
def test_columns_are_words_between_commas(text: str, names: tuple[str, ...]) -> None:
    words = ["etl", "--topic", "t", "--schema", "t timestamp", "--time-column", "t", "--output", "o"]
    made = pipeline_arguments.pipeline_options(parsed(*words, "--checkpoint", "c", f"--required={text}"))
    assert made.required == names


def test_columns_that_have_to_be_given_are_not_given_by_a_comma() -> None:
    words = ["enrich", "--topic", "t", "--schema", "a int", "--checkpoint", "c", "--output-topic", "o"]
    with pytest.raises(ConfigError, match="--join-on names no column") as refused:
        pipeline_arguments.pipeline_options(parsed(*words, "--table", "/t", "--join-on", ","))
    assert refused.value.name == "join_on"


def test_the_time_column_is_needed_where_the_output_is_by_time_and_nowhere_else(
    capsys: pytest.CaptureFixture[str],
) -> None:
    stream = ["--topic", "t", "--schema", "a int", "--checkpoint", "c"]
    dead = pipeline_arguments.pipeline_options(
        parsed("dead-letters", *stream, "--output-topic", "o", "--dead-letter-topic", "d")
    )
    assert dead.time_column is None
    for words in (["etl", "--output", "o"], ["windows", "--output-topic", "o"]):
        with pytest.raises(SystemExit):
            parsed(*words, *stream)
        assert "required: --time-column" in capsys.readouterr().err


def test_what_is_not_given_is_left_to_the_options_object() -> None:
    words = ["windows", "--topic", "t", "--schema", "t timestamp", "--time-column", "t", "--checkpoint", "c"]
    given = parsed(*words, "--output-topic", "o")
    assert not hasattr(given, "watermark")
    made = pipeline_arguments.pipeline_options(given)
    assert (made.window, made.watermark, made.starting_offsets, made.final) == (
        "5 minutes",
        "10 minutes",
        "earliest",
        False,
    )
    assert made.bootstrap_servers == "localhost:9092"


@pytest.mark.parametrize(
    ("said", "name", "shown"),
    [
        ("window has to be shorter", "window", "--window has to be shorter"),
        ("A window needs the topic", "time_column", "A window needs the topic"),
        ("max_ahead and my_max_ahead", "schema", "--max-ahead and my_max_ahead"),
        ("no_such_option is wrong", None, "no_such_option is wrong"),
    ],
)
def test_a_name_becomes_a_flag_where_it_is_no_plain_word(said: str, name: str | None, shown: str) -> None:
    error = pipeline_arguments.with_flags(ConfigError(said, name=name), "windows")
    assert (str(error), error.name) == (shown, name)


@pytest.fixture
def far_east(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A machine whose own time is nine hours before UTC's."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "JST-9")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("far_east")
def test_the_zone_of_the_machine_is_not_that_of_a_moment_without_one() -> None:
    words = ["backfill", "--topic", "t", "--schema", "t timestamp", "--time-column", "t", "--output", "o"]
    made = pipeline_arguments.pipeline_options(
        parsed(*words, "--start", "2025-01-01", "--end", "2025-01-02T00:00")
    )
    assert (made.start_ms, made.end_ms) == (1_735_689_600_000, 1_735_776_000_000)
