"""Spark for tests: whether it can run here, sessions, and rows to compare."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import shutil
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.requirements import skip_if

_SPARK = importlib.util.find_spec("pyspark")
_SQL = None if _SPARK is None else Path(_SPARK.origin or "").parent / "sql"
_NUMBERS = "0.0" if _SPARK is None else importlib.metadata.version("pyspark")
VERSION = tuple(map(int, _NUMBERS.split(".")[:2]))
"""The first two numbers of PySpark's version, (0, 0) without it."""
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


# The better compiler does not pay off within minutes, nor does it to look at Spark's own classes again.
JAVA_OPTIONS = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
_CORE = {
    # Where the machine is busy Spark may not reach its own processes in time, and tries again.
    "spark.master": "local[2,3]",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.extraJavaOptions": JAVA_OPTIONS,
    "spark.ui.enabled": "false",
    # The JVM remembers what its first session was told.
    "spark.python.worker.reuse": "true",
}
_SQL_SETTINGS = {"spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC"}
_running: tuple[dict[str, str], Any] | None = None


@contextmanager
def session(core: Mapping[str, str] | None = None, sql: Mapping[str, str] | None = None) -> Iterator[Any]:
    """A session that knows the format, with executors that run this interpreter.

    It goes on for who wants one with the same `core` settings, until `stop`; `sql` holds for this use of it alone.
    """
    need()
    spark = _session({**_CORE, **(core or {})})
    for name, value in {**_SQL_SETTINGS, **(sql or {})}.items():
        spark.conf.set(name, value)
    try:
        yield spark
    finally:
        for name in sql or ():
            spark.conf.unset(name)


def _session(core: dict[str, str]) -> Any:
    from pyspark.sql import SparkSession

    from kclient.spark import register

    global _running
    if _running is not None and _running[0] == core:
        return _running[1]
    stop()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder
    for name, value in core.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    _running = core, spark
    spark.sparkContext.setLogLevel("OFF")
    register(spark)
    return spark


def stop() -> None:
    """Stop the session that runs, if there is one."""
    global _running
    if _running is not None:
        running, _running = _running[1], None
        running.stop()


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
