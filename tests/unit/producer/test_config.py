"""The producer's settings: rules that concern more than one of them."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from kclient.errors import ConfigError
from kclient.producer.config import ProducerConfig

UNIFORM_STICKY = "org.apache.kafka.clients.producer.UniformStickyPartitioner"


def parse(**settings: Any) -> ProducerConfig:
    return ProducerConfig.parse({"bootstrap.servers": "localhost:9092"}, settings)


def test_delivery_timeout_must_leave_time_to_linger_and_for_one_answer() -> None:
    with pytest.raises(
        ConfigError, match=r"delivery\.timeout\.ms \(1000\) must be at least linger\.ms \(5\)"
    ):
        parse(delivery_timeout_ms=1000)
    assert parse(delivery_timeout_ms=1005, request_timeout_ms=1000).delivery_timeout_ms == 1005


def test_a_default_delivery_timeout_is_raised_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="kclient"):
        assert parse(request_timeout_ms=200_000).delivery_timeout_ms == 200_005
    assert "delivery.timeout.ms is raised" in caplog.text


def test_huge_timeouts_do_not_overflow() -> None:
    config = parse(linger_ms=2**62, request_timeout_ms=2**31 - 1)
    assert (config.linger_ms, config.delivery_timeout_ms) == (2**31 - 1, 2**31 - 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [("acks", 1), ("acks", "0"), ("retries", 0), ("max_in_flight_requests_per_connection", 6)],
)
def test_idempotence_that_was_asked_for_refuses_what_it_cannot_have(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=r"enable\.idempotence=true needs") as caught:
        parse(enable_idempotence=True, **{name: value})
    assert caught.value.name == name.replace("_", ".")


@pytest.mark.parametrize(
    ("name", "value"),
    [("acks", 1), ("acks", "0"), ("retries", 0), ("max_in_flight_requests_per_connection", 6)],
)
def test_idempotence_by_default_gives_way_with_a_warning(
    name: str, value: object, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="kclient"):
        assert not parse(**{name: value}).enable_idempotence
    assert "Idempotence is off" in caplog.text


def test_idempotence_is_on_by_default_and_can_be_turned_off() -> None:
    assert parse().enable_idempotence
    assert parse(acks=-1, enable_idempotence="true", retries=1).enable_idempotence
    assert not parse(enable_idempotence=False, acks=0, retries=0).enable_idempotence


@pytest.mark.parametrize(("given", "number"), [("all", -1), (-1, -1), ("-1", -1), (0, 0), ("1", 1)])
def test_acks_has_a_number(given: object, number: int) -> None:
    assert parse(acks=given).required_acks == number


def test_javas_former_partitioners_are_what_the_built_in_one_does() -> None:
    default = parse(partitioner_class="org.apache.kafka.clients.producer.internals.DefaultPartitioner")
    assert (default.partitioner_class, default.partitioner_ignore_keys) == (None, False)
    sticky = parse(partitioner_class=UNIFORM_STICKY)
    assert (sticky.partitioner_class, sticky.partitioner_ignore_keys) == (None, True)
    with pytest.raises(ConfigError, match=r"contradicts partitioner\.ignore\.keys=false"):
        parse(partitioner_class=UNIFORM_STICKY, partitioner_ignore_keys=False)


def test_a_partitioner_may_be_a_name_or_an_object() -> None:
    own = object()
    assert parse(partitioner_class=own).partitioner_class is own
    round_robin = parse(partitioner_class="org.apache.kafka.clients.producer.RoundRobinPartitioner")
    assert round_robin.partitioner_class == "round_robin"


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"reconnect_backoff_ms": 5000}, (5000, 5000)),
        ({"reconnect_backoff_ms": 5000, "reconnect_backoff_max_ms": 2000}, (2000, 2000)),
        ({"reconnect_backoff_max_ms": 10}, (10, 10)),
        ({"reconnect_backoff_ms": 10, "reconnect_backoff_max_ms": 20}, (10, 20)),
    ],
)
def test_the_longest_backoff_is_never_shorter_than_the_first(
    given: dict[str, object], expected: tuple[int, int]
) -> None:
    config = parse(**given)
    assert (config.reconnect_backoff_ms, config.reconnect_backoff_max_ms) == expected


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("acks", 2),
        ("acks", "ALL"),
        ("compression.type", "lzma"),
        ("compression.gzip.level", 0),
        ("compression.zstd.level", 23),
        ("compression.lz4.level", 18),
        ("batch.size", -1),
        ("metadata.max.idle.ms", 4999),
        ("max.in.flight.requests.per.connection", 0),
        ("client.dns.lookup", "default"),
        ("kclient.receive.max.bytes", 0),
    ],
)
def test_a_bad_value_is_refused_with_the_settings_name(name: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"^{name}: {value!r} is not valid") as caught:
        parse(**{name: value})
    assert caught.value.name == name
