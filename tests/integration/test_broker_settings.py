"""Settings of a broker that runs: changed through the admin client, in force at once and after a restart."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.broker.requests import create, try_produce, values
from harness.broker.wire import Wire, batch
from harness.waiting import wait_until
from kclient.admin import AlterConfigOp, ConfigResource, ConfigResourceType, ConfigSource, KafkaAdminClient
from kclient.broker import EmbeddedKafka
from kclient.errors import Errors, InvalidRequestError
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
