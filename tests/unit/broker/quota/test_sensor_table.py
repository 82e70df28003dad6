"""Sensors are made, kept while they are used, and never too many."""

from __future__ import annotations

from kclient.broker.quota.sensor_table import IDLE_MS, SensorTable


def test_an_owner_has_one_sensor_until_it_was_idle_for_an_hour() -> None:
    table: SensorTable[str, list[int]] = SensorTable(list)
    first = table.get("a", 0)
    assert table.get("a", IDLE_MS - 1) is first
    assert table.get("a", 2 * IDLE_MS - 2) is first
    assert table.get("a", 3 * IDLE_MS) is not first


def test_those_that_nobody_asks_for_go_when_others_are_asked_for() -> None:
    table: SensorTable[str, list[int]] = SensorTable(list)
    for number in range(5):
        table.get(f"idle {number}", number)
    table.get("busy", IDLE_MS + 2)
    assert [owner for owner, _ in table.items()] == ["idle 3", "idle 4", "busy"]
    table.expire(IDLE_MS + 4)
    assert len(table) == 1


def test_beyond_the_most_the_one_that_was_idle_for_longest_goes() -> None:
    table: SensorTable[str, list[int]] = SensorTable(list, most=3)
    for owner in ("a", "b", "c", "a", "d"):
        table.get(owner, 0)
    assert [owner for owner, _ in table.items()] == ["c", "a", "d"]
