"""A session for a pipeline, or one line about what is missing for it."""

from __future__ import annotations

import importlib.util
import logging
import os
import pkgutil
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kclient.errors import KafkaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


_JAVA_OPTIONS = "spark.driver.extraJavaOptions"
# Spark's own has a dozen lines of warnings before anything has happened, and a stack for every error that it raises.
_LOG4J = """\
rootLogger.level = fatal
logger.gateway.name = org.apache.spark.api.python.PythonGatewayServer
logger.gateway.level = fatal
rootLogger.appenderRef.stderr.ref = stderr
appender.stderr.type = Console
appender.stderr.name = stderr
appender.stderr.target = SYSTEM_ERR
appender.stderr.layout.type = PatternLayout
appender.stderr.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n
"""


class SparkMissingError(KafkaError):
    """Something that Spark needs is not installed; the message says how to install it."""

    default_message = "Spark cannot run here."


def check_spark() -> None:
    """Raise SparkMissingError where PySpark, PyArrow or Java are not there."""
    for module in ("pyspark", "pyarrow"):
        if importlib.util.find_spec(module) is None:
            raise SparkMissingError(
                f"{module} is not installed for {sys.executable}: pip install 'kclient-kafka[spark]'"
            )
    home = os.environ.get("JAVA_HOME")
    found = (Path(home) / "bin" / "java").exists() if home else shutil.which("java") is not None
    if not found:
        where = f" in JAVA_HOME ({home})" if home else ""
        raise SparkMissingError(
            f"There is no java{where}, and Spark needs Java 17: apt-get install openjdk-17-jre-headless, or set "
            "JAVA_HOME"
        )


def session(name: str, settings: Mapping[str, str] | None = None, quiet: bool = False) -> SparkSession:
    """The session of this process, made if there is none, in which `format("kclient")` is known.

    Under plain `python` it runs on all cores of this machine, with this interpreter and as many shuffle partitions as
    there are cores; under spark-submit what that was told holds. Dates and times are in UTC unless `settings` say
    otherwise. With `quiet` the log of plain `python` is left out: what stops a query is raised by it anyway. Raises
    SparkMissingError.
    """
    check_spark()
    from pyspark.sql import SparkSession

    from kclient.spark.registration import register

    chosen = {"spark.sql.session.timeZone": "UTC"}
    given = dict(settings or {})
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # which spark-submit sets
        chosen |= {
            "spark.master": "local[*]",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }
        # Workers run the first python3 of the PATH otherwise, which need not have kclient.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        if given.get("spark.master", "local").startswith("local"):
            # Nobody else needs to reach the driver; Spark would listen to the network otherwise.
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
            # Spark's 200 are for clusters: here each is a state to keep and a task in every micro-batch.
            chosen["spark.sql.shuffle.partitions"] = str(os.cpu_count() or 1)
    with tempfile.TemporaryDirectory(prefix="kclient-spark-") as folder:
        if quiet and "PYSPARK_GATEWAY_PORT" not in os.environ:
            # Read when the JVM starts. PySpark's own logger has no level in the session.
            given[_JAVA_OPTIONS] = f"{given.get(_JAVA_OPTIONS, '')} {_quiet_log(Path(folder))}".lstrip()
            logging.getLogger("DataFrameQueryContextLogger").setLevel(logging.CRITICAL)
        builder = SparkSession.builder.appName(name)
        for key, value in {**chosen, **given}.items():
            builder = builder.config(key, value)
        spark = builder.getOrCreate()
    # As Spark searches. It warns of a second registration.
    if all(module.name != "pyspark_kclient" for module in pkgutil.iter_modules()):
        register(spark)
    return spark


def _quiet_log(folder: Path) -> str:
    file = folder / "log4j2.properties"
    file.write_text(_LOG4J)
    return f"-Dlog4j2.configurationFile={file.as_uri()}"
