"""Making the format known to a session."""

from __future__ import annotations

import logging

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from kclient.spark.data_source import KafkaDataSource
from kclient.spark.redaction import hide_in_plans

_log = logging.getLogger(__name__)

_DELEGATION_TOKENS = "spark.kafka.clusters."


def register(spark: SparkSession) -> None:
    """Make `format("kclient")` known to this session.

    Not needed where the driver has kclient installed with pip, not as editable: Spark then finds it by itself. May be
    called again.

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
        spark.dataSource.register(KafkaDataSource)
    except AnalysisException as error:
        # PySpark 4.0 has found it by itself and takes no second one of that name.
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise
