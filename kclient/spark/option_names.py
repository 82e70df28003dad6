"""Options, and the uses in which each has an effect. What has none is ignored as by Spark's connector, and told of."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from enum import Enum

from kclient.errors import ConfigError


class Use(Enum):
    """The use of the data source."""

    BATCH_READ = "a batch read"
    STREAM_READ = "a streaming read"
    BATCH_WRITE = "a batch write"
    STREAM_WRITE = "a streaming write"

    @property
    def reads(self) -> bool:
        """True for a read: the data source is the source of a query."""
        return self in {Use.BATCH_READ, Use.STREAM_READ}


_READS = (Use.BATCH_READ, Use.STREAM_READ)
_BATCH = (Use.BATCH_READ,)
_STREAM = (Use.STREAM_READ,)
_WRITES = (Use.BATCH_WRITE, Use.STREAM_WRITE)
_BATCH_WRITE = (Use.BATCH_WRITE,)

OPTIONS: Mapping[str, tuple[Use, ...]] = {
    "assign": _READS,
    "subscribe": _READS,
    "subscribePattern": _READS,
    "startingTimestamp": _READS,
    "startingOffsetsByTimestamp": _READS,
    "startingOffsets": _READS,
    "startingOffsetsByTimestampStrategy": _READS,
    "endingTimestamp": _BATCH,
    "endingOffsetsByTimestamp": _BATCH,
    "endingOffsets": _BATCH,
    "failOnDataLoss": _READS,
    "kafkaConsumer.pollTimeoutMs": _READS,
    "fetchOffset.numRetries": _READS,
    "fetchOffset.retryIntervalMs": _READS,
    "minPartitions": _READS,
    "maxRecordsPerPartition": _READS,
    "maxOffsetsPerTrigger": _STREAM,
    "minOffsetsPerTrigger": _STREAM,
    "maxTriggerDelay": _STREAM,
    "maxBytesPerTrigger": _STREAM,
    "kclient.trigger": _STREAM,
    "groupIdPrefix": _READS,
    "includeHeaders": _READS,
    "filterPushdown": _BATCH,
    "commitGroupId": _STREAM,
    "topic": _WRITES,
    "kclient.sink.timestamp": _WRITES,
    "kclient.delivery": _WRITES,
    "kclient.marker.topic": (Use.STREAM_READ, *_WRITES),
    "kclient.missing.markers": _WRITES,
    "kclient.write.id": _BATCH_WRITE,
    "kclient.write.epoch": _BATCH_WRITE,
    # What Spark itself adds to the options of a streaming write.
    "checkpointLocation": (Use.STREAM_WRITE,),
    "queryName": (Use.STREAM_WRITE,),
}
"""Every option but `kafka.*`, with the uses in which it has an effect."""

OURS = "kclient."
"""Beginning of most options that only kclient has. A wrong one of these is refused: no job has it from elsewhere."""

# As in Spark's own connector, which ignores endingTimestamp.
_WRONG_IN_STREAM = {"endingOffsetsByTimestamp", "endingOffsets"}
# What Spark has in the place of options when a table is made without columns: its properties.
_OF_A_TABLE = {"provider", "owner"}
_NO_TABLES = (
    "Spark hands none of the options of CREATE TABLE ... USING kclient to a data source in Python when the table is "
    "read or written. Use CREATE TEMPORARY VIEW name USING kclient OPTIONS (...), in each session."
)

_BY_LOWER = {name.lower(): name for name in OPTIONS}


def check_names(options: Mapping[str, str], use: Use | None) -> list[str]:
    """Return what is to be said of options without effect in `use`, or in all (None: the use is not known yet).

    Raises ConfigError for an unknown one of our own, for the end of a stream, and for a table's lack of options.
    """
    _check_table(options)
    plain = (given.lower() for given in options if not given.lower().startswith("kafka."))
    return [said for lower in plain for said in _said_of(lower, use)]


def _check_table(options: Mapping[str, str]) -> None:
    if not options:
        raise ConfigError(
            f"There are no options, so kafka.bootstrap.servers is not set. If this is a table: {_NO_TABLES}",
            name="kafka.bootstrap.servers",
        )
    if {given.lower() for given in options} >= _OF_A_TABLE:
        raise ConfigError(_NO_TABLES, name="provider")


def _said_of(lower: str, use: Use | None) -> Iterator[str]:
    name = _BY_LOWER.get(lower)
    if name is None:
        if lower.startswith(OURS):
            raise ConfigError(
                f"{lower!r} is not an option of the data source kclient.{_hint(lower)}", name=lower
            )
        if use is not None:
            yield _unknown(lower)
    elif use is Use.STREAM_READ and name in _WRONG_IN_STREAM:
        raise ConfigError(
            f"{name} is not valid in a streaming query, which has no end; use it in spark.read.",
            name=name,
        )
    elif use is not None and use not in OPTIONS[name]:
        yield f"Option {name} has no effect in {use.value} and is ignored."


def _unknown(lower: str) -> str:
    if lower == "path":
        return (
            "Option path, which load(), save() and start() take, means nothing to Kafka and is ignored; topics are "
            "named with subscribe or topic."
        )
    return f"Option {lower} is not known and is ignored, as by Spark's own connector.{_hint(lower)}"


def _hint(lower: str) -> str:
    nearest = difflib.get_close_matches(lower, _BY_LOWER, n=1, cutoff=0.6)
    return f" Did you mean {_BY_LOWER[nearest[0]]!r}?" if nearest else ""
