"""Orders to try pipelines with: good ones, and every kind of bad one, with what a pipeline should make of them.

What should come out is computed here in plain Python from what was made, without Spark.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import attrs

from kclient.errors import ConfigError
from kclient.spark.pipelines.options import EventsOptions, duration_ms

SCHEMA = "order_id string, product string, quantity int, amount decimal(12,2), time timestamp"
CONDITION = "event.amount > 0"
_PRODUCTS = ("apples", "bread", "cheese", "dates", "eggs")
_STEP_MS = 1000
_DISORDER_MS = 60_000
# One in so many is bad: a prime number, so that bad ones fall on all keys and partitions.
_BAD_EVERY = 13


@attrs.frozen
class Order:
    """A good order as it should come out."""

    order_id: str
    product: str
    quantity: int
    amount: Decimal
    time_ms: int


@attrs.frozen
class Sent:
    """A record, and what it is: an order, or the error that its dead letter should name."""

    key: bytes
    value: bytes | None
    timestamp_ms: int
    order: Order | None
    error: str | None


@attrs.frozen
class Window:
    """One window of one product."""

    start_ms: int
    product: str
    events: int
    amount: Decimal


def order_options(**given: Any) -> EventsOptions:
    """Options of the pipeline `events` for these orders, over which `given` ones win."""
    chosen: dict[str, Any] = {
        "schema": SCHEMA,
        "time_column": "time",
        "required": ("order_id", "product", "amount"),
        "conditions": (CONDITION,),
        "max_lateness": "5 minutes",
        "max_ahead": "1 minute",
        "window": "5 minutes",
        # Lateness, haste, and four minutes for partitions that are not read evenly: nothing good is ever too late.
        "watermark": "10 minutes",
        "group_by": ("product",),
        "sums": ("amount",),
    }
    return EventsOptions(**{**chosen, **given})


def generate(count: int, start_ms: int, options: EventsOptions, seed: int = 1) -> Iterator[Sent]:
    """`count` records, one a second from `start_ms` on; the same ones for the same arguments."""
    chance = random.Random(seed)
    bad = 0
    for number in range(count):
        sent_ms = start_ms + number * _STEP_MS
        order = Order(
            f"o-{number}",
            chance.choice(_PRODUCTS),
            chance.randint(1, 9),
            Decimal(chance.randint(1, 99_999)) / 100,
            sent_ms - chance.randrange(_DISORDER_MS),
        )
        key = order.product.encode()
        if number % _BAD_EVERY == _BAD_EVERY - 1:
            value, error = _bad(bad, order, sent_ms, options)
            bad += 1
            yield Sent(key, value, sent_ms, None, error)
        else:
            yield Sent(key, _json(order), sent_ms, order, None)


def windows(orders: Iterable[Order], options: EventsOptions) -> tuple[set[Window], set[Window]]:
    """The windows that the watermark has closed when all was read, and those that are still open."""
    length_ms = duration_ms(options.window, "window")
    counts: Counter[tuple[int, str]] = Counter()
    sums: dict[tuple[int, str], Decimal] = {}
    newest_ms = 0
    for order in orders:
        place = order.time_ms - order.time_ms % length_ms, order.product
        counts[place] += 1
        sums[place] = sums.get(place, Decimal(0)) + order.amount
        newest_ms = max(newest_ms, order.time_ms)
    limit_ms = newest_ms - duration_ms(options.watermark, "watermark")
    every = {
        Window(start, product, counts[start, product], sums[start, product]) for start, product in counts
    }
    closed = {window for window in every if window.start_ms + length_ms <= limit_ms}
    return closed, every - closed


def _json(order: Order, **instead: object) -> bytes:
    # The amount as a number with all its digits, which json cannot write of a Decimal.
    fields = {
        "order_id": order.order_id,
        "product": order.product,
        "quantity": order.quantity,
        "amount": None,
        "time": _iso(order.time_ms),
        **instead,
    }
    text = json.dumps(fields)
    if "amount" not in instead:
        text = text.replace('"amount": null', f'"amount": {order.amount}')
    return text.encode()


def _iso(time_ms: int) -> str:
    return (
        datetime.fromtimestamp(time_ms / 1000, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )


def _bad(number: int, order: Order, sent_ms: int, options: EventsOptions) -> tuple[bytes | None, str]:
    """The kinds of bad rows in turns, with the error of each."""
    if options.max_lateness is None or options.max_ahead is None:
        raise ConfigError(
            "Orders that are late or ahead need max_lateness and max_ahead.", name="max_lateness"
        )
    late_ms = sent_ms - duration_ms(options.max_lateness, "max_lateness") - 1
    ahead_ms = sent_ms + duration_ms(options.max_ahead, "max_ahead") + 1
    kinds: tuple[tuple[bytes | None, str], ...] = (
        (_json(order)[:-9], "not one JSON object"),
        (_json(order, amount=None), "amount is missing"),
        (_json(order, time=_iso(late_ms)), f"time is more than {options.max_lateness} late"),
        (_json(order, amount="a lot"), "amount is no decimal(12,2)"),
        (_json(order) * 2, "not one JSON object"),
        (_json(order, amount=-1), f"not {CONDITION}"),
        (None, "no value"),
        (_json(order, time="yesterday"), "time is no timestamp"),
        (b"\xff\xfe" + _json(order), "not UTF-8"),
        (_json(order, time=_iso(ahead_ms)), f"time is more than {options.max_ahead} ahead"),
    )
    return kinds[number % len(kinds)]
