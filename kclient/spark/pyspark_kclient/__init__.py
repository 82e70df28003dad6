"""Found by Spark by its name, so that `format("kclient")` needs no registration.

Installed beside the package kclient. PySpark imports every top-level package whose name begins with `pyspark_` and
registers its `DefaultSource`.
"""

from __future__ import annotations

from kclient.spark.data_source import KafkaDataSource as DefaultSource

__all__ = ["DefaultSource"]
