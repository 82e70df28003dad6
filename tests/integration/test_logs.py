"""Logs of clients: what they write there, and what they never write."""

from __future__ import annotations

import logging
import re
import uuid
from pathlib import Path

import pytest

from harness.broker.process import BrokerProcess
from harness.network.proxy import FaultProxy
from harness.topics import new_topic
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient
from kclient.broker.embedded import EmbeddedKafka
from kclient.consumer import KafkaConsumer
from kclient.producer import KafkaProducer
from kclient.protocol.api_keys import ApiKeys


def client_records(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """Everything that the clients logged, without the broker of this process."""
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


def test_lines_about_faults_begin_with_the_clients_id_as_all_others_do(
    caplog: pytest.LogCaptureFixture,
) -> None:
    quick = {"retry.backoff.ms": 5, "retry.backoff.max.ms": 50, "reconnect.backoff.ms": 5}
    # The port that the broker names in its metadata has to be the proxy's.
    with (
        FaultProxy(("127.0.0.1", 1)) as proxy,
        EmbeddedKafka(advertised_listeners=f"PLAINTEXT://127.0.0.1:{proxy.port}") as kafka,
    ):
        assert kafka._broker is not None
        proxy.target = kafka._broker.address
        topic = new_topic(kafka.bootstrap_servers, 1)
        # Repeated names and a name that does not resolve are warned of before there is a connection.
        settings = {
            **quick,
            "bootstrap.servers": [f"127.0.0.1:{proxy.port}"] * 2 + ["no-such-host.invalid:1"],
        }
        with caplog.at_level(logging.DEBUG):
            for api in (ApiKeys.PRODUCE, ApiKeys.FETCH, ApiKeys.JOIN_GROUP, ApiKeys.OFFSET_COMMIT):
                proxy.cut(api, 9)
                proxy.reset(api, 0, on_response=False)
            proxy.cut(ApiKeys.METADATA, 6, times=6)
            with KafkaProducer(settings, client_id="fault-p") as producer:
                producer.send(topic, b"v").result(30)
            with KafkaConsumer(
                settings, client_id="fault-c", group_id="fault-g", auto_offset_reset="earliest"
            ) as consumer:
                consumer.subscribe([topic])
                wait_until(lambda: len(consumer.poll(100)), 30, "the record")
                consumer.commit_sync()
            proxy.reset(ApiKeys.METADATA, 0)
            with KafkaAdminClient(settings, client_id="fault-a") as admin:
                admin.list_topics()
            proxy.drop_connections()
    records = client_records(caplog)
    prefix = re.compile(
        r"\[(Producer clientId=fault-p|Consumer clientId=fault-c, groupId=fault-g|AdminClient clientId=fault-a)\] "
    )
    assert [record.getMessage() for record in records if not prefix.match(record.getMessage())] == []
    for client in ("fault-p", "fault-c", "fault-a"):
        warned = [
            r for r in records if r.levelno >= logging.WARNING and f"clientId={client}" in r.getMessage()
        ]
        assert {"kclient.config.validators", "kclient.client.bootstrap"} < {record.name for record in warned}


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
