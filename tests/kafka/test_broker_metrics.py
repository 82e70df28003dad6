"""Metrics of the embedded broker beside the beans of a real Kafka that has done the same."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest

from harness.network.ports import free_port
from harness.real_kafka.broker import RealKafka
from harness.real_kafka.java import compiled, missing_compiler
from harness.real_kafka.node import SHORT_LIVED, missing
from harness.requirements import skip_if
from harness.topics import new_topic
from harness.waiting import wait_until
from kclient import KafkaConsumer, KafkaProducer
from kclient.admin import ClientQuotaAlteration, ClientQuotaEntity, KafkaAdminClient
from kclient.broker import EmbeddedKafka

Metric = tuple[str, str, tuple[str, ...]]
"""The group, the name and the names of the tags."""

OF_OURS_ALONE = {
    *(
        ("network.RequestMetrics", f"ResponseBytes-{attribute}", ("request",))
        for attribute in (
            "Mean", "Max", "50thPercentile", "95thPercentile", "99thPercentile", "999thPercentile",
        )
    ),
    # A meter of Kafka's, of which ours is the rate of the last minute.
    ("server.KafkaRequestHandlerPool", "RequestHandlerAvgIdlePercent", ()),
    # Kafka makes those of a topic when there is something to count.
    *(
        ("server.BrokerTopicMetrics", f"{name}PerSec-Count", ("topic",))
        for name in ("BytesRejected", "FailedFetchRequests", "FailedProduceRequests")
    ),
}  # fmt: skip
LACKING = {
    ("server.ReplicaManager", "UnderReplicatedPartitions", ()),
    ("server.ReplicaManager", "AtMinIsrPartitionCount", ()),
    ("server.ReplicaManager", "ReassigningPartitions", ()),
    ("server.ReplicaManager", "ProducerIdCount", ()),
    ("server.ReplicaManager", "IsrShrinksPerSec-Count", ()),
    ("server.BrokerTopicMetrics", "InvalidMessageCrcRecordsPerSec-Count", ()),
    ("server.BrokerTopicMetrics", "NoKeyCompactedTopicRecordsPerSec-Count", ()),
    ("server.ControllerMutation", "mutation-rate", ("client-id",)),
    ("server.Request", "exempt-request-time", ()),
    ("server.socket-server-metrics", "incoming-byte-total", ("listener", "networkProcessor")),
    ("server.socket-server-metrics", "request-total", ("listener", "networkProcessor")),
    ("server.socket-server-metrics", "expired-connections-killed-count", ("listener", "networkProcessor")),
    ("log.LogCleanerManager", "uncleanable-bytes", ("logDirectory",)),
    ("network.Acceptor", "AcceptorBlockedPercent-Count", ("listener",)),
    ("controller.KafkaController", "ActiveBrokerCount", ()),
}
"""The most common of those that a Kafka has and the embedded broker has not."""

_BEAN = re.compile(r"kafka\.(?P<domain>[a-z.]+):type=(?P<type>[^,]+)(?P<rest>.*)")


def use(servers: str) -> None:
    """Do what a broker measures."""
    with KafkaAdminClient(bootstrap_servers=servers) as admin:
        keys = ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
        change = ClientQuotaAlteration(ClientQuotaEntity({"client-id": "c"}), dict.fromkeys(keys, 1e6))
        ip = ClientQuotaAlteration(ClientQuotaEntity({"ip": "127.0.0.1"}), {"connection_creation_rate": 1e6})
        admin.alter_client_quotas([change, ip])
    topic = new_topic(servers, 1)
    with KafkaProducer(bootstrap_servers=servers, client_id="c") as producer:
        producer.send(topic, b"v").result(30)
    with KafkaConsumer(
        bootstrap_servers=servers, client_id="c", group_id="g", auto_offset_reset="earliest"
    ) as consumer:
        consumer.subscribe([topic])
        wait_until(lambda: consumer.poll(500), 60)
        consumer.commit_sync()
    with KafkaAdminClient(bootstrap_servers=servers, client_id="c") as admin:
        admin.create_topics(["of-c"])


def of_beans(text: str) -> Iterator[Metric]:
    """The metrics of a real Kafka under the names that ours would have."""
    for line in text.splitlines():
        bean, _, attribute = line.partition("\t")
        found = _BEAN.fullmatch(bean)
        if found is None:
            continue
        tags = dict(part.split("=", 1) for part in found["rest"].split(",") if "=" in part)
        group, name = f"{found['domain']}.{found['type']}", tags.pop("name", None)
        if name is None:
            yield group, attribute, tuple(sorted(tags))
        else:
            yield group, name if attribute == "Value" else f"{name}-{attribute}", tuple(sorted(tags))


@pytest.fixture(scope="module")
def kafkas(tmp_path_factory: pytest.TempPathFactory) -> set[Metric]:
    skip_if(missing() or missing_compiler())
    classes = compiled("MBeans", tmp_path_factory.mktemp("classes"))
    port = free_port()
    jmx = [
        f"-Dcom.sun.management.jmxremote.{option}"
        for option in (
            f"port={port}",
            f"rmi.port={port}",
            "authenticate=false",
            "ssl=false",
            "host=127.0.0.1",
        )
    ]
    with RealKafka(java=[*SHORT_LIVED, *jmx, "-Djava.rmi.server.hostname=127.0.0.1"]) as kafka:
        use(kafka.bootstrap_servers)
        command = ["java", *SHORT_LIVED, "-cp", str(classes), "MBeans", str(port)]
        told = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    return set(of_beans(told))


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> set[Metric]:
    with EmbeddedKafka() as kafka:
        use(kafka.bootstrap_servers)
        return {
            # JMX leaves out tags without a value.
            (name.group, name.name, tuple(sorted(tag for tag, value in name.tags if value)))
            for name in kafka.metrics()
        }


def test_what_the_embedded_broker_measures_has_the_names_of_kafka(
    kafkas: set[Metric], ours: set[Metric]
) -> None:
    assert ours - kafkas == OF_OURS_ALONE
    assert len(ours & kafkas) > 100


def test_what_is_lacking_is_known(kafkas: set[Metric], ours: set[Metric]) -> None:
    assert kafkas >= LACKING, "a real Kafka has no such metric"
    assert not ours & LACKING, "it is there: take it from the list, and from docs/observability.md"
