"""A trial of the pipeline `events`: orders are sent, and what came out is compared with what had to come out.

What came out is read without Spark: Parquet by PyArrow, topics by a consumer.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs

from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRecord, KafkaConsumer
from kclient.errors import KafkaTimeoutError
from kclient.processing.header_names import SOURCE_ERROR, SOURCE_OFFSET, SOURCE_PARTITION, SOURCE_TOPIC
from kclient.producer import KafkaProducer
from kclient.spark.pipelines.options import EventsOptions
from kclient.spark.pipelines.orders import Order, Sent, Window, windows

_READ_TIMEOUT_MS = 30_000


@attrs.frozen
class Letter:
    """A dead letter: where its record lies, and what is wrong with it."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    error: str


@attrs.frozen
class Outcome:
    """The pipeline's output. Topics' records are counted: a micro-batch run again writes them again."""

    orders: Counter[Order]
    windows: Counter[Window]
    letters: Counter[Letter]
    window_records: Counter[Window]


@attrs.frozen
class Expected:
    """The output that the pipeline has to give."""

    orders: frozenset[Order]
    closed: frozenset[Window]
    open: frozenset[Window]
    letters: frozenset[Letter]


def send(sent: Sequence[Sent], options: EventsOptions) -> Expected:
    """Send the records; what has to come of them."""
    with KafkaProducer({**options.settings, "bootstrap.servers": options.bootstrap_servers}) as producer:
        futures = [
            producer.send(options.topic, each.value, key=each.key, timestamp_ms=each.timestamp_ms)
            for each in sent
        ]
        producer.flush()
    letters = set()
    for each, future in zip(sent, futures, strict=True):
        metadata = future.result()
        if each.error is not None:
            letters.add(
                Letter(options.topic, metadata.partition, metadata.offset, each.key, each.value, each.error)
            )
    return expect(sent, letters, options)


def expect(sent: Sequence[Sent], letters: Iterable[Letter], options: EventsOptions) -> Expected:
    """The output for records that were sent, those with `letters` among them."""
    orders = [each.order for each in sent if each.order is not None]
    closed, still_open = windows(orders, options)
    return Expected(frozenset(orders), frozenset(closed), frozenset(still_open), frozenset(letters))


def outcome(options: EventsOptions) -> Outcome:
    """Read everything that the pipeline has written."""
    output = Path(options.output)
    return Outcome(
        Counter(_orders(output / "events")),
        Counter(_windows(output / "windows")),
        Counter(map(_letter, _read(options, options.dead_letter_topic))),
        Counter(map(_window, _read(options, options.window_topic))),
    )


def differences(found: Outcome, expected: Expected) -> list[str]:
    """Return the differences between `found` and `expected` in words; an empty list if there are none."""
    problems: list[str] = []
    for what, counts, wanted, repeats in (
        ("orders in Parquet", found.orders, expected.orders, False),
        ("windows in Parquet", found.windows, expected.closed, False),
        ("dead letters", found.letters, expected.letters, True),
        ("windows in Kafka", found.window_records, expected.closed, True),
    ):
        kinds: list[tuple[int, str]] = [
            (len(wanted - counts.keys()), "missing"),
            (len(counts.keys() - wanted), "wrong"),
        ]
        if not repeats:
            kinds.append((sum(1 for count in counts.values() if count > 1), "there more than once"))
        problems += [f"{count:,} {what} {kind}" for count, kind in kinds if count]
    return problems


def _read(options: EventsOptions, topic: str) -> list[ConsumerRecord[bytes, bytes]]:
    return read_topic(options.bootstrap_servers, topic, options.settings)


def read_topic(
    servers: str, topic: str, settings: Mapping[str, str] | None = None
) -> list[ConsumerRecord[bytes, bytes]]:
    """All records of a topic as it is now, with `settings`. Raises KafkaTimeoutError if they do not come."""
    found: list[ConsumerRecord[bytes, bytes]] = []
    own = {"bootstrap.servers": servers, "enable.auto.commit": False}
    with KafkaConsumer[bytes, bytes]({**(settings or {}), **own}) as consumer:
        partitions = [TopicPartition(topic, info.partition) for info in consumer.partitions_for(topic)]
        consumer.assign(partitions)
        consumer.seek_to_beginning(partitions)
        ends = consumer.end_offsets(partitions)
        while any(consumer.position(tp) < end for tp, end in ends.items()):
            records = consumer.poll(timeout_ms=_READ_TIMEOUT_MS)
            if not records:
                raise KafkaTimeoutError(f"nothing more of {topic} came in {_READ_TIMEOUT_MS} ms")
            found.extend(records)
    return found


def _orders(folder: Path) -> Iterator[Order]:
    for row in _rows(folder, "order_id", "product", "quantity", "amount", "time"):
        yield Order(row["order_id"], row["product"], row["quantity"], row["amount"], _ms(row["time"]))


def _windows(folder: Path) -> Iterator[Window]:
    for row in _rows(folder, "window_start", "product", "events", "sum_amount"):
        yield Window(_ms(row["window_start"]), row["product"], row["events"], row["sum_amount"])


def _rows(folder: Path, *columns: str) -> Iterator[dict[str, Any]]:
    import pyarrow.parquet as pq

    if folder.exists():
        yield from pq.read_table(str(folder), columns=list(columns)).to_pylist()


def _letter(record: ConsumerRecord[bytes, bytes]) -> Letter:
    headers = {name: (value or b"").decode() for name, value in record.headers}
    return Letter(
        headers[SOURCE_TOPIC],
        int(headers[SOURCE_PARTITION]),
        int(headers[SOURCE_OFFSET]),
        record.key,
        record.value,
        headers[SOURCE_ERROR],
    )


def _window(record: ConsumerRecord[bytes, bytes]) -> Window:
    row = json.loads(record.value or b"", parse_float=Decimal)
    return Window(
        milliseconds(row["window_start"]), row["product"], row["events"], Decimal(row["sum_amount"])
    )


def milliseconds(iso: str) -> int:
    """A time with its zone, in ms since the epoch."""
    return _ms(datetime.fromisoformat(iso))


def _ms(moment: datetime) -> int:
    # Spark writes times as INT96, which has no zone and is in UTC.
    known = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return round(known.timestamp() * 1000)
