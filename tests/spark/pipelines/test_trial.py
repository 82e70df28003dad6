"""The orders that pipelines are tried with, and the check of what came of them, which has to see every difference."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal

import attrs
import pytest

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
