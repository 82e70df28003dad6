"""run: consume, transform, produce, until it is stopped."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any, Literal, TypeVar

from kclient.consumer import ConsumerRecord, KafkaConsumer
from kclient.processing.at_least_once import AtLeastOnce
from kclient.processing.exactly_once import ExactlyOnce
from kclient.processing.options import Options, check_reads, checked_clients
from kclient.processing.outcome import Processed
from kclient.processing.source import Source
from kclient.processing.stopping import Stop
from kclient.producer import KafkaProducer, ProducerRecord

K = TypeVar("K")
V = TypeVar("V")


def run(
    consumer: KafkaConsumer[K, V],
    producer: KafkaProducer[Any, Any],
    handler: Callable[
        [ConsumerRecord[K, V]], ProducerRecord[Any, Any] | Iterable[ProducerRecord[Any, Any]] | None
    ],
    *,
    topics: Iterable[str] | None = None,
    exactly_once: bool = False,
    concurrency: int = 1,
    ordered_by: Literal["partition", "key"] = "partition",
    attempts: int = 3,
    retry_backoff_ms: int = 100,
    retry_backoff_max_ms: int = 10_000,
    dead_letter_topic: str | None = None,
    max_in_hand: int = 1000,
    commit_interval_ms: int = 1000,
    stop: threading.Event | None = None,
    handle_signals: bool = True,
) -> Processed:
    """Read records, give each to `handler`, send what it returns, and commit, until `stop` is set or a signal comes.

    `handler` is called on threads of the run, `concurrency` at a time, while the calling thread takes part in the
    group, however long that takes. Records of one partition, or of one key in it (`ordered_by`), are handled one after
    the other; records without a key are in no order then. The consumer reads `topics`, or what it is subscribed to or
    assigned already; it must have enable.auto.commit=false.

    A record is committed when its outputs are acknowledged, and never before. With `exactly_once` every batch is a
    transaction of outputs and offsets, for which the producer needs a transactional.id; transactions are initialized
    unless they were. Otherwise up to `max_in_hand` records, and one poll's more, are in hand, and commits come every
    `commit_interval_ms` and when nothing is in hand.

    A handler that raises is called up to `attempts` times, with exponential backoff between. Then the record, and one
    that no deserializer can read or whose outputs are refused, goes to `dead_letter_topic`, with the reason in
    headers. Without that topic nothing is left out: run() ends with the error, which has a note of the record's
    place, after it has committed what was finished before.

    `stop`, SIGTERM and SIGINT (on the main thread, with `handle_signals`) let what is in hand be finished and
    committed; a second signal is a KeyboardInterrupt at once. Both clients stay open.

    Raises TypeError, ValueError and ConfigError for arguments and settings that do not fit, IllegalStateError if there
    is nothing to read, the handler's error, and errors of the clients that do not pass. Neither client may be used by
    others meanwhile.
    """
    options = Options(
        handler=handler,
        exactly_once=exactly_once,
        concurrency=concurrency,
        ordered_by=ordered_by,
        attempts=attempts,
        retry_backoff_ms=retry_backoff_ms,
        retry_backoff_max_ms=retry_backoff_max_ms,
        dead_letter_topic=dead_letter_topic,
        max_in_hand=max_in_hand,
        commit_interval_ms=commit_interval_ms,
        stop=stop,
    )
    clients = checked_clients(consumer, producer, exactly_once)
    if topics is None:
        check_reads(consumer)
    stopping = Stop(stop)
    with stopping.on_signals() if handle_signals else nullcontext():
        if clients.uninitialized:
            producer.init_transactions()
        source = Source(consumer, pass_unreadable=dead_letter_topic is not None)
        loop: AtLeastOnce | ExactlyOnce
        if exactly_once:
            loop = ExactlyOnce(source, producer, options)
        else:
            loop = AtLeastOnce(source, producer, options, clients.max_poll_interval_ms)
        if topics is not None:
            loop.subscribe(topics)
        return loop.run(stopping)
