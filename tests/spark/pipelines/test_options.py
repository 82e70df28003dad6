"""Options of pipelines are checked before Spark is started."""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path
from typing import Any

import attrs
import pytest

from kclient.cli import pipeline_arguments
from kclient.cli.main import build_parser, main
from kclient.cli.pipeline import _said
from kclient.errors import ConfigError
from kclient.spark.pipelines import BackfillOptions, EnrichOptions, EtlOptions, EventsOptions, session
from kclient.spark.pipelines.options import duration_ms

ETL: dict[str, Any] = {
    "bootstrap_servers": "broker:9092",
    "topic": "orders",
    "schema": "order_id string, time timestamp",
    "time_column": "time",
    "checkpoint": "/checkpoint",
    "output": "/output",
}


@pytest.mark.parametrize(
    ("text", "ms"),
    [("1 second", 1000), ("30 seconds", 30_000), ("2 hours", 7_200_000), ("1 day", 86_400_000)],
)
def test_a_time_is_a_number_and_a_unit(text: str, ms: int) -> None:
    assert duration_ms(text, "window") == ms


@pytest.mark.parametrize(
    "text", ["", "5", "5 mins", "0 seconds", "-1 hours", "1.5 hours", "1 hour 5 minutes"]
)
def test_what_is_no_time_is_refused_with_the_name_of_its_option(text: str) -> None:
    with pytest.raises(ConfigError, match="watermark") as refused:
        duration_ms(text, "watermark")
    assert refused.value.name == "watermark"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("bootstrap_servers", ""),
        ("topic", " "),
        ("schema", ""),
        ("output", ""),
        ("checkpoint", ""),
        ("every", "often"),
        ("max_lateness", "very"),
        ("max_offsets_per_trigger", 0),
        ("time_column", None),
    ],
)
def test_an_option_without_sense_is_refused_by_its_name(name: str, value: object) -> None:
    with pytest.raises(ConfigError) as refused:
        EtlOptions(**{**ETL, name: value})
    assert refused.value.name == name


def test_lateness_needs_a_time_column() -> None:
    given = {**ETL, "time_column": None, "output_topic": "out", "table": "/table", "join_on": ("product",)}
    del given["output"]
    assert EnrichOptions(**given).time_column is None
    with pytest.raises(ConfigError, match="max_lateness needs the option time_column"):
        EnrichOptions(**given, max_lateness="1 hour")


def test_a_join_needs_columns_and_a_format_that_is_known() -> None:
    given = {**ETL, "output_topic": "out", "table": "/table"}
    del given["output"]
    with pytest.raises(ConfigError, match="join_on"):
        EnrichOptions(**given, join_on=())
    with pytest.raises(ConfigError, match="one of parquet, json, csv"):
        EnrichOptions(**given, join_on=("product",), table_format="xml")


def test_a_range_of_time_ends_after_it_begins() -> None:
    given = {name: value for name, value in ETL.items() if name != "checkpoint"}
    with pytest.raises(ConfigError, match="end_ms"):
        BackfillOptions(**given, start_ms=5, end_ms=5)


def test_settings_of_clients_become_options_of_the_format() -> None:
    options = EtlOptions(
        **ETL,
        settings={"security.protocol": "SSL"},
        consumer_settings={"fetch.min.bytes": "9"},
        producer_settings={"acks": "all"},
    )
    common = {"kafka.bootstrap.servers": "broker:9092", "kafka.security.protocol": "SSL"}
    assert options.source_settings == {**common, "kafka.fetch.min.bytes": "9"}
    assert options.sink_settings == {**common, "kafka.acks": "all"}


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
