"""Logs of tests on Spark and of kclient, beside the loggers that PySpark makes for its errors."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from pyspark.logger import PySparkLogger

import kclient.spark.sink  # noqa: F401 - it makes the logger of the reports


@pytest.fixture
def of_spark() -> Iterator[logging.Logger]:
    """A logger as PySpark makes it for an error that tells where in a query it is."""
    logger = PySparkLogger.getLogger("test-query-context")
    logger.propagate = False
    yield logger
    logger.propagate = True


def test_a_logger_of_sparks_leaves_the_format_of_who_listens_to_it(
    of_spark: logging.Logger, caplog: pytest.LogCaptureFixture
) -> None:
    # As pytest does before every test for a logger that does not propagate.
    of_spark.addHandler(caplog.handler)
    try:
        logging.getLogger("somebody").warning('says "hello"')
        of_spark.warning("a query")
    finally:
        of_spark.removeHandler(caplog.handler)
    assert 'says "hello"' in caplog.text
    assert "a query" in caplog.text


def test_a_logger_of_sparks_gives_its_own_format_to_a_handler_without_one(of_spark: logging.Logger) -> None:
    handler = logging.StreamHandler()
    of_spark.addHandler(handler)
    of_spark.removeHandler(handler)
    assert type(handler.formatter).__name__ == "JSONFormatter"


@pytest.mark.usefixtures("of_spark")
def test_loggers_of_kclient_are_plain_ones_and_spark_collects_what_the_reports_one_says() -> None:
    known = logging.Logger.manager.loggerDict.items()
    assert not [
        name for name, each in known if name.startswith("kclient") and isinstance(each, PySparkLogger)
    ]
    assert logging.getLogger("kclient.spark.report").getEffectiveLevel() == logging.INFO
