"""Pipelines that people run, as functions of a session and an options object; `kclient pipeline` runs them too.

| module | what it does | how its output is made exact |
|---|---|---|
| `etl` | JSON events to Parquet, by date | the log of Spark's file sink |
| `windows` | counts and sums per window, back to Kafka | records have keys; the newest of a key counts |
| `enrich` | events joined with a static table, back to Kafka | records name their source |
| `dead_letters` | good rows to one topic, bad ones with their reason to another | records name their source |
| `backfill` | a range of time to Parquet, in one batch | a folder that must be new |
| `events` | all of the streams in one: Parquet, dead letters, windows to Parquet and Kafka | see there |

Importing this package needs no PySpark: it holds the options. The modules do.
"""

from __future__ import annotations

from kclient.spark.pipelines.options import (
    BackfillOptions,
    DeadLetterOptions,
    EnrichOptions,
    EtlOptions,
    EventsOptions,
    WindowOptions,
)

__all__ = [
    "BackfillOptions",
    "DeadLetterOptions",
    "EnrichOptions",
    "EtlOptions",
    "EventsOptions",
    "WindowOptions",
]
