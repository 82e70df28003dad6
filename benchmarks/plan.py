"""The cases that are measured, in their order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from benchmarks import shapes
from benchmarks.case import Case
from benchmarks.clients import COLUMNAR, LATENCY

_BYTES = 300_000_000
_MOST_RECORDS = 1_500_000
_ROUND_TRIPS = 3000
_BUSY_RECORDS = 500_000  # five seconds of them


@attrs.frozen
class Stage:
    """Operations that are measured together: on one case, the reading ones on one topic."""

    case: Case
    operations: tuple[str, ...]


def plan(
    operations: Sequence[str],
    sizes: Sequence[int],
    codecs: Sequence[str],
    partitions: Sequence[int],
    batch_bytes: Sequence[int],
) -> Iterator[Stage]:
    """The stages.

    Reading is measured on batches of the first size alone, latency on the first of everything: the other choices say
    nothing about them.
    """
    for size in sizes:
        for codec in codecs:
            for count in partitions:
                if "produce" in operations:
                    for batch in batch_bytes:
                        yield Stage(Case(size, codec, count, batch), ("produce",))
                reading = _chosen(operations, ("consume", *COLUMNAR))
                if reading:
                    yield Stage(Case(size, codec, count, batch_bytes[0]), reading)
    latency = _chosen(operations, LATENCY)
    if latency:
        yield Stage(Case(sizes[0], codecs[0], partitions[0], batch_bytes[0]), latency)
    as_written = Case(sizes[0], codecs[0], shapes.PARTITIONS, batch_bytes[0])
    for group in (shapes.SENDING, shapes.READING):
        chosen = _chosen(operations, tuple(group))
        if chosen:
            yield Stage(as_written, chosen)


def records_for(operation: str, case: Case, wanted: int | None, part: float) -> int:
    """Return the number of records of a run: `part` of `wanted`, or else of as many as take some seconds."""
    if operation == "round_trip":
        return max(int(min(wanted or _ROUND_TRIPS, _ROUND_TRIPS) * part), 1)
    if operation == "busy":
        return max(int(min(wanted or _BUSY_RECORDS, _BUSY_RECORDS) * part), 1)
    return max(int((wanted or min(_MOST_RECORDS, _BYTES // case.size)) * part), 1)


def _chosen(operations: Sequence[str], among: Sequence[str]) -> tuple[str, ...]:
    return tuple(operation for operation in among if operation in operations)
