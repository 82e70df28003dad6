"""Spark's own Kafka connector, where it is to be had: for one version of PySpark, by Maven."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from pathlib import Path

from harness.real_kafka.node import classpath
from harness.real_kafka.node import missing as missing_kafka

VERSION = "4.0.0"
"""The newest that Maven Central has all of."""
_POM = Path(__file__).parents[2] / "spark" / "connector" / "pom.xml"


def missing() -> str | None:
    """The reason why it is not there, None if it is."""
    if importlib.util.find_spec("pyspark") is None:
        return "pyspark is not installed"
    found = importlib.metadata.version("pyspark")
    return missing_kafka() if found == VERSION else f"PySpark is {found}, the connector {VERSION}"


def settings() -> dict[str, str]:
    """Settings of a session that has it."""
    return {"spark.jars": classpath(_POM).replace(os.pathsep, ",")}
