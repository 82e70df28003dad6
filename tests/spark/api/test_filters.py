"""Spark's filters, and where they say to look."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest
from pyspark.sql import datasource

from harness.spark import sessions
from kclient.spark.condition import Condition

pytestmark = sessions.needs_filters

AT = datetime(1970, 1, 1, 0, 0, 5, 1500, UTC)


@pytest.mark.parametrize(
    ("kind", "column", "value", "expected"),
    [
        ("EqualTo", "topic", "t", Condition(topics=frozenset({"t"}))),
        ("In", "TOPIC", ("t", "u"), Condition(topics=frozenset({"t", "u"}))),
        ("EqualNullSafe", "partition", 3, Condition(partitions=frozenset({3}))),
        ("In", "partition", (1, 2), Condition(partitions=frozenset({1, 2}))),
        ("EqualTo", "offset", 5, Condition(least_offset=5, offset_limit=6)),
        ("GreaterThan", "offset", 5, Condition(least_offset=6)),
        ("GreaterThanOrEqual", "offset", 5, Condition(least_offset=5)),
        ("LessThan", "offset", 5, Condition(offset_limit=5)),
        ("LessThanOrEqual", "offset", 5, Condition(offset_limit=6)),
        ("GreaterThan", "partition", 5, Condition()),
        ("EqualTo", "offset", None, Condition()),
        ("EqualTo", "value", b"x", Condition()),
        # A record's time has milliseconds; 5.0015 s lies between two of them.
        ("GreaterThan", "timestamp", AT, Condition(timestamp_ms=5002)),
        ("GreaterThanOrEqual", "timestamp", AT, Condition(timestamp_ms=5002)),
        ("GreaterThan", "timestamp", AT.replace(microsecond=2000), Condition(timestamp_ms=5003)),
        ("GreaterThanOrEqual", "timestamp", AT.replace(microsecond=2000), Condition(timestamp_ms=5002)),
        ("EqualTo", "timestamp", AT.astimezone(timezone(timedelta(hours=3))), Condition(timestamp_ms=5002)),
        ("LessThan", "timestamp", AT, Condition()),
        ("GreaterThan", "timestamp", AT - timedelta(days=9), Condition()),
        ("GreaterThan", "timestamp", AT.replace(tzinfo=None), Condition()),
    ],
)
def test_a_filter_means_what_it_says_and_no_more(
    kind: str, column: str, value: Any, expected: Condition
) -> None:
    from kclient.spark.filters import condition_of

    assert condition_of([getattr(datasource, kind)((column,), value)]) == expected


def test_all_filters_are_true_at_once() -> None:
    from kclient.spark.filters import condition_of

    found = condition_of(
        [
            datasource.GreaterThan(("offset",), 5),
            datasource.Not(datasource.EqualTo(("offset",), 9)),
            datasource.IsNotNull(("offset",)),
            datasource.EqualTo(("headers", "key"), "x"),
            datasource.LessThan(("offset",), 20),
        ]
    )
    assert found == Condition(least_offset=6, offset_limit=20)
