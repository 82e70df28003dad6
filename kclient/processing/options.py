"""The arguments of a run, checked, and what the two clients must be like."""

from __future__ import annotations

import logging
import threading
from typing import Any, Literal

import attrs

from kclient.common.topic_name import check_topic
from kclient.consumer import KafkaConsumer
from kclient.errors import ConfigError, IllegalStateError
from kclient.processing.handling import Handler
from kclient.producer import KafkaProducer
from kclient.producer.internals.transactions.state import TransactionState
from kclient.utils.backoff import ExponentialBackoff

log = logging.getLogger(__name__)

OrderedBy = Literal["partition", "key"]


@attrs.frozen(kw_only=True)
class Options:
    """The arguments of `run` but for the clients. Raises TypeError or ValueError with the name of what is wrong."""

    handler: Handler
    exactly_once: bool
    concurrency: int
    ordered_by: OrderedBy
    attempts: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    dead_letter_topic: str | None
    max_in_hand: int
    commit_interval_ms: int
    stop: threading.Event | None

    def __attrs_post_init__(self) -> None:
        if not callable(self.handler):
            raise TypeError(f"handler: a function of a record is needed, not {self.handler!r}")
        for name, least in (
            ("concurrency", 1),
            ("attempts", 1),
            ("retry_backoff_ms", 0),
            ("retry_backoff_max_ms", 0),
            ("max_in_hand", 1),
            ("commit_interval_ms", 0),
        ):
            _check_int(name, getattr(self, name), least)
        if not isinstance(self.exactly_once, bool):
            raise TypeError(f"exactly_once: True or False is needed, not {self.exactly_once!r}")
        if self.ordered_by not in {"partition", "key"}:
            raise ValueError(f"ordered_by: partition or key is needed, not {self.ordered_by!r}")
        if self.dead_letter_topic is not None:
            check_topic(self.dead_letter_topic, "dead_letter_topic")
        if self.stop is not None and not isinstance(self.stop, threading.Event):
            raise TypeError(f"stop: a threading.Event is needed, not {self.stop!r}")

    @property
    def backoff(self) -> ExponentialBackoff:
        """Return the waits between attempts."""
        return ExponentialBackoff(self.retry_backoff_ms, self.retry_backoff_max_ms)


def _check_int(name: str, value: Any, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name}: an int is needed, not {value!r}")
    if value < least:
        raise ValueError(f"{name}: it must be at least {least}, not {value}")


@attrs.frozen
class Clients:
    """The things to know of the two clients."""

    max_poll_interval_ms: int
    uninitialized: bool
    """True if the producer still needs `init_transactions`."""


def checked_clients(consumer: Any, producer: Any, exactly_once: bool) -> Clients:
    """Return what a run has to know of its clients.

    Raises TypeError for other things, ConfigError with the name of the setting that does not go with the others.
    """
    if not isinstance(consumer, KafkaConsumer):
        raise TypeError(f"consumer: a KafkaConsumer is needed, not {consumer!r}")
    if not isinstance(producer, KafkaProducer):
        raise TypeError(f"producer: a KafkaProducer is needed, not {producer!r}")
    config = consumer._core.config  # noqa: SLF001 - clients show their settings to nobody outside of kclient
    transactions = producer._core.transactions  # noqa: SLF001 - the same
    if config.group_id is None:
        raise ConfigError("group.id: the consumer needs one, by which its offsets are kept", name="group.id")
    if config.enable_auto_commit:
        raise ConfigError(
            "enable.auto.commit: it must be false for run(), which commits what is finished and no more",
            name="enable.auto.commit",
        )
    if exactly_once and transactions is None:
        raise ConfigError(
            "transactional.id: the producer needs one for exactly_once=True", name="transactional.id"
        )
    if not exactly_once and transactions is not None:
        raise ConfigError(
            "transactional.id: a producer that has one sends in transactions alone, for exactly_once=True",
            name="transactional.id",
        )
    if exactly_once and config.isolation_level != "read_committed":
        log.warning(
            "isolation.level=%s: the consumer also reads records of transactions that are aborted later; "
            "read_committed is what goes with exactly_once",
            config.isolation_level,
        )
    uninitialized = transactions is not None and transactions.state is TransactionState.UNINITIALIZED
    return Clients(config.max_poll_interval_ms, uninitialized)


def check_reads(consumer: KafkaConsumer[Any, Any]) -> None:
    """Raise IllegalStateError if there is nothing that the consumer would read."""
    if not consumer.subscription() and not consumer.assignment():
        raise IllegalStateError(
            "topics: none are given, and the consumer is neither subscribed to any nor assigned partitions"
        )
