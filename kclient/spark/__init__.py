"""Kafka in PySpark: `spark.read.format("kclient")`, and what goes with it.

Nothing here imports PySpark before one of these names is used; without it, that is an ImportError which says what to
install. Spark finds the format by itself where kclient is installed with pip; `register` is for all other cases.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kclient.spark.foreach_batch import batch_writer
    from kclient.spark.lag import KafkaLagListener
    from kclient.spark.migration import migrate_report
    from kclient.spark.registration import register
    from kclient.spark.task_metrics import KafkaTaskMetrics

__all__ = ["KafkaLagListener", "KafkaTaskMetrics", "batch_writer", "migrate_report", "register"]

_HOME = {
    "KafkaLagListener": "lag",
    "KafkaTaskMetrics": "task_metrics",
    "batch_writer": "foreach_batch",
    "migrate_report": "migration",
    "register": "registration",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    try:
        module = importlib.import_module(f"{__name__}.{_HOME[name]}")
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in {"pyspark", "pyarrow", "py4j"}:
            raise
        raise ImportError(
            f"kclient.spark.{name} needs PySpark and PyArrow ({error}): pip install 'kclient-kafka[spark]'"
        ) from error
    return getattr(module, name)
