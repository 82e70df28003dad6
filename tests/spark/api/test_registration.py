"""Making the format known to a session, which may know it already."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkTypeError

from kclient.spark import register
from kclient.spark.data_source import KafkaDataSource
from kclient.spark.redaction import REDACTED_OPTIONS

REDACTION = "spark.sql.redaction.options.regex"


def session(error: Exception | None = None, **conf: str) -> Any:
    """Stands for a session, which needs Java: notes what is registered, then raises `error`."""
    registered: list[type] = []
    known = {REDACTION: "(?i)url", **{name.replace("_", "."): value for name, value in conf.items()}}

    def add(source: type) -> None:
        registered.append(source)
        if error is not None:
            raise error

    return SimpleNamespace(
        dataSource=SimpleNamespace(register=add),
        registered=registered,
        conf=SimpleNamespace(get=known.get, set=known.__setitem__, getAll=known),
    )


def test_the_format_is_registered_with_the_session() -> None:
    spark = session()
    register(spark)
    register(spark)
    assert spark.registered == [KafkaDataSource, KafkaDataSource]


def test_a_spark_that_has_found_it_by_itself_is_content() -> None:
    error = AnalysisException("[DATA_SOURCE_ALREADY_EXISTS] Data source 'kclient' already exists.")
    spark = session(error)
    register(spark)
    assert spark.registered == [KafkaDataSource]


@pytest.mark.parametrize(
    "error",
    [
        AnalysisException("[PYTHON_DATA_SOURCE_ERROR] Failed to register."),
        PySparkTypeError("DATA_SOURCE_ALREADY_EXISTS"),
    ],
)
def test_anything_else_that_goes_wrong_is_raised(error: Exception) -> None:
    with pytest.raises(type(error)) as raised:
        register(session(error))
    assert raised.value is error


def test_the_sessions_plans_hide_what_spark_does_not_know_to_be_secret() -> None:
    spark = session()
    register(spark)
    assert spark.conf.get(REDACTION) == REDACTED_OPTIONS


def test_settings_of_delegation_tokens_are_warned_of_without_their_values(
    caplog: pytest.LogCaptureFixture,
) -> None:
    register(session())
    assert caplog.text == ""
    register(session(spark_kafka_clusters_c_ssl_truststore_password="hunter"))
    [record] = caplog.records
    assert record.getMessage().startswith("spark.kafka.clusters.*: kclient gets no delegation tokens")
    assert "hunter" not in caplog.text
