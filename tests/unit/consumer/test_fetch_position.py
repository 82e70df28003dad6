"""Positions and where to start without one: codes of the log's ends, times, and how a position is shown."""

from __future__ import annotations

import pytest

from kclient.client.metadata_snapshot import NO_LEADER
from kclient.consumer.internals.fetch_position import (
    EARLIEST,
    LATEST,
    RESET_TO_EARLIEST,
    RESET_TO_LATEST,
    AutoOffsetReset,
    FetchPosition,
)


@pytest.mark.parametrize(
    ("policy", "timestamp"),
    [
        (RESET_TO_EARLIEST, EARLIEST),
        (RESET_TO_LATEST, LATEST),
        (AutoOffsetReset("by_duration", 400), 600),
        (AutoOffsetReset("by_duration", 0), 1000),
    ],
)
def test_brokers_are_asked_for_an_end_of_the_log_or_a_time_before_now(
    policy: AutoOffsetReset, timestamp: int
) -> None:
    assert policy.timestamp(1000) == timestamp
    assert not policy.is_none


def test_without_a_policy_the_application_decides() -> None:
    assert AutoOffsetReset("none").is_none


def test_a_position_shows_the_epoch_if_it_knows_one() -> None:
    assert str(FetchPosition(5)) == "5"
    assert str(FetchPosition(5, 0)) == "5 (epoch 0)"


def test_positions_are_equal_by_value_and_begin_without_a_leader() -> None:
    assert FetchPosition(5, 1) == FetchPosition(5, 1, NO_LEADER)
    assert FetchPosition(5, 1) != FetchPosition(5)
