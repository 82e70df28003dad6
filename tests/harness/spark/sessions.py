"""Spark for tests: whether it can run here, sessions, and rows to compare."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.requirements import skip_if

_SPARK = importlib.util.find_spec("pyspark")
_SQL = None if _SPARK is None else Path(_SPARK.origin or "").parent / "sql"
HAS_LIMITS = _SQL is not None and (_SQL / "streaming" / "datasource.py").exists()
"""AvailableNow is as many micro-batches as the limits ask for: from PySpark 4.2 on."""

needs_limits = pytest.mark.skipif(
    not HAS_LIMITS, reason="needs PySpark 4.2 or newer, whose AvailableNow is more than one batch"
)

_HAS_FILTERS = _SQL is not None and "class Filter" in (_SQL / "datasource.py").read_text()
needs_filters = pytest.mark.skipif(not _HAS_FILTERS, reason="filters came with PySpark 4.1")


def missing() -> str | None:
    """The reason why Spark cannot run here, None if it can."""
    for module in ("pyspark", "pyarrow"):
        if importlib.util.find_spec(module) is None:
            return f"{module} is not installed (pip install '.[spark]')"
    if shutil.which("java") is None:
        return "java is not installed (Spark needs Java 17)"
    return None


def need() -> None:
    """Skip the test where Spark cannot run; in CI that is a failure."""
    skip_if(missing())


@contextmanager
def session(master: str = "local[2,3]", **settings: str) -> Iterator[Any]:
    """A session that knows the format, with executors that run this interpreter."""
    need()
    from pyspark.sql import SparkSession

    from kclient.spark import register

    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.session.timeZone", "UTC")
    )
    for name, value in settings.items():
        builder = builder.config(name.replace("__", "."), value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    try:
        register(spark)
        yield spark
    finally:
        spark.stop()


def rows(frame: Any) -> Counter[tuple[Any, ...]]:
    """The rows as a multiset."""
    return Counter(map(_plain, frame.collect()))


def _plain(value: Any) -> Any:
    if isinstance(value, bytearray):
        return bytes(value)
    return tuple(map(_plain, value)) if isinstance(value, (list, tuple)) else value


def said(error: BaseException) -> str:
    """The text of an error of Spark's, without the JVM's part."""
    return str(error).partition("\n\tat ")[0]
