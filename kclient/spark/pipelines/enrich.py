"""Events joined with a table that does not stream, written back to Kafka as JSON.

Records keep their key, time and headers, and get their source's topic, partition and offset as headers: a micro-batch
that is run again after a crash writes its records again, and a reader that keeps one for each source has every record
once. Bad rows are left out; `dead_letters` before it keeps them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's users call it
from pyspark.sql.streaming import StreamingQuery

from kclient.errors import ConfigError
from kclient.spark.pipelines.options import EnrichOptions
from kclient.spark.pipelines.parsing import parse, with_source
from kclient.spark.pipelines.sinks import to_json
from kclient.spark.pipelines.source import records, start


def start_enrich(spark: SparkSession, options: EnrichOptions) -> StreamingQuery:
    """Start the query `enrich`."""
    parsed = parse(records(spark, options), options).where("error IS NULL")
    table = _table(spark, options)
    event_columns, table_columns = parsed.select("event.*").columns, table.columns
    added = [name for name in table_columns if name not in options.join_on]
    _check(event_columns, table_columns, added, options)

    # Packed, so that no column of the event or the table meets one of the record.
    facts = table.select(F.struct("*").alias("facts"))
    matches = reduce(and_, (F.col(f"event.`{name}`") == F.col(f"facts.`{name}`") for name in options.join_on))
    value = to_json("event.*", *(F.col(f"facts.`{name}`").alias(name) for name in added))
    joined = parsed.join(F.broadcast(facts), matches, "left")
    frame = joined.select("key", value.alias("value"), "timestamp", with_source())
    writer = frame.writeStream.format("kclient").options(**options.sink_settings, topic=options.output_topic)
    return start(writer, options, "enrich")


def _table(spark: SparkSession, options: EnrichOptions) -> DataFrame:
    reader = spark.read.format(options.table_format)
    if options.table_format == "csv":
        reader = reader.options(header="true", inferSchema="true")
    return reader.load(options.table)


def _check(event: Sequence[str], table: Sequence[str], added: Sequence[str], options: EnrichOptions) -> None:
    for name in options.join_on:
        for where, columns in (("schema", event), ("table", table)):
            if name not in columns:
                raise ConfigError(
                    f"join_on names {name!r}, which the {where} does not have; there is {', '.join(columns)}.",
                    name="join_on",
                )
    twice = sorted(set(event) & set(added))
    if twice:
        raise ConfigError(f"Both the schema and the table have {', '.join(twice)}.", name="table")
