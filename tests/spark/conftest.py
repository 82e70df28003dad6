"""In the folder unit what needs no PySpark, in api what needs no JVM, beside them what needs both."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent

sys.path.insert(0, str(HERE))
sys.path.insert(0, str(HERE.parent / "kafka"))

# Those in api import PySpark; the ones beside it say that it is missing, and fail for it in CI.
collect_ignore = ["api"] if importlib.util.find_spec("pyspark") is None else []

# PySpark 4.0 and 4.1 leave sockets to the collector.
LEAKS = ("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")


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
