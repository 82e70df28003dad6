"""Settings of a broker that runs: changed through the admin client, in force at once and after a restart."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.broker.requests import create, try_produce, values
from harness.broker.wire import Wire, batch
from harness.network.certificates import Authority
from harness.waiting import wait_until
from kclient import KafkaProducer, TopicPartition
from kclient.admin import AlterConfigOp, ConfigResource, ConfigResourceType, ConfigSource, KafkaAdminClient
from kclient.broker import EmbeddedKafka
from kclient.errors import Errors, InvalidRequestError
from kclient.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kclient.protocol.messages.metadata import MetadataRequest
from kclient.record import MemoryRecordsBuilder

ALL, OWN = (ConfigResource(ConfigResourceType.BROKER, name) for name in ("", "1"))


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka() as running:
        yield running


@pytest.fixture
def admin(kafka: EmbeddedKafka) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as made:
        yield made


def put(admin: KafkaAdminClient, name: str, value: str, resource: ConfigResource = OWN) -> None:
    assert admin.incremental_alter_configs({resource: [AlterConfigOp(name, value)]}) == {resource: None}


def threads(name: str) -> int:
    return sum(thread.name.startswith(name) for thread in threading.enumerate())


def test_the_largest_batch_can_be_changed(kafka: EmbeddedKafka, admin: KafkaAdminClient) -> None:
    with Wire(kafka.bootstrap_servers) as wire:
        create(wire, "t")
        large = batch(b"x" * 5000)
        assert try_produce(wire, "t", large).error_code == 0
        put(admin, "message.max.bytes", "2000", ALL)
        assert try_produce(wire, "t", large).error_code == Errors.MESSAGE_TOO_LARGE
        put(admin, "message.max.bytes", "9000")
        assert try_produce(wire, "t", large).error_code == 0


def test_settings_are_there_after_a_restart(tmp_path: Path) -> None:
    settings = {"log.dirs": str(tmp_path)}
    with (
        EmbeddedKafka(settings) as kafka,
        KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin,
        Wire(kafka.bootstrap_servers) as wire,
    ):
        create(wire, "t")
        put(admin, "message.max.bytes", "2000")
    with EmbeddedKafka(settings) as kafka:
        with Wire(kafka.bootstrap_servers) as wire:
            assert try_produce(wire, "t", batch(b"x" * 5000)).error_code == Errors.MESSAGE_TOO_LARGE
        with KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin:
            told = admin.describe_configs([OWN])[OWN]["message.max.bytes"]
    assert (told.value, told.source) == ("2000", ConfigSource.DYNAMIC_BROKER_CONFIG)


def test_a_setting_that_needs_a_restart_is_refused(admin: KafkaAdminClient) -> None:
    with pytest.raises(
        InvalidRequestError, match=r"Cannot update these configs dynamically: num\.partitions"
    ):
        put(admin, "num.partitions", "5")


def test_the_number_of_connections_can_be_changed(kafka: EmbeddedKafka, admin: KafkaAdminClient) -> None:
    admin.list_topics()
    put(admin, "max.connections.per.ip", "1")
    with Wire(kafka.bootstrap_servers) as refused:
        assert refused.closed_by_peer()
    put(admin, "max.connections.per.ip", "100")
    with Wire(kafka.bootstrap_servers) as wire:
        create(wire, "t")


def test_the_number_of_connections_of_one_address_can_be_changed(
    kafka: EmbeddedKafka, admin: KafkaAdminClient
) -> None:
    admin.list_topics()
    put(admin, "max.connections.per.ip.overrides", "127.0.0.1:1")
    with Wire(kafka.bootstrap_servers) as refused:
        assert refused.closed_by_peer()
    put(admin, "max.connections.per.ip.overrides", "127.0.0.1:100")
    with Wire(kafka.bootstrap_servers) as wire:
        create(wire, "t")


def test_the_threads_of_handlers_and_the_cleaner_can_be_changed(admin: KafkaAdminClient) -> None:
    handlers, cleaners = threads("request-handler-"), threads("log-cleaner-")
    put(admin, "num.io.threads", "8")
    put(admin, "log.cleaner.threads", "2")
    wait_until(lambda: threads("request-handler-") == handlers + 4)
    wait_until(lambda: threads("log-cleaner-") == cleaners + 1)
    put(admin, "num.io.threads", "4", OWN)
    put(admin, "log.cleaner.threads", "1")
    wait_until(lambda: threads("request-handler-") == handlers)
    wait_until(lambda: threads("log-cleaner-") == cleaners)
    with pytest.raises(InvalidRequestError, match="halved or doubled"):
        put(admin, "num.io.threads", "9")


@pytest.mark.parametrize("number", [0, 1])
def test_network_threads_can_be_taken_away_by_a_client_of_any_of_them(
    kafka: EmbeddedKafka, admin: KafkaAdminClient, number: int
) -> None:
    before = threads("network-processor-")
    put(admin, "num.network.threads", "2", ALL)
    wait_until(lambda: threads("network-processor-") == before + 1)
    change = AlterableConfig(name="num.network.threads", config_operation=0, value="1")
    resource = AlterConfigsResource(resource_type=4, resource_name="", configs=[change])
    # Connections go to the threads in turns.
    with Wire(kafka.bootstrap_servers) as first, Wire(kafka.bootstrap_servers) as second:
        asking = (first, second)[number]
        (answer,) = asking.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
        assert answer.error_code == 0
        wait_until(lambda: threads("network-processor-") == before)
    with pytest.raises(InvalidRequestError, match="halved or doubled"):
        put(admin, "num.network.threads", "3")


def test_the_connections_of_one_listener_can_be_changed(
    kafka: EmbeddedKafka, admin: KafkaAdminClient
) -> None:
    admin.describe_configs([OWN])  # by a connection to this broker, which is there from now on
    put(admin, "listener.name.plaintext.max.connections", "1", ALL)
    with Wire(kafka.bootstrap_servers) as waiting:
        waiting.send(MetadataRequest(topics=[]), 9)
        told = admin.describe_configs([ALL])[ALL]["listener.name.plaintext.max.connections"]
        assert (told.value, told.source) == ("1", ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG)
        own = admin.describe_configs([OWN])[OWN]["listener.name.plaintext.max.connections"]
        assert (own.value, own.is_read_only) == ("1", False)
        put(admin, "listener.name.plaintext.max.connections", "10")
        assert waiting.receive().cluster_id


def test_producers_are_forgotten_after_another_time() -> None:
    tp = TopicPartition("t", 0)
    with (
        EmbeddedKafka({"producer.id.expiration.check.interval.ms": 10}) as kafka,
        KafkaAdminClient(bootstrap_servers=kafka.bootstrap_servers) as admin,
        KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer,
    ):
        producer.send("t", b"v").result(30)
        assert admin.describe_producers([tp])[tp].active_producers
        put(admin, "producer.id.expiration.ms", "1", ALL)
        wait_until(lambda: not admin.describe_producers([tp])[tp].active_producers)


def subject(kafka: EmbeddedKafka) -> str:
    """The certificate that a new connection is shown."""
    host, _, port = kafka.bootstrap_servers.rpartition(":")
    return ssl.get_server_certificate((host, int(port)))


def test_the_certificate_of_a_listener_can_be_changed_and_its_password_is_not_told(tmp_path: Path) -> None:
    pair = Authority(tmp_path).issue("localhost", password="hunter2")
    keystore, password = (f"listener.name.ssl.ssl.{name}" for name in ("keystore.location", "key.password"))
    data = tmp_path / "data"
    with (
        EmbeddedKafka(security="SSL", data_dir=data) as kafka,
        KafkaAdminClient(kafka.client_settings()) as admin,
    ):
        before = subject(kafka)
        changes = [AlterConfigOp(keystore, str(pair)), AlterConfigOp(password, "wrong")]
        with pytest.raises(InvalidRequestError, match="does not open the private key"):
            admin.incremental_alter_configs({OWN: changes})
        assert subject(kafka) == before
        admin.incremental_alter_configs({OWN: [changes[0], AlterConfigOp(password, "hunter2")]})
        assert (after := subject(kafka)) != before
        assert after.strip() in pair.read_text()
        assert admin.list_topics() == {}, "connections that there are go on"
        told = admin.describe_configs([OWN], include_synonyms=True)[OWN]
        assert told[keystore].value == str(pair)
        assert (told[password].value, told[password].is_sensitive) == (None, True)
        assert {synonym.value for synonym in told[password].synonyms} == {None}
    with EmbeddedKafka(security="SSL", data_dir=data) as kafka:
        assert subject(kafka) == after, "after a restart as well"
    pair.unlink()
    with EmbeddedKafka(security="SSL", data_dir=data) as kafka:
        assert subject(kafka) != after, "the one of the start serves while the other cannot be read"


def test_certificates_are_set_for_one_listener_of_one_broker(admin: KafkaAdminClient) -> None:
    with pytest.raises(InvalidRequestError, match=r"listener\.name\.LISTENER\.ssl\.keystore\.location"):
        put(admin, "ssl.keystore.location", "/x")
    with pytest.raises(InvalidRequestError, match="broker id must be specified"):
        put(admin, "listener.name.plaintext.ssl.keystore.location", "/x", ALL)
    with pytest.raises(InvalidRequestError, match="Cannot update these configs dynamically"):
        put(admin, "listener.name.plaintext.ssl.client.auth", "required")


def test_the_cleaner_goes_on_with_its_new_settings(kafka: EmbeddedKafka, admin: KafkaAdminClient) -> None:
    put(admin, "log.cleaner.backoff.ms", "50")
    put(admin, "log.cleaner.min.cleanable.ratio", "0.01", ALL)
    with Wire(kafka.bootstrap_servers) as wire:
        create(wire, "t", cleanup_policy="compact", segment_bytes="200")
        for number in range(20):
            builder = MemoryRecordsBuilder()
            builder.append(1_700_000_000_000 + number, b"key", b"%d" % number)
            assert try_produce(wire, "t", builder.close()).error_code == 0
        wait_until(lambda: len(values(wire, "t")) < 5)
