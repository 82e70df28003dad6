"""Plans the offsets that a batch query reads."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from kclient.errors import ConfigError
from kclient.spark.condition import Condition
from kclient.spark.offsets import Bound, Kind, Offsets
from kclient.spark.options import SourceOptions
from kclient.spark.ranges import OffsetRange, split
from kclient.spark.resolver import OffsetResolver


def plan_batch(
    options: SourceOptions, resolver: OffsetResolver, condition: Condition | None = None
) -> list[OffsetRange]:
    """The tasks of the query, narrowed to what `condition` can be true for. Raises ConfigError and KafkaError."""
    partitions = resolver.partitions()
    topic_ids = resolver.topic_ids
    if condition is not None and not options.starting.values and not options.ending.values:
        # Bounds that name partitions have to name all of them, which the resolver checks.
        partitions = frozenset(tp for tp in partitions if condition.may_hold_in(tp))
    starts = resolver.start(options.starting, partitions)
    ends = resolver.end(options.ending, partitions)
    _check_order(options.starting, starts, ends)
    ranges: Iterable[OffsetRange] = (
        OffsetRange(tp, starts[tp], ends[tp], topic_ids.get(tp.topic)) for tp in partitions
    )
    if condition is not None:
        ranges = _narrowed(ranges, condition, resolver)
    return split(ranges, options.min_partitions, options.max_records_per_partition)


def _check_order(starting: Bound, starts: Offsets, ends: Offsets) -> None:
    """A start that was given as a number and lies after the end is a mistake; a time may well do so."""
    if starting.kind is not Kind.OFFSETS:
        return
    for tp, start in sorted(starts.items()):
        if starting.values[tp] >= 0 and start > ends[tp]:
            raise ConfigError(
                f"{starting.option}: {start} of {tp} lies after the end of what is read, {ends[tp]}.",
                name=starting.option,
            )


def _narrowed(
    ranges: Iterable[OffsetRange], condition: Condition, resolver: OffsetResolver
) -> list[OffsetRange]:
    kept = [each for each in map(condition.narrow, ranges) if each is not None]
    if condition.timestamp_ms is None:
        return kept
    # Whatever comes before the first record that is late enough is too early.
    first = resolver.first_at({each.tp: condition.timestamp_ms for each in kept})
    found: list[OffsetRange] = []
    for each in kept:
        start = first[each.tp]
        if start is not None:
            found.append(attrs.evolve(each, start=min(max(each.start, start), each.end)))
    return found
