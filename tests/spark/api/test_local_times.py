"""Local times become the instants that Spark's cast makes of them, whether Arrow knows how or not."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import pyarrow as pa
import pytest
from pyspark import TaskContext

from kclient.errors import ConfigError
from kclient.spark.local_times import session_zone, with_instants
from kclient.spark.output import SinkColumns

GAP, TWICE, JULY = datetime(2024, 3, 10, 2, 30), datetime(2024, 11, 3, 1, 30), datetime(2024, 7, 1)  # noqa: DTZ001
# As unix_micros(CAST(... AS TIMESTAMP)) of Spark 4.3 in America/New_York.
NEW_YORK = {GAP: 1710055800_000_000, TWICE: 1730611800_000_000, JULY: 1719806400_000_000, None: None}


def batch(*times: datetime | None) -> Any:
    return pa.record_batch(
        {
            "value": pa.array([b"v"] * len(times)),
            "timestamp": pa.array(times, pa.timestamp("us")),
            "x": pa.nulls(len(times)),
        }
    )


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Callable[[str | None], None]:
    """Put a task of a session with this time zone around the test."""

    class Context:
        name: str | None = None

        def getLocalProperty(self, name: str) -> str | None:
            return self.name if name == "spark.sql.session.timeZone" else None

    context = Context()
    monkeypatch.setattr(TaskContext, "get", lambda: context)

    def set_zone(name: str | None) -> None:
        context.name = name

    return set_zone


def micros(found: Any) -> list[int | None]:
    assert found.column("timestamp").type == pa.timestamp("us", tz="UTC")
    return found.column("timestamp").cast(pa.int64()).to_pylist()


@pytest.mark.parametrize("times", [(JULY, TWICE, None), (GAP, JULY, TWICE, None), (), (None,)])
def test_times_are_meant_in_the_sessions_zone_also_where_clocks_changed(
    zone: Any, times: tuple[datetime | None, ...]
) -> None:
    zone("America/New_York")
    assert micros(with_instants(batch(*times), "timestamp", session_zone())) == [
        NEW_YORK[each] for each in times
    ]


@pytest.mark.parametrize(
    ("name", "hours"),
    [("UTC", 0), ("Z", 0), ("+02:00", -2), ("GMT-3", 3), ("UTC+05:30", -5.5), ("Etc/UTC", 0)],
)
def test_a_zone_may_be_an_offset(zone: Any, name: str, hours: float) -> None:
    zone(name)
    at_utc = 1719792000_000_000
    found = micros(with_instants(batch(JULY, None), "timestamp", session_zone()))
    assert found == [at_utc + int(hours * 3_600_000_000), None]


def test_without_a_zone_of_the_session_it_is_the_machines(zone: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "America/New_York")
        time.tzset()
        zone(None)
        assert session_zone() is None
        found = micros(with_instants(batch(GAP, TWICE, None, JULY), "timestamp", None))
    time.tzset()
    assert found == [NEW_YORK[each] for each in (GAP, TWICE, None, JULY)]


def test_a_zone_that_python_does_not_know_is_refused_with_what_to_do(zone: Any) -> None:
    zone("Moon/Base")
    with pytest.raises(ConfigError, match=r"'Moon/Base' is no time zone .* cast the column timestamp"):
        session_zone()


def test_columns_that_are_written_have_instants(zone: Any) -> None:
    zone("+01:00")
    found = SinkColumns(("value", "timestamp"), "t", local_times=True).select(batch(JULY))
    assert found.column_names == ["value", "timestamp"]
    assert micros(found) == [1719788400_000_000]
