"""The data source "kclient"."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pyspark.sql.datasource import DataSource

from kclient.errors import ConfigError
from kclient.spark.option_names import Use
from kclient.spark.option_values import parse_boolean
from kclient.spark.options import check_any, parse_source
from kclient.spark.remarks import warn_once
from kclient.spark.schema import output_columns, source_schema
from kclient.spark.sink_options import parse_sink

if TYPE_CHECKING:
    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

    from kclient.spark.task_metrics import Counter


class KafkaDataSource(DataSource):
    """Kafka as a source and a sink of Spark, batch and streaming: `format("kclient")`.

    Everything it makes can be pickled and connects only when it is used. Wrong options raise ConfigError, which Spark
    shows with its text. Readers and writers are imported where they are asked for: Spark has this class in every one of
    its Python processes, and each does one thing.
    """

    counter: ClassVar[Counter | None] = None
    """The accumulator that tasks tell their numbers to, in a class that `register` makes of this one."""

    _came = False
    """True in a process that got it from another one, where whoever made it has told of options without effect."""

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "_came": True}

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "kclient"

    def schema(self) -> StructType:
        """The columns, where the user gives no schema."""
        check_any(self.options)
        return source_schema(parse_boolean(self.options, "includeHeaders", False))

    def reader(self, schema: StructType) -> DataSourceReader:
        """For `spark.read`."""
        options = parse_source(self.options, Use.BATCH_READ)
        warn_once(options.remarks, self.options)
        output = output_columns(schema)
        if not options.filter_pushdown:
            from kclient.spark.batch_reader import KafkaBatchReader

            return KafkaBatchReader(options, output, self.counter)
        try:
            from kclient.spark.filtering_reader import FilteringBatchReader
        except ImportError:
            raise ConfigError(
                "filterPushdown=true needs PySpark 4.1 or newer.", name="filterPushdown"
            ) from None
        return FilteringBatchReader(options, output, self.counter)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """For `spark.readStream`."""
        from kclient.spark.stream_reader import KafkaStreamReader

        options = parse_source(self.options, Use.STREAM_READ)
        return KafkaStreamReader(options, output_columns(schema), self.counter)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """For `df.write`, in mode append."""
        if overwrite:
            raise ConfigError(
                "Kafka's topics are appended to: use mode('append'), not overwrite.", name="mode"
            )
        from kclient.spark.sink import KafkaBatchWriter
        from kclient.spark.sink_columns import sink_columns

        options = parse_sink(self.options, Use.BATCH_WRITE)
        columns = sink_columns(schema, options.topic, ignore_timestamp=options.ignore_timestamp)
        warn_once(options.remarks, self.options)
        return KafkaBatchWriter(options, columns, self.counter)

    def streamWriter(  # noqa: N802 - Spark's name
        self,
        schema: StructType,
        overwrite: bool,  # noqa: ARG002 - true in output mode complete, which appends every result
    ) -> DataSourceStreamWriter:
        """For `df.writeStream`, in output mode append or complete."""
        from kclient.spark.sink import stream_writer
        from kclient.spark.sink_columns import sink_columns

        options = parse_sink(self.options, Use.STREAM_WRITE)
        columns = sink_columns(schema, options.topic, ignore_timestamp=options.ignore_timestamp)
        if not self._came:  # or the process that commits would tell it again
            warn_once(options.remarks, self.options)
        return stream_writer(options, columns, schema, self.counter)
