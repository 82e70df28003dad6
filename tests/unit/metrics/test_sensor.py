"""Sensor: one measurement handed to every stat, at the same time and once."""

from __future__ import annotations

import threading

from harness.mock_time import MockTime
from kclient.metrics import Avg, Max, MetricName, Sensor, Total
from kclient.metrics.stats import Stat


def sensor(time: MockTime, **stats: Stat) -> Sensor:
    made = Sensor(time)
    for name, stat in stats.items():
        made.add(MetricName(name, "g", ()), stat)
    return made


def measured(of: Sensor) -> dict[str, float]:
    return {each.name.name: each.value for each in of.measure()}


def test_a_single_event_counts_as_one() -> None:
    made = sensor(MockTime(), total=Total(), avg=Avg())
    made.record()
    made.record()
    assert measured(made) == {"total": 2, "avg": 1}


def test_the_sum_of_many_is_the_largest_only_where_nothing_is_said_of_it() -> None:
    made = sensor(MockTime(), max=Max(), avg=Avg())
    made.record(30, events=3, largest=20)
    assert measured(made) == {"max": 20, "avg": 10}
    made.record(40, events=2)
    assert measured(made)["max"] == 40


def test_a_largest_of_zero_is_said() -> None:
    made = sensor(MockTime(), max=Max())
    made.record(5, events=2, largest=0)
    assert measured(made) == {"max": 0}


def test_a_stat_that_comes_later_knows_what_was_measured_since() -> None:
    made = sensor(MockTime(), first=Total())
    made.record(1)
    made.add(MetricName("second", "g", ()), Total())
    made.record(2)
    assert measured(made) == {"first": 3, "second": 2}


def test_the_clock_is_looked_at_once_for_all_stats() -> None:
    time = MockTime(auto_tick_ms=1000)
    made = sensor(time, a=Max(1000, 1), b=Max(1000, 1), c=Max(1000, 1))
    before_ms = time.monotonic_ms()
    made.record(7)
    made.measure()
    assert time.monotonic_ms() == before_ms + 3000


def test_who_interrupts_a_measurement_may_measure_too() -> None:
    """A signal handler runs on the thread that holds the lock."""

    class Interrupted(Total):
        def record(self, value: float, now_ms: int, events: int, largest: float) -> None:
            super().record(value, now_ms, events, largest)
            if value == 1:
                made.record(10)

    made = sensor(MockTime(), total=Interrupted())
    made.record(1)
    assert measured(made) == {"total": 11}


def test_measurements_of_many_threads_are_all_counted() -> None:
    made = sensor(MockTime(), total=Total(), avg=Avg())

    def measure() -> None:
        for _ in range(2000):
            made.record(2)

    threads = [threading.Thread(target=measure) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert measured(made) == {"total": 16_000, "avg": 2}
