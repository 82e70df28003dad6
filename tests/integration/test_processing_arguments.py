"""Arguments and settings of kclient.processing.run that cannot be right."""

from __future__ import annotations

from typing import Any

import pytest

from kclient import ConsumerRecord, KafkaConsumer, KafkaProducer
from kclient.errors import ConfigError, InvalidTopicError
from kclient.processing import run


def reader(servers: str, **settings: Any) -> KafkaConsumer[Any, Any]:
    return KafkaConsumer(
        {"bootstrap.servers": servers, "group.id": "g", "enable.auto.commit": False, **settings}
    )


def no_handler(_: ConsumerRecord[Any, Any]) -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    ("argument", "value", "error"),
    [
        ("handler", None, TypeError),
        ("concurrency", 0, ValueError),
        ("concurrency", 1.5, TypeError),
        ("attempts", 0, ValueError),
        ("retry_backoff_ms", -1, ValueError),
        ("retry_backoff_max_ms", True, TypeError),
        ("ordered_by", "value", ValueError),
        ("dead_letter_topic", "a b", InvalidTopicError),
        ("max_in_hand", 0, ValueError),
        ("commit_interval_ms", -1, ValueError),
        ("exactly_once", "yes", TypeError),
        ("stop", True, TypeError),
        ("consumer", None, TypeError),
        ("producer", None, TypeError),
    ],
)
def test_a_wrong_argument_is_refused_by_its_name(
    servers: str, argument: str, value: Any, error: type[Exception]
) -> None:
    with KafkaProducer(bootstrap_servers=servers) as producer, reader(servers) as consumer:
        arguments = {"consumer": consumer, "producer": producer, "handler": no_handler, "topics": ["t"]}
        with pytest.raises(error, match=argument):
            run(**{**arguments, argument: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("setting", "of_consumer", "of_producer", "exactly_once"),
    [
        ("enable.auto.commit", {"enable.auto.commit": True}, {}, False),
        ("group.id", {"group.id": None}, {}, False),
        ("transactional.id", {}, {}, True),
        ("transactional.id", {}, {"transactional.id": "x"}, False),
    ],
)
def test_settings_that_do_not_go_together_are_refused_by_name(
    servers: str, setting: str, of_consumer: dict[str, Any], of_producer: dict[str, Any], exactly_once: bool
) -> None:
    with (
        KafkaProducer({"bootstrap.servers": servers, **of_producer}) as producer,
        reader(servers, **of_consumer) as consumer,
        pytest.raises(ConfigError, match=setting) as caught,
    ):
        run(consumer, producer, no_handler, topics=["t"], exactly_once=exactly_once)
    assert caught.value.name == setting
