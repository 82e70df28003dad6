"""A session for a pipeline, or one line about what is missing for it."""

from __future__ import annotations

import importlib.util
import os
import pkgutil
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from kclient.errors import KafkaError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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


def session(name: str, settings: Mapping[str, str] | None = None) -> SparkSession:
    """The session of this process, made if there is none, in which `format("kclient")` is known.

    Under plain `python` it runs on all cores of this machine, with this interpreter; under spark-submit what that was
    told holds. Dates and times are in UTC unless `settings` say otherwise. Raises SparkMissingError.
    """
    check_spark()
    from pyspark.sql import SparkSession

    from kclient.spark.registration import register

    chosen = {"spark.sql.session.timeZone": "UTC"}
    if "PYSPARK_GATEWAY_PORT" not in os.environ:  # which spark-submit sets
        chosen |= {
            "spark.master": "local[*]",
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
        }
        # Workers run the first python3 of the PATH otherwise, which need not have kclient.
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        if (settings or {}).get("spark.master", "local").startswith("local"):
            # Nobody else needs to reach the driver; Spark would listen to the network otherwise.
            os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    builder = SparkSession.builder.appName(name)
    for key, value in {**chosen, **(settings or {})}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    # As Spark searches. It warns of a second registration.
    if all(module.name != "pyspark_kclient" for module in pkgutil.iter_modules()):
        register(spark)
    return spark
