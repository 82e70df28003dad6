"""Making the format known to a session."""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession

from kclient.spark.data_source import KafkaDataSource


def register(spark: SparkSession) -> None:
    """Make `format("kclient")` known to this session.

    Not needed where the driver has kclient installed with pip, not as editable: Spark then finds it by itself. May be
    called again.
    """
    try:
        spark.dataSource.register(KafkaDataSource)
    except AnalysisException as error:
        # PySpark 4.0 has found it by itself and takes no second one of that name.
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise
