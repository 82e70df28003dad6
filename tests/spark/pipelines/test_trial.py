"""The orders that pipelines are tried with, and the check of what came of them, which has to see every difference."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import attrs
import pytest

from kclient.errors import ConfigError
from kclient.spark.pipelines import orders
from kclient.spark.pipelines.options import EventsOptions
from kclient.spark.pipelines.orders import Order, Window
from kclient.spark.pipelines.trial import Expected, Letter, Outcome, differences

MINUTE_MS = 60_000
START_MS = 1_735_689_600_000


def options() -> EventsOptions:
    return orders.order_options(
        bootstrap_servers="broker:9092",
        topic="orders",
        checkpoint="/checkpoint",
        output="/output",
        dead_letter_topic="dead",
        window_topic="windows",
    )


def order(number: int, minute: int, amount: str = "1.50") -> Order:
    return Order(f"o-{number}", "bread", 1, Decimal(amount), START_MS + minute * MINUTE_MS)


def test_the_same_arguments_make_the_same_orders_and_all_kinds_of_bad_ones() -> None:
    made = list(orders.generate(400, START_MS, options()))
    assert made == list(orders.generate(400, START_MS, options()))
    assert made != list(orders.generate(400, START_MS, options(), seed=2))
    errors = Counter(each.error for each in made if each.error is not None)
    assert len(errors) == 9
    assert sum(errors.values()) == 400 // 13
    assert all((each.order is None) == (each.error is not None) for each in made)


def test_late_orders_need_to_know_what_late_is() -> None:
    with pytest.raises(ConfigError, match="max_lateness"):
        list(orders.generate(20, START_MS, attrs.evolve(options(), max_lateness=None)))


def test_windows_that_end_by_the_watermark_are_closed_and_the_others_open() -> None:
    # The newest is of minute 20, so the watermark is at minute 10.
    closed, still_open = orders.windows(
        [order(1, 0), order(2, 4, "2.25"), order(3, 5), order(4, 11), order(5, 20)], options()
    )
    assert closed == {
        Window(START_MS, "bread", 2, Decimal("3.75")),
        Window(START_MS + 5 * MINUTE_MS, "bread", 1, Decimal("1.50")),
    }
    assert {window.start_ms for window in still_open} == {
        START_MS + 10 * MINUTE_MS,
        START_MS + 20 * MINUTE_MS,
    }


WINDOW = Window(START_MS, "bread", 1, Decimal("1.50"))
LETTER = Letter("orders", 0, 7, b"k", b"v", "no value")
EXPECTED = Expected(frozenset([order(1, 0)]), frozenset([WINDOW]), frozenset(), frozenset([LETTER]))


def found(**instead: Counter[object]) -> Outcome:
    exact = Outcome(Counter([order(1, 0)]), Counter([WINDOW]), Counter([LETTER]), Counter([WINDOW]))
    return attrs.evolve(exact, **instead)


def test_what_is_exact_has_no_differences() -> None:
    assert differences(found(), EXPECTED) == []


def test_records_that_were_written_again_are_no_difference() -> None:
    again = found(letters=Counter({LETTER: 2}), window_records=Counter({WINDOW: 3}))
    assert differences(again, EXPECTED) == []


@pytest.mark.parametrize(
    ("instead", "said"),
    [
        ({"orders": Counter()}, "1 orders in Parquet missing"),
        ({"orders": Counter({order(1, 0): 2})}, "1 orders in Parquet there more than once"),
        ({"orders": Counter([order(1, 0), order(2, 0)])}, "1 orders in Parquet wrong"),
        ({"windows": Counter({WINDOW: 2})}, "1 windows in Parquet there more than once"),
        ({"windows": Counter()}, "1 windows in Parquet missing"),
        ({"letters": Counter()}, "1 dead letters missing"),
        ({"letters": Counter([LETTER, attrs.evolve(LETTER, offset=8)])}, "1 dead letters wrong"),
        ({"window_records": Counter([WINDOW, attrs.evolve(WINDOW, events=2)])}, "1 windows in Kafka wrong"),
    ],
)
def test_every_difference_is_seen(instead: dict[str, Counter[object]], said: str) -> None:
    assert differences(found(**instead), EXPECTED) == [said]
