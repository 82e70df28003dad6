"""In the folder unit what needs no PySpark, in api what needs no JVM, beside them what needs both."""

from __future__ import annotations

import importlib.metadata
import importlib.util
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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Forgive an old PySpark what everything else must not do."""
    if importlib.util.find_spec("pyspark") is None:
        return
    major, minor = map(int, importlib.metadata.version("pyspark").split(".")[:2])
    if (major, minor) >= (4, 2):
        return
    for item in items:
        if HERE in item.path.parents and item.get_closest_marker("spark"):
            for leak in LEAKS:
                item.add_marker(pytest.mark.filterwarnings(leak))
