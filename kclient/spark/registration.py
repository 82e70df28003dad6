"""Making the format known to a session."""

from __future__ import annotations

from pyspark.sql import SparkSession

from kclient.spark.data_source import KafkaDataSource


def register(spark: SparkSession) -> None:
    """Make `format("kclient")` known to this session.

    Not needed where the driver has kclient installed with pip, not as editable: Spark then finds it by itself. May be
    called again.
    """
    spark.dataSource.register(KafkaDataSource)
