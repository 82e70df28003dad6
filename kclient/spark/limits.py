"""Limits on one micro-batch of a stream: the most that it reads, and the least that it waits for."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import attrs

from kclient.common.topic_partition import TopicPartition
from kclient.errors import ConfigError
from kclient.spark.offsets import Offsets
from kclient.utils.time import SYSTEM_TIME, Time


class Trigger(Enum):
    """The trigger that the option `kclient.trigger` tells of a query whose Spark does not."""

    PROCESSING = "processing"
    AVAILABLE_NOW = "availableNow"


@attrs.frozen
class TriggerLimits:
    """The options maxOffsetsPerTrigger, minOffsetsPerTrigger, maxTriggerDelay and maxBytesPerTrigger. Immutable."""

    max_offsets: int | None = None
    min_offsets: int | None = None
    max_delay_ms: int = 15 * 60_000
    max_bytes: int | None = None

    @property
    def any(self) -> bool:
        """True if there is a limit, so that a micro-batch is not always all there is at once."""
        return not (self.max_offsets is self.min_offsets is self.max_bytes is None)


def limits_without_triggers(limits: TriggerLimits, trigger: Trigger | None) -> TriggerLimits:
    """Return the limits that hold where Spark tells no trigger, before PySpark 4.2, and `kclient.trigger` says this.

    Raises ConfigError if there are limits and no trigger: records could be left unread for ever.
    """
    if not limits.any or trigger is Trigger.PROCESSING:
        return limits
    if trigger is Trigger.AVAILABLE_NOW:
        return TriggerLimits()
    raise ConfigError(
        "Before PySpark 4.2 a limit per trigger needs the option kclient.trigger, as a source is not told its trigger. "
        "Set it to processing if the query has a processing time or no trigger: the limit holds. Set it to "
        "availableNow if it has availableNow or once: that is one micro-batch there, and it reads everything.",
        name="kclient.trigger",
    )


def limit_offsets(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    most: int,
    offset_bytes: Mapping[TopicPartition, float] | None = None,
) -> Offsets:
    """Ends with about `most` offsets after `start`, or with about `most` bytes, if `offset_bytes` of one are given.

    They are shared out by how many each partition has. Every partition that has something gets one offset at least, so
    that none waits for ever behind a long one. What a partition's offsets take is only known of those that were looked
    at, so that bytes are a target.
    """
    sizes = {tp: max(end[tp] - start[tp], 0) for tp in end}
    total = sum(
        size * (1 if offset_bytes is None else offset_bytes.get(tp, 0.0)) for tp, size in sizes.items()
    )
    if total <= most:
        return dict(end)
    # Whole numbers, where offsets are counted: a share of 2**53 offsets and more would be rounded.
    return {
        tp: min(start[tp] + max(int(most * size // total), 1), end[tp]) if size else end[tp]
        for tp, size in sizes.items()
    }


@attrs.define(eq=False)
class DelayGate:
    """Says whether a micro-batch waits for minOffsetsPerTrigger. Used by one thread."""

    _limits: TriggerLimits
    _time: Time = SYSTEM_TIME
    _last_ms: int | None = attrs.field(default=None, init=False)

    def waits(self, available: int) -> bool:
        """Return True if a batch of `available` offsets is put off.

        A batch that is not counts as run now. The first one never waits; later ones at most for maxTriggerDelay.
        """
        now_ms = self._time.monotonic_ms()
        least = self._limits.min_offsets
        if least is not None and self._last_ms is not None:
            late = now_ms - self._last_ms >= self._limits.max_delay_ms
            if not late and available < least:
                return True
        self._last_ms = now_ms
        return False
