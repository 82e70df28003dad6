"""Metrics of the broker: what clients do is seen in them, under the names of Kafka's JMX."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from harness.broker import requests
from harness.broker.wire import Wire, batch
from harness.waiting import wait_until
from kclient.broker import EmbeddedKafka
from kclient.broker.apis.registry import served_apis
from kclient.metrics import MetricName
from kclient.observability.otel_metrics import KafkaInstruments
from kclient.observability.prometheus import KafkaCollector
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.describe_acls import DescribeAclsRequest
from kclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kclient.protocol.messages.heartbeat import HeartbeatRequest
from kclient.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kclient.protocol.registry import request_class
from kclient.protocol.schema import Message

REQUESTS, TOPICS = "network.RequestMetrics", "server.BrokerTopicMetrics"
PURGATORY = "server.DelayedOperationPurgatory"
PARTS = ("RequestQueueTimeMs", "LocalTimeMs", "RemoteTimeMs", "ThrottleTimeMs", "ResponseQueueTimeMs",
         "ResponseSendTimeMs", "RequestBytes", "ResponseBytes")  # fmt: skip


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as running:
        yield running


@pytest.fixture
def wire(kafka: EmbeddedKafka) -> Iterator[Wire]:
    with Wire(kafka.bootstrap_servers) as connected:
        yield connected


def value(kafka: EmbeddedKafka, group: str, name: str, **tags: str) -> float | None:
    return dict(kafka.metrics()).get(MetricName(name, group, tuple(sorted(tags.items()))))


def requests_seen(kafka: EmbeddedKafka, request: str, version: int) -> float:
    return value(kafka, REQUESTS, "RequestsPerSec-Count", request=request, version=str(version)) or 0


def errors_seen(kafka: EmbeddedKafka, request: str) -> dict[str, float]:
    names = {name: count for name, count in kafka.metrics().items() if name.name == "ErrorsPerSec-Count"}
    tags = [(dict(name.tags), count) for name, count in names.items()]
    return {tag["error"]: count for tag, count in tags if tag["request"] == request}


def test_every_request_has_its_times_sizes_and_errors(kafka: EmbeddedKafka, wire: Wire) -> None:
    requests.create(wire, "t", 2)
    requests.produce(wire, "t", batch(b"v"))
    requests.try_produce(wire, "t", b"no batch at all", 1)
    requests.fetch(wire, "t")
    wait_until(lambda: requests_seen(kafka, "Fetch", 12) == 1)
    assert requests_seen(kafka, "Produce", 9) == 2
    assert errors_seen(kafka, "Produce") == {"NONE": 1, "CORRUPT_MESSAGE": 1}
    assert errors_seen(kafka, "Fetch") == errors_seen(kafka, "FetchConsumer") == {"NONE": 2}
    for request in ("Produce", "Fetch", "FetchConsumer", "CreateTopics"):
        total = value(kafka, REQUESTS, "TotalTimeMs-Mean", request=request)
        assert total is not None
        parts = [value(kafka, REQUESTS, f"{part}-Mean", request=request) for part in PARTS]
        assert None not in parts
        assert total == pytest.approx(sum(part for part in parts[:6] if part is not None), abs=0.002)
        assert value(kafka, REQUESTS, "TotalTimeMs-99thPercentile", request=request) is not None


def test_every_api_that_is_served_has_metrics_once_it_was_asked_for(kafka: EmbeddedKafka) -> None:
    for api in served_apis().values():
        with Wire(kafka.bootstrap_servers) as own:
            try:
                own.ask(_least(api.key), api.max_version)
            except EOFError:
                pytest.fail(f"{api.key.name} was not answered")
    titles = {api.key.title for api in served_apis().values()}

    def seen() -> set[str]:
        found = {name for name in kafka.metrics() if name.name == "TotalTimeMs-Count"}
        return {dict(name.tags)["request"] for name in found}

    wait_until(lambda: seen() == titles | {"FetchConsumer"})


_ANY = 1  # a code of 0 ends the connection


def _least(api: ApiKeys) -> Message:
    """A request of the API that is answered at once."""
    if api is ApiKeys.PRODUCE:
        return ProduceRequest(acks=-1)
    if api is ApiKeys.DESCRIBE_ACLS:
        return DescribeAclsRequest(resource_type_filter=_ANY, operation=_ANY, permission_type=_ANY)
    return request_class(api)()


def test_what_is_written_and_read_is_counted_by_topic_and_goes_with_it(
    kafka: EmbeddedKafka, wire: Wire
) -> None:
    requests.create(wire, "t")
    sent = batch(b"a", b"b", b"c")
    requests.produce(wire, "t", sent)
    requests.fetch(wire, "t")
    wait_until(lambda: value(kafka, TOPICS, "BytesOutPerSec-Count", topic="t") == len(sent))
    for tags in ({}, {"topic": "t"}):
        assert value(kafka, TOPICS, "MessagesInPerSec-Count", **tags) == 3
        assert value(kafka, TOPICS, "BytesInPerSec-Count", **tags) == len(sent)
        assert value(kafka, TOPICS, "TotalProduceRequestsPerSec-Count", **tags) == 1
        assert value(kafka, TOPICS, "TotalFetchRequestsPerSec-Count", **tags) == 1
    assert value(kafka, "log.Log", "LogEndOffset", topic="t", partition="0") == 3
    requests.delete(wire, "t")
    assert [name for name in kafka.metrics() if ("topic", "t") in name.tags] == []
    assert value(kafka, TOPICS, "MessagesInPerSec-Count") == 3, "sums never shrink"


def test_records_that_are_too_large_are_counted_as_rejected(kafka: EmbeddedKafka, wire: Wire) -> None:
    requests.create(wire, "t", max_message_bytes="100")
    large = batch(bytes(500))
    assert requests.try_produce(wire, "t", large).error_code == 10
    assert value(kafka, TOPICS, "BytesRejectedPerSec-Count", topic="t") == len(large)
    assert value(kafka, TOPICS, "FailedProduceRequestsPerSec-Count", topic="t") == 0
    assert value(kafka, TOPICS, "MessagesInPerSec-Count", topic="t") == 0


def test_a_request_without_an_answer_is_counted_and_its_error_too(kafka: EmbeddedKafka, wire: Wire) -> None:
    data = [PartitionProduceData(index=0, records=batch(b"v"))]
    wire.send(
        ProduceRequest(acks=0, timeout_ms=1, topic_data=[TopicProduceData(name="none", partition_data=data)]),
        9,
    )
    assert wire.closed_by_peer()
    wait_until(lambda: requests_seen(kafka, "Produce", 9) == 1)
    assert errors_seen(kafka, "Produce") == {"UNKNOWN_TOPIC_OR_PARTITION": 1}


def test_a_request_that_cannot_be_read_is_an_error_of_its_api(kafka: EmbeddedKafka, wire: Wire) -> None:
    wire.sock.sendall(bytes.fromhex("0000000d000c0004000000070001780063"))  # a heartbeat that ends too early
    assert wire.closed_by_peer()
    wait_until(lambda: errors_seen(kafka, "Heartbeat") == {"INVALID_REQUEST": 1})


def test_a_request_whose_client_is_gone_when_it_is_answered_is_counted(
    kafka: EmbeddedKafka, wire: Wire
) -> None:
    requests.create(wire, "t")
    part = FetchPartition(partition=0, partition_max_bytes=1000)
    topic = FetchTopic(topic="t", partitions=[part])
    with Wire(kafka.bootstrap_servers) as gone:
        gone.send(FetchRequest(max_wait_ms=60_000, min_bytes=1, session_epoch=-1, topics=[topic]), 12)
        wait_until(lambda: value(kafka, PURGATORY, "NumDelayedOperations", delayedOperation="Fetch") == 1)
    requests.produce(wire, "t", batch(b"v"))
    wait_until(lambda: requests_seen(kafka, "Fetch", 12) == 1)
    assert errors_seen(kafka, "Fetch") == {"NONE": 2}
    waited_ms = value(kafka, REQUESTS, "RemoteTimeMs-Max", request="Fetch")
    assert waited_ms is not None
    assert waited_ms > 0


def test_versions_that_are_not_served_add_nothing(kafka: EmbeddedKafka) -> None:
    for version in range(100, 120):
        with Wire(kafka.bootstrap_servers) as own:
            own.sock.sendall(bytes.fromhex(f"0000000a000c{version:04x}00000007ffff"))
            assert own.closed_by_peer()
    assert errors_seen(kafka, "Heartbeat") == {}
    assert [name for name in kafka.metrics() if ("request", "Heartbeat") in name.tags] == []


def test_connections_and_threads_are_seen(kafka: EmbeddedKafka, wire: Wire) -> None:
    wire.ask(HeartbeatRequest(group_id="g"), 4)
    values = kafka.metrics()

    def summed(name: str) -> float:
        return sum(number for each, number in values.items() if each.name == name)

    assert summed("connection-count") == summed("connection-creation-total") == 1
    assert 0 <= values["RequestHandlerAvgIdlePercent"] <= 1
    assert 0 < values["NetworkProcessorAvgIdlePercent"] <= 1
    wire.close()
    wait_until(
        lambda: sum(v for name, v in kafka.metrics().items() if name.name == "connection-close-total") == 1
    )


@pytest.mark.parametrize(
    "name",
    [
        "RequestQueueSize", "ResponseQueueSize", "MemoryPoolUsed", "PartitionCount", "LeaderCount",
        "OfflineReplicaCount", "OfflineLogDirectoryCount", "NumGroups", "NumOffsets", "NumGroupsStable",
        "ActiveControllerCount", "GlobalTopicCount", "GlobalPartitionCount", "OfflinePartitionsCount", "BrokerState",
        "NumIncrementalFetchSessions", "NumIncrementalFetchPartitionsCached", "max-dirty-percent", "DeadThreadCount",
        "uncleanable-partitions-count", "LogFlushRateAndTimeMs-Count",
    ],
)  # fmt: skip
def test_there_is(kafka: EmbeddedKafka, name: str) -> None:
    assert kafka.metrics()[name] >= 0


def test_there_are_no_metrics_while_no_broker_runs(kafka: EmbeddedKafka) -> None:
    kafka.stop()
    assert kafka.metrics() == {}


def test_prometheus_and_opentelemetry_take_them_as_those_of_clients(kafka: EmbeddedKafka, wire: Wire) -> None:
    wire.ask(HeartbeatRequest(group_id="g"), 4)
    wait_until(lambda: requests_seen(kafka, "Heartbeat", 4) == 1)
    registry = CollectorRegistry()
    registry.register(KafkaCollector(kafka))
    text = generate_latest(registry).decode()
    counted = 'kafka_network_RequestMetrics_RequestsPerSec_Count_total{request="Heartbeat",version="4"} 1.0'
    assert counted in text.splitlines()
    assert "kafka_server_ReplicaManager_PartitionCount 0.0" in text.splitlines()
    instruments = KafkaInstruments(kafka)
    instruments.close()


def test_the_api_of_a_metric_is_called_as_in_kafka(kafka: EmbeddedKafka, wire: Wire) -> None:
    wire.ask(request_class(ApiKeys.INIT_PRODUCER_ID)(), 4)
    wait_until(lambda: requests_seen(kafka, "InitProducerId", 4) == 1)
