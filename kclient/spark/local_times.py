"""Local times, which Spark's type timestamp_ntz has, as the instants that Spark's cast to timestamp makes of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kclient.errors import ConfigError

_SESSION_ZONE = "spark.sql.session.timeZone"
_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::?(\d{2}))?(?::?(\d{2}))?", re.ASCII)


def session_zone() -> tzinfo | None:
    """Return the time zone of the query's session; None if it was not set, and is the machine's. For tasks of Spark's.

    Raises ConfigError for one that Python does not know.
    """
    from pyspark import TaskContext

    context = TaskContext.get()
    name = None if context is None else context.getLocalProperty(_SESSION_ZONE)
    return None if name is None else _zone(name)


def with_instants(batch: Any, column: str, zone: tzinfo | None) -> Any:
    """Return the record batch with instants in the place of the local times of `column`, as they are in `zone`.

    Of a time that a change of clocks made twice it is the first; one that it left out is as much later as the clocks
    went forward. Without a `zone` it is the machine's.
    """
    import pyarrow as pa

    place = batch.schema.get_field_index(column)
    kind = pa.timestamp("us", tz="UTC")
    times = _converted(batch.column(place), zone)
    if times is None:
        times = pa.array(_one_by_one(batch.column(place).to_pylist(), zone), kind)
    return batch.set_column(place, pa.field(column, kind), times.cast(kind))


def _converted(times: Any, zone: tzinfo | None) -> Any:
    """The instants, or None where Arrow cannot make them, or would make others of times that were left out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(zone, timezone):
        return pc.subtract(times, pa.scalar(zone.utcoffset(None), pa.duration("us")))
    if not isinstance(zone, ZoneInfo):
        return None
    try:
        return pc.assume_timezone(times, zone.key, ambiguous="earliest", nonexistent="raise")
    except pa.ArrowInvalid:
        return None


def _one_by_one(times: Sequence[datetime | None], zone: tzinfo | None) -> list[datetime | None]:
    if zone is None:
        return [each and _by_the_machine(each) for each in times]
    # Python takes a time that there was twice for the first, and one that there was not by the offset before, as Java.
    return [each and each.replace(tzinfo=zone).astimezone(UTC) for each in times]


def _by_the_machine(time: datetime) -> datetime:
    found = time.astimezone(UTC)
    if found.astimezone().replace(tzinfo=None) == time:
        return found
    # There was no such time, and the C library goes by the offset after.
    return time.replace(fold=1).astimezone(UTC)


def _zone(name: str) -> tzinfo:
    found = _OFFSET.fullmatch(name.strip())
    if found is not None:
        hours, minutes, seconds = (int(part or 0) for part in found.group(2, 3, 4))
        offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        return timezone(-offset if found[1] == "-" else offset)
    if name.strip() in {"Z", "UTC"}:
        return UTC
    try:
        return ZoneInfo(name.strip())
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ConfigError(
            f"{_SESSION_ZONE}: {name!r} is no time zone that Python knows; cast the column timestamp to the type "
            "timestamp before it is written.",
            name=_SESSION_ZONE,
        ) from None
