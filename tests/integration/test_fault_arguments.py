"""Bad arguments of every public method: refused at once, by a typed error with their name, and nothing is sent."""

from __future__ import annotations

import inspect
import math
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest

from harness.network.scripted_broker import Reply, ScriptedBroker
from harness.scenarios.wrong_arguments import CASES, TP, Call, Clients
from kclient.admin import KafkaAdminClient
from kclient.consumer import KafkaConsumer
from kclient.errors import ConfigError, KafkaError
from kclient.producer import KafkaProducer
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.init_producer_id import InitProducerIdResponse


@pytest.fixture(scope="module")
def clients() -> Iterator[Clients]:
    with ScriptedBroker(topics={"t": 1}) as broker:
        broker.on(ApiKeys.INIT_PRODUCER_ID, lambda h, m: InitProducerIdResponse(producer_id=1))
        broker.on(ApiKeys.FIND_COORDINATOR, lambda h, m: Reply.NOTHING)
        made = Clients(broker)
        yield made
        made.close()


@pytest.mark.parametrize(
    ("method", "call", "argument", "errors", "values"),
    [case for _, case in CASES],
    ids=[f"{client.__name__ if client else ''}.{case[0]}-{case[2]}" for client, case in CASES],
)
def test_a_bad_argument_is_refused_at_once_by_name_and_nothing_is_sent(
    clients: Clients,
    method: str,
    call: Call,
    argument: str,
    errors: type[Exception] | tuple[type[Exception], ...],
    values: list[Any],
) -> None:
    before = clients.sent()
    for value in values:
        shown = repr(value)[:80]
        started = time.monotonic()
        with pytest.raises(errors) as refused:
            call(clients, value)
        assert re.search(rf"(?<!\w){re.escape(argument)}(?!\w)", str(refused.value)), (
            f"{method}({argument}={shown}) says only: {refused.value}"
        )
        assert time.monotonic() - started < 15, f"{method}({argument}={shown}) took its time"
    assert clients.sent() == before


@pytest.mark.parametrize("client", [KafkaProducer, KafkaConsumer, KafkaAdminClient])
def test_every_argument_of_every_public_method_has_its_bad_values(client: type[Any]) -> None:
    tried = {(case[0], case[2]) for made, case in CASES if made is client}
    missing = [
        (name, argument)
        for name, method in vars(client).items()
        if not name.startswith("_") and callable(method)
        for argument in list(inspect.signature(method).parameters)[1:]
        if (name, argument) not in tried
    ]
    assert missing == []


@pytest.mark.parametrize("make", [KafkaProducer, KafkaConsumer, KafkaAdminClient])
@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("no.such.setting", 1),
        ("bootstrap.servers", "localhost:70000"),
        ("bootstrap.servers", "localhost"),
        ("bootstrap.servers", ""),
        ("request.timeout.ms", math.nan),
        ("request.timeout.ms", -1),
        ("request.timeout.ms", "soon"),
        ("client.dns.lookup", "guess"),
        ("security.protocol", "CARRIER_PIGEON"),
        ("retry.backoff.ms", 2**63),
        ("metadata.recovery.strategy", "hope"),
    ],
)
def test_a_bad_setting_is_refused_by_every_client_by_name(make: Any, setting: str, value: object) -> None:
    with pytest.raises(ConfigError, match=re.escape(setting)) as refused:
        make({"bootstrap.servers": "localhost:9092", setting: value}).close()
    assert isinstance(refused.value, KafkaError)


def test_the_longest_timeout_there_is_is_none_too_long(clients: Clients) -> None:
    longest = 2**63 - 1
    with ScriptedBroker(topics={"t": 1}) as broker:
        with KafkaProducer(bootstrap_servers=broker.bootstrap, enable_idempotence=False) as producer:
            producer.flush(longest)
            producer.close(longest)
        with KafkaAdminClient(bootstrap_servers=broker.bootstrap) as admin:
            assert list(admin.list_topics(timeout_ms=longest)) == ["t"]
            admin.close(longest)
        with KafkaConsumer(bootstrap_servers=broker.bootstrap) as consumer:
            assert list(consumer.list_topics(timeout_ms=longest)) == ["t"]
            consumer.assign([TP])
            consumer.wakeup()
            with pytest.raises(KafkaError):
                consumer.poll(longest)
            consumer.close(longest)
