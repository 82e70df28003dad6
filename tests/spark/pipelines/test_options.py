"""Options of pipelines are checked before Spark is started."""

from __future__ import annotations

from typing import Any

import pytest

from kclient.errors import ConfigError
from kclient.spark.pipelines import BackfillOptions, EnrichOptions, EtlOptions
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
