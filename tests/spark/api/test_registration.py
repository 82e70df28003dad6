"""Making the format known to a session, which may know it already."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import AnalysisException, PySparkTypeError

from kclient.spark import register
from kclient.spark.data_source import KafkaDataSource


def session(error: Exception | None = None) -> Any:
    """Stands for a session, which needs Java: notes what is registered, then raises `error`."""
    registered: list[type] = []

    def add(source: type) -> None:
        registered.append(source)
        if error is not None:
            raise error

    return SimpleNamespace(dataSource=SimpleNamespace(register=add), registered=registered)


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
