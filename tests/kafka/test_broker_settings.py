"""Settings of brokers, changed at run time: answered as by a real Kafka, and Java's tool on the embedded broker."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.broker.wire import Wire
from harness.real_kafka.broker import RealKafka
from harness.real_kafka.node import missing, tool
from harness.requirements import skip_if
from kclient.broker import EmbeddedKafka
from kclient.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

SET, DELETE, APPEND, SUBTRACT = range(4)
BROKER = 4
CHANGES: list[tuple[str, int, str | None]] = [
    ("log.retention.ms", SET, "60000"),
    ("log.retention.ms", SET, "abc"),
    ("log.retention.ms", SET, None),
    ("log.retention.ms", DELETE, None),
    ("log.retention.ms", APPEND, "7"),
    ("log.retention.hours", SET, "5"),
    ("log.roll.ms", SET, "100000"),
    ("log.flush.interval.ms", SET, "100"),
    ("log.segment.bytes", SET, "2000000"),
    ("log.cleanup.policy", SET, "compact"),
    ("log.cleanup.policy", APPEND, "compact"),
    ("log.cleanup.policy", SUBTRACT, "compact"),
    ("log.preallocate", SET, "true"),
    ("compression.type", SET, "zstd"),
    ("message.max.bytes", SET, "5000"),
    ("message.max.bytes", SET, "-1"),
    ("max.connections", SET, "500"),
    ("max.connections.per.ip", SET, "100"),
    ("max.connections.per.ip.overrides", SET, "127.0.0.1:50"),
    ("max.connections.per.ip.overrides", SET, "127.0.0.1"),
    ("max.connections.per.ip.overrides", APPEND, "127.0.0.2:5"),
    ("max.connection.creation.rate", SET, "100"),
    ("log.cleaner.threads", SET, "2"),
    ("log.cleaner.backoff.ms", SET, "100"),
    ("log.cleaner.dedupe.buffer.size", SET, "1000"),
    ("num.io.threads", SET, "5"),
    ("num.network.threads", SET, "2"),
    ("num.network.threads", SET, "0"),
    ("num.recovery.threads.per.data.dir", SET, "4"),
    ("num.recovery.threads.per.data.dir", SET, "40"),
    ("producer.id.expiration.ms", SET, "1000"),
    ("producer.id.expiration.ms", SET, "0"),
    ("listener.name.plaintext.num.network.threads", SET, "2"),
    ("listener.name.plaintext.num.network.threads", SET, "50"),
    ("listener.name.plaintext.max.connections", SET, "50"),
    ("listener.name.plaintext.max.connections", SET, "0"),
    ("listener.name.plaintext.max.connections", SET, "x"),
    ("listener.name.plaintext.max.connections", DELETE, None),
    ("listener.name.plaintext.no.such.setting", DELETE, None),
    ("listener.name.plaintext.max.connection.creation.rate", SET, "50"),
    ("listener.name.plaintext.max.connection.creation.rate", SET, "0"),
    ("listener.name.plaintext.ssl.keystore.location", SET, "/nowhere"),
    ("ssl.keystore.location", SET, "/nowhere"),
    ("ssl.truststore.password", SET, "secret"),
    ("connections.max.reauth.ms", SET, "5"),
    ("advertised.listeners", SET, "PLAINTEXT://127.0.0.1:1"),
    ("node.id", SET, "2"),
    ("node.id", DELETE, None),
    ("log.dirs", SET, "/x"),
    ("num.partitions", SET, "3"),
    ("auto.create.topics.enable", SET, "false"),
    ("quota.window.num", SET, "5"),
    ("fetch.max.bytes", SET, "2000"),
    ("no.such.setting", DELETE, None),
]
OF_ONE_BROKER: list[tuple[str, int, str | None]] = [
    ("max.connections", SET, "0"),
    ("max.connection.creation.rate", SET, "0"),
    ("num.io.threads", SET, "50"),
    ("log.cleaner.threads", SET, "5"),
]


@pytest.fixture(scope="module")
def embedded() -> Iterator[EmbeddedKafka]:
    skip_if(missing())
    with EmbeddedKafka() as broker:
        yield broker


def code(wire: Wire, name: str, *changes: tuple[str, int, str | None]) -> int:
    """Return the error of a change that is only checked."""
    configs = [AlterableConfig(name=key, config_operation=kind, value=value) for key, kind, value in changes]
    resource = AlterConfigsResource(resource_type=BROKER, resource_name=name, configs=configs)
    request = IncrementalAlterConfigsRequest(resources=[resource], validate_only=True)
    found: int = wire.ask(request, 1).responses[0].error_code
    return found


def test_changes_are_taken_and_refused_alike(kafka: RealKafka, embedded: EmbeddedKafka) -> None:
    with Wire(kafka.bootstrap_servers) as real, Wire(embedded.bootstrap_servers) as ours:
        for name in ("1", ""):
            for change in CHANGES if name == "" else [*CHANGES, *OF_ONE_BROKER]:
                assert code(ours, name, change) == code(real, name, change), (name, change)
        good, bad = CHANGES[0], ("node.id", SET, "2")
        for name, changes in (("1", [good, bad]), ("1", [good, good]), ("2", [good]), ("x", [good])):
            assert code(ours, name, *changes) == code(real, name, *changes) == 42


def configs(servers: str, *arguments: str) -> str:
    return tool("kafka.admin.ConfigCommand", "--bootstrap-server", servers, *arguments)


def test_javas_tool_changes_and_describes_settings_of_the_embedded_broker(embedded: EmbeddedKafka) -> None:
    servers = embedded.bootstrap_servers
    own, common = (
        ("--entity-type", "brokers", "--entity-name", "1"),
        ("--entity-type", "brokers", "--entity-default"),
    )
    configs(servers, "--alter", *common, "--add-config", "log.retention.ms=60000")
    configs(servers, "--alter", *own, "--add-config", "log.retention.ms=50000,message.max.bytes=7000")
    assert "log.retention.ms=60000" in configs(servers, "--describe", *common)
    told = configs(servers, "--describe", *own)
    assert "log.retention.ms=50000" in told
    assert "DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=60000" in told
    limit = "listener.name.plaintext.max.connections"
    configs(servers, "--alter", *own, "--add-config", f"{limit}=100")
    assert f"{limit}=100" in configs(servers, "--describe", *own)
    configs(servers, "--alter", *own, "--delete-config", f"log.retention.ms,message.max.bytes,{limit}")
    assert limit not in configs(servers, "--describe", *own)
    assert "50000" not in configs(servers, "--describe", *own)
