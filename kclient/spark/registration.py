"""Making the format known to a session."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from kclient.errors import IllegalStateError
from kclient.spark.data_source import KafkaDataSource
from kclient.spark.redaction import hide_in_plans

_log = logging.getLogger(__name__)

_DELEGATION_TOKENS = "spark.kafka.clusters."

if TYPE_CHECKING:
    from kclient.spark.task_metrics import Counter, KafkaTaskMetrics


def register(spark: SparkSession, metrics: KafkaTaskMetrics | None = None) -> None:
    """Make `format("kclient")` known to this session; tasks of its queries tell `metrics` their numbers.

    Without metrics this is not needed where the driver has kclient installed with pip, not as editable: Spark then
    finds it by itself. May be called again. Raises IllegalStateError for metrics where PySpark 4.0 has done so.

    From then on plans of the session hide all secrets of `kafka.*`. Settings of delegation tokens are warned of, as
    they are for the built-in connector alone.
    """
    hide_in_plans(spark)
    if any(name.startswith(_DELEGATION_TOKENS) for name in spark.conf.getAll):
        _log.warning(
            "%s*: kclient gets no delegation tokens for a job; give it one, or other credentials, by "
            "kafka.sasl.jaas.config.",
            _DELEGATION_TOKENS,
        )
    try:
        spark.dataSource.register(KafkaDataSource if metrics is None else _counting(metrics.counter))
    except AnalysisException as error:
        # PySpark 4.0 has found it by itself and takes no second one of that name.
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise
        if metrics is not None:
            raise IllegalStateError(
                "PySpark 4.0 has found the format kclient by itself, and takes none that counts in its place: "
                "KafkaTaskMetrics needs PySpark 4.1 or newer, or an editable install on the driver"
            ) from None


def _counting(accumulator: Counter) -> type[KafkaDataSource]:
    # Made here, so that it is pickled as a whole, with the accumulator, and not by its name.
    class CountingDataSource(KafkaDataSource):
        """The format with an accumulator of this session's."""

        counter = accumulator

    return CountingDataSource
