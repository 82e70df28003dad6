"""The batch reader of queries that push their conditions down. Needs PySpark 4.1 or newer."""

from __future__ import annotations

from collections.abc import Iterable

from pyspark.sql.datasource import Filter

from kclient.spark.batch_reader import KafkaBatchReader
from kclient.spark.filters import condition_of


class FilteringBatchReader(KafkaBatchReader):
    """One that is told the conditions of the query.

    A class of its own, because Spark refuses any reader with this method unless
    spark.sql.python.filterPushdown.enabled is true.
    """

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:  # noqa: N802 - Spark's name
        """Remember what helps to read less; Spark applies all of them again."""
        self.condition = condition_of(filters)
        return filters
