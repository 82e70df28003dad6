"""JSON to columns, with the reason for each row that does not fit; and the dead letter of such a row."""

from __future__ import annotations

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as all of Spark's users call it
from pyspark.sql.types import StructType

from kclient.errors import ConfigError
from kclient.processing.header_names import SOURCE_ERROR, SOURCE_OFFSET, SOURCE_PARTITION, SOURCE_TOPIC
from kclient.spark.pipelines.new_fields import unknown_fields
from kclient.spark.pipelines.options import EXTRA_COLUMN, JsonTopic, duration_ms

_CORRUPT = "_corrupt_record"


def parse(records: DataFrame, options: JsonTopic) -> DataFrame:
    """The records with two columns more: `event`, and `error`, which is null where the event is good."""
    try:
        parsed = F.from_json(
            F.col("value").cast("string"),
            f"{options.schema}, {_CORRUPT} string",
            {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT},
        )
        frame = records.withColumn("event", parsed)
        fields = frame.select("event.*").drop(_CORRUPT).schema
    except AnalysisException as error:
        said = str(error).partition("\n")[0]
        raise ConfigError(
            f"schema is {options.schema!r}, which Spark cannot read; it should be like "
            f"'order_id string, time timestamp' ({said})",
            name="schema",
        ) from None
    _check(fields, options)
    unknown = unknown_fields(F.col("value").cast("string"), fields)
    frame = frame.withColumn("error", _error(fields, unknown, options))
    event = F.col("event").dropFields(_CORRUPT)
    if options.new_fields == "keep":
        event = event.withField(EXTRA_COLUMN, F.to_json(unknown))
    return frame.withColumn("event", event)


def good(parsed: DataFrame) -> DataFrame:
    """The events alone, as columns."""
    return parsed.where("error IS NULL").select("event.*")


def dated(events: DataFrame, options: JsonTopic) -> DataFrame:
    """The events with the `date` that their folder is named for."""
    if "date" in events.columns:
        raise ConfigError("The schema has a column 'date', which is the folder's name here.", name="schema")
    return events.withColumn("date", F.to_date(options.event_time("A folder for each date")))


def dead_letters(parsed: DataFrame) -> DataFrame:
    """The bad rows as records: key, value and time as they came, with headers for the reason and the source.

    The source's topic, partition and offset are this record's identity: a micro-batch that is run again writes the same
    letters again, and a reader that keeps one of each has every bad row once.
    """
    return parsed.where("error IS NOT NULL").select(
        "key", "value", "timestamp", _headers(F.col("headers"), **_source(), **{SOURCE_ERROR: F.col("error")})
    )


def with_source() -> Column:
    """A record's headers, and its source as headers."""
    return _headers(F.col("headers"), **_source())


def _source() -> dict[str, Column]:
    return {
        SOURCE_TOPIC: F.col("topic"),
        SOURCE_PARTITION: F.col("partition"),
        SOURCE_OFFSET: F.col("offset"),
    }


def _headers(present: Column, **more: Column) -> Column:
    added = [
        F.struct(F.lit(name).alias("key"), column.cast("string").cast("binary").alias("value"))
        for name, column in more.items()
    ]
    kind = "array<struct<key: string, value: binary>>"
    return F.concat(F.coalesce(present, F.array().cast(kind)), F.array(*added).cast(kind)).alias("headers")


def _check(fields: StructType, options: JsonTopic) -> None:
    names = [field.name for field in fields]
    time = options.time_column
    for name in (*options.required, *([time] if time else [])):
        if name not in names:
            raise ConfigError(
                f"The schema has no column {name!r}; there is {', '.join(names)}.", name="schema"
            )
    if options.new_fields == "keep" and EXTRA_COLUMN in names:
        raise ConfigError(
            f"The schema has a column {EXTRA_COLUMN!r}, which is for new fields.", name="schema"
        )
    if time is not None and fields[time].dataType.simpleString() != "timestamp":
        raise ConfigError(f"Column {time!r} has to be a timestamp in the schema.", name="time_column")


def _misfits(event: Column, fields: StructType, path: tuple[str, ...] = ()) -> list[Column]:
    """The values, those in nested objects too, that are there in the JSON and cannot be what the schema says."""
    value = F.col("value").cast("string")
    found = []
    for field in fields:
        place = (*path, field.name)
        there = F.get_json_object(value, "$" + "".join(f"['{name}']" for name in place)).isNotNull()
        said = f"{'.'.join(place)} is no {field.dataType.simpleString()}"
        found.append(F.when(event[_CORRUPT].isNotNull() & _field(event, place).isNull() & there, said))
        if isinstance(field.dataType, StructType):
            found += _misfits(event, field.dataType, place)
    return found


def _field(event: Column, place: tuple[str, ...]) -> Column:
    """The field of an event that is at this place."""
    for name in place:
        event = event[name]
    return event


def _error(fields: StructType, unknown: Column, options: JsonTopic) -> Column:
    """The first thing that is wrong with a row, in words."""
    value = F.col("value").cast("string")
    event = F.col("event")
    found = [
        F.when(F.col("value").isNull(), "no value"),
        F.when(~F.coalesce(F.is_valid_utf8(value), F.lit(False)), "not UTF-8"),
        # from_json takes the first object of `{..}{..}` or `[{..},{..}]` and says nothing of the rest. As the element
        # of an array it has to be alone.
        F.when(
            ~F.coalesce(
                (F.json_array_length(F.concat(F.lit("["), value, F.lit("]"))) == 1)
                & F.ltrim(F.regexp_replace(value, r"^\s+", "")).startswith("{"),
                F.lit(False),
            ),
            "not one JSON object",
        ),
    ]
    found += _misfits(event, fields)
    found.append(F.when(event[_CORRUPT].isNotNull(), "does not fit the schema"))
    if options.new_fields == "reject":
        names = F.array_join(F.array_sort(F.map_keys(unknown)), ", ")
        found.append(F.when(unknown.isNotNull(), F.concat(F.lit("unknown fields: "), names)))
    time = options.time_column
    needed = dict.fromkeys((*options.required, *([time] if time else [])))
    found += [F.when(event[name].isNull(), f"{name} is missing") for name in needed]
    found += [
        F.when(~F.coalesce(F.expr(condition), F.lit(False)), f"not {condition}")
        for condition in options.conditions
    ]
    if time is not None:
        behind_ms = F.unix_millis("timestamp") - F.unix_millis(event[time])
        if options.max_lateness is not None:
            limit = duration_ms(options.max_lateness, "max_lateness")
            found.append(F.when(behind_ms > limit, f"{time} is more than {options.max_lateness} late"))
        if options.max_ahead is not None:
            limit = duration_ms(options.max_ahead, "max_ahead")
            found.append(F.when(behind_ms < -limit, f"{time} is more than {options.max_ahead} ahead"))
    return F.coalesce(*found)
