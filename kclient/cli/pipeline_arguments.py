"""The options of each `kclient pipeline`, and how they become the options object that its function takes."""

from __future__ import annotations

import argparse
import importlib
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import attrs

from kclient.cli.common import add_client_arguments, add_command, add_pairs, client_settings, natural
from kclient.errors import ConfigError
from kclient.spark.pipelines.options import (
    NEW_FIELDS,
    TABLE_FORMATS,
    BackfillOptions,
    DeadLetterOptions,
    EnrichOptions,
    EtlOptions,
    EventsOptions,
    JsonTopic,
    WindowOptions,
)
from kclient.spark.pipelines.schema_files import load_schema

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import StreamingQuery

_EXAMPLE = """\
For example:
  kclient pipeline {name} --bootstrap-server broker:9092 --topic orders --time-column time \\
    --schema "order_id string, product string, amount decimal(12,2), time timestamp" --required order_id \\
    {rest}

"""
_EPILOG = """\
Values are JSON objects. SCHEMA is Spark's: "order_id string, amount decimal(12,2), time timestamp". Times are like
"10 minutes". Folders are local or whatever Spark can write to (s3a://, hdfs://). Dates are in UTC; another zone:
--conf spark.sql.session.timeZone=Europe/Berlin
"""
_RESTART = """
A stream can be stopped, or killed, at any moment and started again with the same --checkpoint.
"""


def _words(text: str) -> tuple[str, ...]:
    """An argparse type for a,b,c."""
    return tuple(word.strip() for word in text.split(",") if word.strip())


def moment(text: str) -> int:
    """An argparse type for a time, in ms since the epoch; UTC where it names no zone."""
    if text.isdecimal():
        return int(text)
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} should be like 2025-01-31T12:00:00Z, or ms") from None
    return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp() * 1000)


@attrs.frozen
class Argument:
    """One option: its name in the options object gives the flag."""

    name: str
    help: str
    more: Mapping[str, Any]

    @property
    def flag(self) -> str:
        """The flag on the command line: `--end` for `end_ms`."""
        return "--" + self.name.removesuffix("_ms").replace("_", "-")

    def add(self, parser: argparse.ArgumentParser, make: type[JsonTopic]) -> None:
        """Add it; what is not given stays out, so that the default of `make`, the options object, holds."""
        needed = attrs.fields_dict(make)[self.name].default is attrs.NOTHING
        if self.name == "schema":
            needed = False  # or --schema-file
        if self.name == "time_column":
            needed = bool(make.NEEDS_TIME)
        more = {"default": argparse.SUPPRESS, "required": needed, **self.more}
        parser.add_argument(self.flag, dest=self.name, help=self.help, **more)


def _text(name: str, help_text: str, metavar: str) -> Argument:
    return Argument(name, help_text, {"metavar": metavar})


def _number(name: str, help_text: str) -> Argument:
    return Argument(name, help_text, {"metavar": "N", "type": natural})


def _columns(name: str, help_text: str) -> Argument:
    return Argument(name, help_text, {"metavar": "COLUMN,...", "type": _words})


def _time(name: str, help_text: str) -> Argument:
    return Argument(name, help_text, {"metavar": "WHEN", "type": moment})


def _flag(name: str, help_text: str) -> Argument:
    return Argument(name, help_text, {"action": "store_true"})


_ARGUMENTS = (
    _text("topic", "the topic to read, or several", "TOPIC[,...]"),
    _text("schema", "the columns of the JSON, in Spark's DDL", "SCHEMA"),
    Argument(
        "new_fields",
        "fields that the schema does not name: ignore (the default), keep them as JSON in the column _extra, or reject "
        "the row as a bad one",
        {"choices": NEW_FIELDS},
    ),
    _columns("required", "rows without these are bad"),
    Argument(
        "conditions",
        "rows for which this SQL is not true are bad: 'event.amount > 0'; may be repeated",
        {"metavar": "SQL", "action": "append"},
    ),
    _text("max_lateness", "rows whose time is so much older than their record's are bad", "TIME"),
    _text("max_ahead", "rows whose time is so much newer than their record's are bad", "TIME"),
    _text("time_column", "the event's time, a timestamp of the schema", "COLUMN"),
    _text("checkpoint", "the folder of this stream's progress", "DIR"),
    _text(
        "every", "go on until stopped, with a micro-batch so often (default: end when all is read)", "TIME"
    ),
    _text(
        "starting_offsets", "earliest (the default), latest, group:ID or JSON; for a new checkpoint", "WHERE"
    ),
    _number("max_offsets_per_trigger", "at most so many records in a micro-batch"),
    _text("commit_group_id", "a consumer group that shows the progress to Kafka's tools", "GROUP"),
    _text("window", "the length of a window (default 5 minutes)", "TIME"),
    _text("watermark", "how long a window waits for events (default 10 minutes)", "TIME"),
    _columns("group_by", "a window for each value of these"),
    _columns("sums", "columns to add up (decimals add up exactly)"),
    _text("output", "the folder for Parquet files", "DIR"),
    _text("output_topic", "the topic to write to", "TOPIC"),
    _text("dead_letter_topic", "the topic for bad rows", "TOPIC"),
    _text("window_topic", "the topic for closed windows", "TOPIC"),
    _text(
        "late_topic",
        "a topic for rows that are too late for their window (default: only count them)",
        "TOPIC",
    ),
    _flag("final", "write a window once, when it is closed (default: whenever it has changed)"),
    _text("table", "the table's file or folder", "PATH"),
    Argument("table_format", "what it is (default parquet)", {"choices": TABLE_FORMATS}),
    _columns("join_on", "columns that both sides have"),
    _time("start_ms", "from this time on (ISO or ms)"),
    _time("end_ms", "and before this one"),
    _number("min_partitions", "tasks that share the range, at least"),
    _flag("overwrite", "replace the folder if it is there"),
)
"""Those of all pipelines, in the order of their help. A pipeline has those that are fields of its options object."""


@attrs.frozen
class Pipeline:
    """One name of `kclient pipeline`: its options object, and the function that runs it, as `module:function`."""

    summary: str
    make: type[JsonTopic] | None = None
    function: str = ""
    example: str = ""
    """The rest of the command of `_EXAMPLE`."""

    @property
    def arguments(self) -> list[Argument]:
        """The options that it has."""
        fields = {} if self.make is None else attrs.fields_dict(self.make)
        return [argument for argument in _ARGUMENTS if argument.name in fields]

    @property
    def epilog(self) -> str | None:
        """The text of its help after the options."""
        if self.make is None:
            return None
        name = self.function.partition(":")[0].replace("_", "-")
        restart = "" if self.make is BackfillOptions else _RESTART
        return _EXAMPLE.format(name=name, rest=self.example) + _EPILOG + restart

    def start(self, spark: SparkSession, options: Any) -> list[StreamingQuery]:
        """Start its queries. Imports PySpark."""
        module, _, name = self.function.partition(":")
        started = getattr(importlib.import_module(f"kclient.spark.pipelines.{module}"), name)(spark, options)
        return started if isinstance(started, list) else [started]


PIPELINES: Mapping[str, Pipeline] = MappingProxyType(
    {
        "demo": Pipeline(
            "orders through the pipeline 'events', on an embedded broker, and everything checked"
        ),
        "etl": Pipeline(
            "JSON to Parquet, in a folder for each date",
            EtlOptions,
            "etl:start_etl",
            "--output /data/orders --checkpoint /data/checkpoints/orders",
        ),
        "windows": Pipeline(
            "counts and sums per window of time, written back to Kafka",
            WindowOptions,
            "windows:start_windows",
            '--group-by product --sums amount --window "5 minutes" --output-topic turnover \\\n'
            "    --checkpoint /data/checkpoints/turnover",
        ),
        "enrich": Pipeline(
            "events joined with a table, written back to Kafka",
            EnrichOptions,
            "enrich:start_enrich",
            "--table /data/products --join-on product --output-topic orders-with-products \\\n"
            "    --checkpoint /data/checkpoints/orders-with-products",
        ),
        "backfill": Pipeline(
            "the records of a range of time to Parquet, in one batch",
            BackfillOptions,
            "backfill:run_backfill",
            "--start 2025-01-01 --end 2025-02-01 --output /data/january",
        ),
        "dead-letters": Pipeline(
            "good rows to one topic, bad ones with the reason in a header to another",
            DeadLetterOptions,
            "dead_letters:start_dead_letters",
            "--conditions 'event.amount > 0' --output-topic orders-good --dead-letter-topic orders-dead \\\n"
            "    --checkpoint /data/checkpoints/orders-good",
        ),
        "events": Pipeline(
            "the whole way: dead letters, events to Parquet, windows to Parquet and Kafka",
            EventsOptions,
            "events:start_events",
            '--group-by product --sums amount --max-lateness "5 minutes" --max-ahead "1 minute" \\\n'
            "    --output /data/orders --dead-letter-topic orders-dead --window-topic turnover \\\n"
            "    --checkpoint /data/checkpoints/orders",
        ),
    }
)


def add_pipeline(names: Any, name: str) -> None:
    """Add the pipeline's parser to the subparsers `names`."""
    pipeline = PIPELINES[name]
    parser = add_command(
        names,
        name,
        pipeline.summary,
        epilog=pipeline.epilog,
        # Embedded brokers are out of reach for Spark's processes: another text for --bootstrap-server.
        conflict_handler="resolve",
    )
    if pipeline.make is None:
        parser.add_argument("--records", type=natural, default=10_000, help="how many orders (default 10000)")
        parser.add_argument(
            "--output",
            metavar="DIR",
            help="a new folder for the Parquet files and the picture (default: a temporary one for the picture)",
        )
    else:
        add_client_arguments(parser, "client")
        parser.add_argument(
            "--bootstrap-server",
            metavar="HOST:PORT[,...]",
            help="brokers to start from (default: from --command-config, else localhost:9092)",
        )
        for client in ("consumer", "producer"):
            add_pairs(
                parser,
                f"--{client}-property",
                dest=f"{client}_settings",
                help=f"one setting that only the {client} has; may be repeated",
            )
        parser.add_argument(
            "--schema-file",
            metavar="FILE",
            help="the schema in a file: DDL, Spark's JSON, or a JSON Schema, whose 'required' columns are required too",
        )
        for argument in pipeline.arguments:
            argument.add(parser, pipeline.make)
    add_pairs(
        parser,
        "--conf",
        help="one setting of Spark's, such as spark.master=local[2]; may be repeated",
    )
    parser.add_argument("-v", "--verbose", action="count", default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def pipeline_options(options: argparse.Namespace) -> Any:
    """The options object of the pipeline that was asked for. Raises ConfigError for what does not go."""
    pipeline = PIPELINES[options.pipeline]
    assert pipeline.make is not None
    settings = {name: str(value) for name, value in client_settings(options).items()}
    given = {
        argument.name: getattr(options, argument.name)
        for argument in pipeline.arguments
        if hasattr(options, argument.name)
    }
    if ("schema" in given) == (options.schema_file is not None):
        raise ConfigError("Give the schema with --schema or with --schema-file.", name="schema")
    if options.schema_file is not None:
        found = load_schema(options.schema_file)
        given["schema"] = found.ddl
        given["required"] = tuple(dict.fromkeys((*given.get("required", ()), *found.required)))
    if "conditions" in given:
        given["conditions"] = tuple(given["conditions"])
    try:
        return pipeline.make(
            bootstrap_servers=settings.pop("bootstrap.servers"),
            settings=settings,
            consumer_settings=dict(options.consumer_settings),
            producer_settings=dict(options.producer_settings),
            **given,
        )
    except ConfigError as error:
        raise with_flags(error, options.pipeline) from None


def with_flags(error: ConfigError, pipeline: str) -> ConfigError:
    """The error with the flags that were given, instead of the names that the options object has for them."""
    text = str(error)
    for argument in PIPELINES[pipeline].arguments:
        # Other names are also plain words: a window, the topic.
        if argument.name == error.name or "_" in argument.name:
            text = re.sub(rf"\b{argument.name}\b", argument.flag, text, count=1)
    return ConfigError(text, name=error.name)
