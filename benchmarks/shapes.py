"""Records as people write them: with keys, headers, callbacks and serializers, and read by iteration."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

PARTITIONS = 6
KEYS = 1000
IN_TRANSACTION = 1000
HEADERS = [("traceparent", b"00-4bf92f3577b34da6a3ce929d0e0e4736"), ("source", b"benchmark")]
FIRST_MS = 1_760_000_000_000
"""The timestamp of the first record."""


def order(number: int) -> dict[str, object]:
    """Return the object of one record, to be written as JSON."""
    return {"id": number, "name": "a customer", "amount": number * 1.5, "tags": ["x", "y"]}


@attrs.frozen
class Shape:
    """One way of writing it: `text` for people, and what kclient is held to as a multiple of confluent-kafka."""

    text: str
    rate: float
    cpu: float = 0.7


SENDING: Mapping[str, Shape] = {
    "send": Shape("send(t, v)", 2.0),
    "send_key": Shape("send(t, v, key=bytes)", 1.8),
    "send_threads": Shape("send(t, v), 4 threads", 1.8),
    "send_str_key": Shape("str keys, a serializer", 1.5),
    "send_headers": Shape("2 headers and a key", 1.5),
    "send_partition": Shape("partition=", 1.5),
    "send_timestamp": Shape("timestamp_ms=", 1.5),
    "send_callback": Shape("on_delivery= and a key", 1.3),
    "send_json": Shape("a JSON serializer", 1.0, 1.0),
    "send_results": Shape("result() of each future", 1.5),
    "send_transactions": Shape("transactions of 1,000 records", 1.3),
}
READING: Mapping[str, Shape] = {
    "iterate": Shape("for record in consumer (beside consume(500))", 1.0, 1.0),
    "iterate_singly": Shape("for record in consumer (beside poll())", 1.5, 1.0),
    "poll": Shape("poll(), keys, headers and times read", 1.0, 1.0),
    "poll_commit": Shape("poll(), auto-commit", 1.0, 1.0),
}
SHAPES: Mapping[str, Shape] = {**SENDING, **READING}


def shown(operation: str) -> str:
    """Return the operation's name for people."""
    return SHAPES[operation].text if operation in SHAPES else operation
