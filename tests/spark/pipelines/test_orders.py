"""Orders to try pipelines with: always the same, good ones and bad ones of every kind, and the windows they make."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import attrs
import pytest

from kclient.errors import ConfigError
from kclient.spark.pipelines import orders
from kclient.spark.pipelines.options import EventsOptions
from kclient.spark.pipelines.orders import Order, Window

MINUTE_MS = 60_000
START_MS = 1_735_689_600_000


def options(**given: Any) -> EventsOptions:
    return orders.order_options(
        bootstrap_servers="broker:9092",
        topic="orders",
        checkpoint="/checkpoint",
        output="/output",
        dead_letter_topic="dead",
        window_topic="windows",
        **given,
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


def test_a_good_order_is_written_exactly_as_it_should_come_out() -> None:
    for sent in orders.generate(200, START_MS, options()):
        if sent.order is None or sent.value is None:
            continue
        fields = json.loads(sent.value, parse_float=Decimal, parse_int=Decimal)
        time = datetime.fromisoformat(fields["time"])
        written_ms = (time - datetime.fromisoformat("1970-01-01T00:00:00Z")) // timedelta(milliseconds=1)
        assert (
            Order(
                fields["order_id"], fields["product"], int(fields["quantity"]), fields["amount"], written_ms
            )
            == sent.order
        )
        assert sent.key == sent.order.product.encode()


def test_records_come_one_a_second_and_good_orders_are_at_most_a_minute_older() -> None:
    made = list(orders.generate(200, START_MS, options()))
    assert [sent.timestamp_ms for sent in made] == [START_MS + number * 1000 for number in range(200)]
    ages = [sent.timestamp_ms - sent.order.time_ms for sent in made if sent.order is not None]
    assert 0 <= min(ages) < max(ages) < MINUTE_MS


def test_no_good_order_is_too_late_or_too_far_ahead_or_not_worth_anything() -> None:
    good = [sent.order for sent in orders.generate(2000, START_MS, options()) if sent.order is not None]
    assert min(each.amount for each in good) > 0
    assert len({each.order_id for each in good}) == len(good)


def test_bad_orders_are_just_beyond_what_the_options_allow() -> None:
    made = orders.generate(400, START_MS, options(max_lateness="2 hours", max_ahead="30 seconds"))
    beyond: dict[str, int] = {}
    for sent in made:
        if sent.error is not None and sent.error.startswith("time is more than"):
            time = datetime.fromisoformat(json.loads(sent.value or b"")["time"])
            beyond[sent.error] = round(time.timestamp() * 1000) - sent.timestamp_ms
    assert beyond == {
        "time is more than 2 hours late": -2 * 60 * MINUTE_MS - 1,
        "time is more than 30 seconds ahead": 30_001,
    }


@pytest.mark.parametrize("name", ["max_lateness", "max_ahead"])
def test_a_few_orders_have_no_bad_ones_and_need_no_limits(name: str) -> None:
    without = attrs.evolve(options(), **{name: None})
    assert len(list(orders.generate(12, START_MS, without))) == 12
    with pytest.raises(ConfigError, match="max_lateness and max_ahead"):
        list(orders.generate(13, START_MS, without))


def test_an_order_at_the_end_of_a_window_is_in_the_next_one() -> None:
    last = attrs.evolve(order(1, 5), time_ms=START_MS + 5 * MINUTE_MS - 1)
    closed, still_open = orders.windows([last, order(2, 5)], options())
    assert not closed
    assert {window.start_ms for window in still_open} == {START_MS, START_MS + 5 * MINUTE_MS}


def test_a_window_is_closed_as_soon_as_the_watermark_is_at_its_end() -> None:
    for late_ms, count in ((0, 1), (1, 0)):
        newest = attrs.evolve(order(2, 15), time_ms=START_MS + 15 * MINUTE_MS - late_ms)
        closed, _ = orders.windows([order(1, 0), newest], options())
        assert len(closed) == count


def test_without_orders_there_are_no_windows() -> None:
    assert orders.windows([], options()) == (set(), set())


def test_given_options_win_over_those_of_the_orders() -> None:
    assert options(watermark="1 hour").watermark == "1 hour"
    assert options().schema == orders.SCHEMA
