"""Options, and the uses in which each has an effect. A name that is not known is refused, never ignored."""

from __future__ import annotations

import difflib
import logging
from collections.abc import Mapping
from enum import Enum

from kclient.errors import ConfigError

_log = logging.getLogger(__name__)


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

_WRONG_IN_STREAM = {"endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets"}
_REFUSED: Mapping[str, str] = {
    "path": "a path means nothing to Kafka; call load(), save() or start() without one, and name topics with "
    "subscribe or topic",
}

_BY_LOWER = {name.lower(): name for name in OPTIONS}


def check_names(options: Mapping[str, str], use: Use | None) -> None:
    """Refuse unknown options, and warn of those without effect in `use` (None: not known yet). Raises ConfigError."""
    for given in options:
        lower = given.lower()
        if lower.startswith("kafka."):
            continue
        if lower in _REFUSED:
            raise ConfigError(f"{lower}: {_REFUSED[lower]}.", name=lower)
        name = _BY_LOWER.get(lower)
        if name is None:
            raise ConfigError(_unknown(lower), name=lower)
        if use is None or use in OPTIONS[name]:
            continue
        if use is Use.STREAM_READ and name in _WRONG_IN_STREAM:
            raise ConfigError(
                f"{name} is not valid in a streaming query, which has no end; use it in spark.read.",
                name=name,
            )
        _log.warning("Option %s has no effect in %s and is ignored.", name, use.value)


def _unknown(given: str) -> str:
    nearest = difflib.get_close_matches(given, _BY_LOWER, n=1, cutoff=0.6)
    hint = f" Did you mean {_BY_LOWER[nearest[0]]!r}?" if nearest else ""
    return (
        f"{given!r} is not an option of the data source kclient.{hint} Settings of the Kafka client "
        "begin with 'kafka.', as in kafka.bootstrap.servers."
    )
