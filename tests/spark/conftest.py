"""In the folder unit what needs no PySpark, in api what needs no JVM, beside them what needs both."""

from __future__ import annotations

import importlib.util
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.real_kafka.broker import RealKafka
from harness.real_kafka.node import missing
from harness.requirements import skip_if
from harness.spark import sessions

HERE = Path(__file__).parent

# Those in api import PySpark; the ones beside it say that it is missing, and fail for it in CI.
collect_ignore = ["api"] if importlib.util.find_spec("pyspark") is None else []

# PySpark 4.0 and 4.1 leave sockets to the collector.
LEAKS = ("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


@pytest.fixture(scope="session")
def real_servers() -> Iterator[str]:
    """A real Kafka for all who need nothing special of it."""
    sessions.need()
    skip_if(missing())
    with RealKafka() as kafka:
        yield kafka.bootstrap_servers


@pytest.fixture(scope="session", autouse=True)
def _spark_ends() -> Iterator[None]:
    yield
    sessions.stop()


@pytest.fixture(scope="session", autouse=True)
def _formats_stay() -> Iterator[None]:
    """Handlers that have a format keep it when a logger of PySpark's gets them.

    PySpark makes such a logger for an error that tells where in a query it is, does not let it propagate, and has it
    put JSON into every handler. Pytest gives its handlers, which are the same for all tests, to whatever does not
    propagate: what `caplog` has would be JSON from the first such error on.
    """
    if importlib.util.find_spec("pyspark") is None:
        yield
        return
    from pyspark.logger import PySparkLogger

    formatting = PySparkLogger.addHandler

    def add(self: PySparkLogger, handler: logging.Handler) -> None:
        (formatting if handler.formatter is None else logging.Logger.addHandler)(self, handler)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PySparkLogger, "addHandler", add)
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Forgive an old PySpark what everything else must not do."""
    if not (4, 0) <= sessions.VERSION < (4, 2):
        return
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("spark"):
            for leak in LEAKS:
                item.add_marker(pytest.mark.filterwarnings(leak))
