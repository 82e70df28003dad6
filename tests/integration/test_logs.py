"""What clients write into their logs, and what they never write there."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker_process import BrokerProcess
from helpers import wait_until
from kclient.admin import KafkaAdminClient
from kclient.broker.embedded import EmbeddedKafka
from kclient.consumer import KafkaConsumer
from kclient.producer import KafkaProducer
from scenarios import new_topic


@pytest.fixture(scope="module")
def servers() -> Iterator[str]:
    with EmbeddedKafka() as kafka:
        yield kafka.bootstrap_servers


def client_records(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """What the clients logged, without the broker of this process."""
    return [
        record
        for record in caplog.records
        if record.name.startswith("kclient.") and not record.getMessage().startswith("[Broker")
        and not record.name.startswith("kclient.broker")
    ]  # fmt: skip


def test_every_line_of_a_client_begins_with_its_id_and_none_holds_a_payload(
    servers: str, caplog: pytest.LogCaptureFixture
) -> None:
    topic = new_topic(servers, 1)
    secrets = {name: f"{name}-{uuid.uuid4().hex}" for name in ("key", "value", "header")}

    def callback(*_: object) -> None:
        raise RuntimeError("a callback")

    with caplog.at_level(logging.DEBUG):
        with KafkaProducer(bootstrap_servers=servers, client_id="log-p") as producer:
            producer.send(
                topic,
                secrets["value"].encode(),
                key=secrets["key"].encode(),
                headers=[("h", secrets["header"].encode())],
                on_delivery=callback,
            ).result(20)
        with KafkaConsumer(
            bootstrap_servers=servers, client_id="log-c", group_id="log-g", auto_offset_reset="earliest"
        ) as consumer:
            consumer.subscribe([topic])
            wait_until(lambda: len(consumer.poll(100)), 30, "the record")
            consumer.commit_sync()
        with KafkaAdminClient(bootstrap_servers=servers, client_id="log-a") as admin:
            admin.list_topics()
    records = client_records(caplog)
    prefix = re.compile(r"\[(Producer|Consumer|AdminClient) clientId=log-[pca][^\]]*\] ")
    assert [record.getMessage() for record in records if not prefix.match(record.getMessage())] == []
    for kind in ("Producer clientId=log-p", "Consumer clientId=log-c", "AdminClient clientId=log-a"):
        connects = [r for r in records if kind in r.getMessage() and "Connected to" in r.getMessage()]
        assert connects
        assert {record.levelno for record in connects} == {logging.INFO}
    formatter = logging.Formatter()
    text = "\n".join(formatter.format(record) for record in caplog.records)
    assert [name for name, secret in secrets.items() if secret in text] == []


@pytest.mark.heavy
def test_a_broker_that_is_away_is_warned_of_once_for_each_client(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with BrokerProcess(tmp_path) as broker:
        servers = broker.bootstrap_servers
        topic = new_topic(servers, 1)
        with KafkaProducer(
            bootstrap_servers=servers, client_id="waiter", reconnect_backoff_ms=5, reconnect_backoff_max_ms=20
        ) as producer:
            producer.send(topic, b"before").result(20)
            broker.kill()
            with caplog.at_level(logging.DEBUG):
                future = producer.send(topic, b"while it is away")
                attempts = "Connecting to"
                wait_until(lambda: caplog.text.count(attempts) > 50, 30, "fifty attempts to connect")
            warned = [r.getMessage() for r in client_records(caplog) if r.levelno >= logging.WARNING]
            causes = [re.sub(r"\(id -?\d+\)", "", line) for line in warned]
            assert len(causes) == len(set(causes)), warned
            assert len([line for line in warned if "Cannot connect" in line]) == 1
            broker.start()
            assert future.result(60).offset == 1
