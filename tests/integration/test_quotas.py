"""Quotas through the wire: who exceeds one is told, and held back, and nobody else is."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.broker.requests import create
from harness.broker.wire import Wire, batch
from harness.waiting import wait_until
from kclient.admin import (
    ClientQuotaAlteration,
    ClientQuotaEntity,
    ClientQuotaFilter,
    KafkaAdminClient,
    NewTopic,
)
from kclient.broker import EmbeddedKafka
from kclient.broker.quota.client_quota_manager import ClientQuotaManager
from kclient.consumer import KafkaConsumer
from kclient.errors import Errors, ThrottlingQuotaExceededError
from kclient.producer import KafkaProducer
from kclient.protocol.header import request_buffers
from kclient.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kclient.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kclient.protocol.messages.delete_topics import DeleteTopicsRequest
from kclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kclient.protocol.messages.list_groups import ListGroupsRequest
from kclient.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kclient.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData

Setter = Callable[..., None]
VALUE = b"x" * 1000


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    # Ten seconds of windows are long for a test. What is let pass at first is the quota of one second.
    with EmbeddedKafka({"quota.window.num": "2", "controller.quota.window.num": "1"}) as running:
        yield running


@pytest.fixture
def set_quota(kafka: EmbeddedKafka) -> Iterator[Setter]:
    with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:

        def set_to(entity: dict[str, str | None], key: str, value: float | None) -> None:
            change = ClientQuotaAlteration(ClientQuotaEntity(entity), {key: value})
            assert admin.alter_client_quotas([change]) == {change.entity: None}

        yield set_to


def produce(wire: Wire, topic: str, count: int = 1, acks: int = 1) -> Any:
    """Write records of 1000 bytes in one batch; the answer to the request."""
    data = [PartitionProduceData(index=0, records=batch(*[VALUE] * count))]
    request = ProduceRequest(
        acks=acks, timeout_ms=1000, topic_data=[TopicProduceData(name=topic, partition_data=data)]
    )
    if acks == 0:
        wire.send(request, 9)
        return None
    answer = wire.ask(request, 9)
    assert answer.responses[0].partition_responses[0].error_code == 0
    return answer


def fetch(wire: Wire, topic: str) -> Any:
    """Read from the beginning; the answer to the request."""
    wanted = [FetchPartition(partition=0, partition_max_bytes=1 << 20)]
    topics = [FetchTopic(topic=topic, partitions=wanted)]
    return wire.ask(FetchRequest(max_wait_ms=0, max_bytes=1 << 20, session_epoch=-1, topics=topics), 12)


def is_served(wire: Wire, within_s: float = 0.2) -> bool:
    """Send a request, and see if it is answered in time."""
    wire.send(ListGroupsRequest(), 3)
    if not select.select([wire.sock], [], [], within_s)[0]:
        return False
    wire.receive()
    return True


def test_a_produce_quota_is_told_and_mutes_the_connection_and_no_other(
    kafka: EmbeddedKafka, set_quota: Setter
) -> None:
    set_quota({"client-id": "loud"}, "producer_byte_rate", 10_000)
    servers = kafka.bootstrap_servers
    with Wire(servers, client_id="loud") as loud, Wire(servers, client_id="other") as other:
        create(other, "t")
        assert produce(loud, "t").throttle_time_ms == 0
        began = time.monotonic()
        held_ms = produce(loud, "t", 40).throttle_time_ms
        assert 2000 < held_ms < 5000
        of_loud = {
            name.name: value
            for name, value in kafka.metrics().items()
            if name.group == "server.Produce" and dict(name.tags) == {"user": "", "client-id": "loud"}
        }
        assert of_loud.keys() == {"byte-rate", "throttle-time"}
        assert of_loud["byte-rate"] > 0
        assert of_loud["throttle-time"] == held_ms
        assert produce(other, "t", 40).throttle_time_ms == 0
        assert is_served(other, 10)
        assert not is_served(loud)
        assert loud.receive().error_code == 0
        assert time.monotonic() - began > held_ms / 1000


def test_all_connections_share_the_quota_of_their_user(kafka: EmbeddedKafka, set_quota: Setter) -> None:
    set_quota({"user": None}, "producer_byte_rate", 10_000)
    servers = kafka.bootstrap_servers
    with Wire(servers, client_id="one") as one, Wire(servers, client_id="two") as two:
        create(two, "t")
        assert produce(one, "t", 9).throttle_time_ms == 0
        assert produce(two, "t", 9).throttle_time_ms > 0


def test_a_user_is_known_by_the_name_that_was_proven(tmp_path: Path) -> None:
    users = {"alice": "secret", "bob": "secret"}
    with EmbeddedKafka({"log.dirs": str(tmp_path)}, security="SASL_PLAINTEXT", users=users) as kafka:
        settings = {name: kafka.client_settings(name) for name in users}
        change = ClientQuotaAlteration(ClientQuotaEntity({"user": "alice"}), {"producer_byte_rate": 50_000})
        with KafkaAdminClient(settings["bob"]) as admin:
            admin.create_topics(["t"])
            admin.alter_client_quotas([change])
        held = {}
        for name, given in settings.items():
            with KafkaProducer({**given, "client.id": "same"}) as producer:
                for _ in range(2):
                    producer.send("t", b"x" * 700_000).result(30)
                held[name] = producer.metrics()["produce-throttle-time-max"]
                producer.close(0)
        assert held["alice"] > 0
        assert not held["bob"] > 0


def test_a_producer_that_wants_no_answers_is_held_back_as_well(
    kafka: EmbeddedKafka, set_quota: Setter
) -> None:
    set_quota({"client-id": "loud"}, "producer_byte_rate", 10_000)
    with Wire(kafka.bootstrap_servers, client_id="loud") as loud:
        create(loud, "t")
        produce(loud, "t", 30, acks=0)
        assert not is_served(loud)
        with Wire(kafka.bootstrap_servers) as other:
            assert fetch(other, "t").responses[0].partitions[0].high_watermark == 30


def test_a_throttled_fetch_has_no_records_and_the_next_one_after_the_wait_has(
    kafka: EmbeddedKafka, set_quota: Setter
) -> None:
    with Wire(kafka.bootstrap_servers, client_id="reader") as wire:
        create(wire, "t")
        for _ in range(8):
            produce(wire, "t")
        set_quota({"user": "ANONYMOUS", "client-id": None}, "consumer_byte_rate", 10_000)
        first = fetch(wire, "t")
        assert first.throttle_time_ms == 0
        assert first.responses[0].partitions[0].records
        second = fetch(wire, "t")
        assert 0 < second.throttle_time_ms < 2000
        assert second.responses == []
        wait_until(lambda: bool(fetch(wire, "t").responses), 10)


def test_a_batch_above_the_whole_quota_is_read_all_the_same(kafka: EmbeddedKafka, set_quota: Setter) -> None:
    with Wire(kafka.bootstrap_servers, client_id="reader") as wire:
        create(wire, "t")
        produce(wire, "t", 20)
        set_quota({"client-id": "reader"}, "consumer_byte_rate", 10_000)
        answer = fetch(wire, "t")
        assert answer.throttle_time_ms > 0
        assert answer.responses[0].partitions[0].records
        assert not is_served(wire)


def test_the_clients_go_on_under_quotas_and_report_their_throttles(
    kafka: EmbeddedKafka, set_quota: Setter
) -> None:
    set_quota({"client-id": "slow"}, "producer_byte_rate", 50_000)
    set_quota({"client-id": "slow"}, "consumer_byte_rate", 50_000)
    settings: dict[str, Any] = {"bootstrap.servers": kafka.bootstrap_servers, "client.id": "slow"}
    began = time.monotonic()
    with KafkaProducer({**settings, "linger.ms": 5, "batch.size": 4000}) as producer:
        for _ in range(3):
            for _ in range(50):
                producer.send("t", VALUE)
            producer.flush(60_000)
        assert time.monotonic() - began > 1
        assert producer.metrics()["produce-throttle-time-max"] > 0
    consumer_settings = {**settings, "auto.offset.reset": "earliest", "group.id": "g"}
    with KafkaConsumer(consumer_settings) as consumer:
        consumer.subscribe(["t"])
        seen: list[Any] = []
        wait_until(lambda: seen.extend(consumer.poll(200)) or len(seen) == 150, 60)
        assert [record.offset for record in seen] == list(range(150))
        assert consumer.metrics()["fetch-throttle-time-max"] > 0


def test_the_time_of_requests_has_a_quota(kafka: EmbeddedKafka, set_quota: Setter) -> None:
    set_quota({"client-id": "busy"}, "request_percentage", 0.000001)
    with Wire(kafka.bootstrap_servers, client_id="busy") as busy:
        create(busy, "t")
        assert not is_served(busy)
        assert busy.receive().throttle_time_ms == 1000
    with Wire(kafka.bootstrap_servers, client_id="idle") as idle:
        assert is_served(idle, 10)


def test_the_time_of_network_threads_counts_as_well(
    kafka: EmbeddedKafka, set_quota: Setter, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: dict[str | None, float] = {}
    usual = ClientQuotaManager.note

    def note(self: ClientQuotaManager, user: str, client_id: str | None, value: float) -> None:
        noted[client_id] = noted.get(client_id, 0) + value
        usual(self, user, client_id, value)

    monkeypatch.setattr(ClientQuotaManager, "note", note)
    # Nothing is done for these but to take many bytes from the socket.
    frame = b"".join(request_buffers(ListGroupsRequest(), 4, 1, "large")) + bytes(8 << 20)
    with Wire(kafka.bootstrap_servers, client_id="small") as small, Wire(kafka.bootstrap_servers) as large:
        small.ask(ListGroupsRequest(), 4)
        assert noted == {}, "it is measured without a quota"
        for client in ("small", "large"):
            set_quota({"client-id": client}, "request_percentage", 10_000.0)
        for _ in range(5):
            small.ask(ListGroupsRequest(), 4)
            large.sock.sendall((len(frame) - 4).to_bytes(4, "big") + frame[4:])
            large.read_frame()
        wait_until(lambda: noted.get("large", 0) > 2 * noted.get("small", 0) > 0)


def new_topic(name: str, partitions: int) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=1000)


def test_mutations_above_their_quota_fail_and_with_old_versions_wait(
    kafka: EmbeddedKafka, set_quota: Setter
) -> None:
    set_quota({"client-id": "maker"}, "controller_mutation_rate", 2)
    servers = kafka.bootstrap_servers
    with Wire(servers, client_id="maker") as wire, Wire(servers, client_id="maker") as second:
        answer = wire.ask(new_topic("large", 40), 7)
        assert (answer.topics[0].error_code, answer.throttle_time_ms) == (0, 0)
        refused = wire.ask(new_topic("small", 1), 6)
        assert refused.topics[0].error_code == Errors.THROTTLING_QUOTA_EXCEEDED
        assert 10_000 < refused.throttle_time_ms <= 19_000
        grown = second.ask(
            CreatePartitionsRequest(
                topics=[CreatePartitionsTopic(name="large", count=41, assignments=None)], timeout_ms=1000
            ),
            3,
        )
        assert grown.results[0].error_code == Errors.THROTTLING_QUOTA_EXCEEDED
    with Wire(servers, client_id="maker") as wire:
        deleted = wire.ask(DeleteTopicsRequest(topic_names=["large"], timeout_ms=1000), 5)
        assert deleted.responses[0].error_code == Errors.THROTTLING_QUOTA_EXCEEDED
    with Wire(servers, client_id="maker") as wire:
        made = wire.ask(new_topic("old", 4), 5)
        assert made.topics[0].error_code == 0
        assert made.throttle_time_ms > 2000
        assert not is_served(wire)


def test_the_admin_client_waits_until_the_quota_of_mutations_allows_what_was_refused(
    kafka: EmbeddedKafka, set_quota: Setter
) -> None:
    set_quota({"client-id": "maker"}, "controller_mutation_rate", 4)
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "client.id": "maker"}
    with KafkaAdminClient(settings) as admin:
        began = time.monotonic()
        admin.create_topics([NewTopic("large", 8)])
        assert list(admin.create_topics(["first", "second"])) == ["first", "second"]
        admin.create_topics([NewTopic("owed", 10)])
        assert admin.delete_topics(["large", "first"]) == {"large": None, "first": None}
        # Of 8 + 1 + 1 + 10 + 8 the last is not waited for, and a second's worth is there at first.
        assert time.monotonic() - began > 1
        assert sorted(admin.list_topics()) == ["owed", "second"]


@pytest.mark.parametrize("retry", [True, False], ids=["at the deadline", "without retries"])
def test_the_admin_client_tells_how_long_the_quota_of_mutations_is_exceeded(
    kafka: EmbeddedKafka, set_quota: Setter, retry: bool
) -> None:
    set_quota({"client-id": "maker"}, "controller_mutation_rate", 1)
    settings = {"bootstrap.servers": kafka.bootstrap_servers, "client.id": "maker"}
    with KafkaAdminClient(settings) as admin:
        admin.create_topics([NewTopic("large", 100)])
        began = time.monotonic()
        with pytest.raises(ThrottlingQuotaExceededError) as raised:
            admin.create_topics(["small"], retry_on_quota_violation=retry, timeout_ms=1500)
        waited_ms = (time.monotonic() - began) * 1000
        assert (waited_ms >= 1500) is retry
        assert 80_000 < raised.value.throttle_time_ms <= 100_000 - (1500 if retry else 0)


def test_a_topic_is_not_made_by_asking_for_it_above_the_quota_of_mutations(
    kafka: EmbeddedKafka, set_quota: Setter
) -> None:
    set_quota({"client-id": "asker"}, "controller_mutation_rate", 1)
    servers = kafka.bootstrap_servers

    def asked(name: str) -> int:
        with Wire(servers, client_id="asker") as wire:
            request = MetadataRequest(
                topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True
            )
            code: int = wire.ask(request, 9).topics[0].error_code
            return code

    with Wire(servers, client_id="asker") as wire:
        assert wire.ask(new_topic("large", 6), 7).topics[0].error_code == 0
    assert asked("automatic") == Errors.UNKNOWN_TOPIC_OR_PARTITION
    wait_until(lambda: asked("automatic") == 0, 20)


def test_quotas_are_there_after_a_restart(tmp_path: Path) -> None:
    settings = {"log.dirs": str(tmp_path)}
    entity = ClientQuotaEntity({"client-id": "loud"})
    with (
        EmbeddedKafka(settings) as kafka,
        KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin,
    ):
        admin.create_topics(["t"])
        admin.alter_client_quotas([ClientQuotaAlteration(entity, {"producer_byte_rate": 1})])
    with EmbeddedKafka(settings) as kafka:
        with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
            found = admin.describe_client_quotas(ClientQuotaFilter.all())
        assert found == {entity: {"producer_byte_rate": 1.0}}
        with Wire(kafka.bootstrap_servers, client_id="loud") as loud:
            assert produce(loud, "t").throttle_time_ms > 0


def test_a_broker_stops_while_connections_are_held_back(set_quota: Setter, kafka: EmbeddedKafka) -> None:
    set_quota({"client-id": "loud"}, "producer_byte_rate", 1)
    with Wire(kafka.bootstrap_servers, client_id="loud") as loud:
        create(loud, "t")
        assert produce(loud, "t", 40).throttle_time_ms > 3_600_000
        kafka.close()
        assert loud.closed_by_peer()


def test_an_address_that_connects_too_often_is_closed_and_let_in_again_later(
    kafka: EmbeddedKafka, set_quota: Setter
) -> None:
    servers = kafka.bootstrap_servers
    set_quota({"ip": "127.0.0.1"}, "connection_creation_rate", 2)

    def gets_in() -> bool:
        with Wire(servers) as wire:
            try:
                wire.ask(ListGroupsRequest(), 3)
            except (EOFError, ConnectionError):
                return False
            return True

    assert [gets_in() for _ in range(4)].count(True) < 4
    wait_until(gets_in, 10)
