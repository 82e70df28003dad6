"""A NetworkClient put together from settings: its first brokers, its channels, and what is refused."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest

from harness.leaks import open_descriptors
from harness.network.certificates import Authority
from harness.network.client_parts import network_metrics
from kclient.admin.config import AdminConfig
from kclient.client.assembly import build_network_client
from kclient.client.metadata import Metadata
from kclient.client.metadata_schedule import MetadataSchedule
from kclient.client.network_client import NetworkClient
from kclient.errors import BootstrapError, ConfigError, IllegalStateError
from kclient.network.channel_builder import PlaintextChannelBuilder
from kclient.network.client_channel_builder import ClientChannelBuilder
from kclient.network.tls_transport import TlsTransport
from kclient.network.transport import PlaintextTransport
from kclient.utils.backoff import ExponentialBackoff

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="p";'
PLAIN = {"sasl_mechanism": "PLAIN", "sasl_jaas_config": JAAS}


@attrs.define
class Built:
    client: NetworkClient
    metadata: Metadata

    @property
    def addresses(self) -> list[tuple[str, int]]:
        """The brokers that are known."""
        return [(node.host, node.port) for node in self.metadata.fetch().nodes]

    def rebootstrap(self) -> Any:
        return self.client._updater._rebootstrap


@pytest.fixture
def build(request: pytest.FixtureRequest) -> Any:
    def make(*servers: str, max_in_flight: int = 5, channel_builder: Any = None, **settings: Any) -> Built:
        metadata = Metadata(MetadataSchedule(ExponentialBackoff(5, 50), 300_000))
        config = AdminConfig.parse(
            None, {"bootstrap_servers": list(servers) or ["127.0.0.1:9092"], **settings}
        )
        client = build_network_client(
            config,
            metadata=metadata,
            max_in_flight=max_in_flight,
            metrics=network_metrics(),
            channel_builder=channel_builder,
        )
        request.addfinalizer(client.close)
        return Built(client, metadata)

    return make


def test_the_metadata_begins_with_the_servers_in_their_order(build: Any) -> None:
    built = build("127.0.0.2:9093", "[::1]:9092", "PLAINTEXT://127.0.0.1:9094")
    assert built.addresses == [("127.0.0.2", 9093), ("::1", 9092), ("127.0.0.1", 9094)]
    assert built.metadata.is_bootstrapping
    assert built.metadata.update_requested


def test_canonical_names_are_asked_for_again_when_the_client_starts_again(
    build: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["old.example", "new.example"]
    monkeypatch.setattr(socket, "getfqdn", lambda address: names.pop(0))
    built = build("127.0.0.1:9092", client_dns_lookup="resolve_canonical_bootstrap_servers_only")
    assert built.addresses == [("old.example", 9092)]
    assert built.rebootstrap().addresses() == [("new.example", 9092)]


@pytest.mark.parametrize(
    ("strategy", "enabled"), [("REBOOTSTRAP", True), ("rebootstrap", True), ("none", False)]
)
def test_a_client_starts_again_from_its_servers_only_where_that_is_its_strategy(
    build: Any, strategy: str, enabled: bool
) -> None:
    policy = build(
        metadata_recovery_strategy=strategy, metadata_recovery_rebootstrap_trigger_ms=7
    ).rebootstrap()
    assert (policy.enabled, policy.trigger_ms) == (enabled, 7)


@pytest.mark.parametrize(
    ("protocol", "transport", "authenticates"),
    [
        ("PLAINTEXT", PlaintextTransport, False),
        ("SSL", TlsTransport, False),
        ("ssl", TlsTransport, False),
        ("SASL_PLAINTEXT", PlaintextTransport, True),
        ("SASL_SSL", TlsTransport, True),
    ],
)
def test_channels_are_encrypted_and_authenticated_as_the_protocol_says(
    build: Any, tmp_path: Path, protocol: str, transport: type[Any], authenticates: bool
) -> None:
    settings: dict[str, Any] = {"security_protocol": protocol}
    if transport is TlsTransport:
        settings["ssl_truststore_location"] = str(Authority(tmp_path).file)
        settings["ssl_truststore_type"] = "PEM"
    if authenticates:
        settings |= PLAIN
    builder = build(client_id="me", **settings).client._selector._builder
    near, far = socket.socketpair()
    with near, far:
        channel = builder.build("1", near, 100, "broker.example")
        assert type(channel.transport) is transport
        assert (channel._authenticator is not None) is authenticates
        if authenticates:
            assert channel._authenticator._client_id == "me"


def test_a_builder_of_the_callers_own_is_used_whatever_the_protocol(build: Any) -> None:
    own = PlaintextChannelBuilder()
    assert build(channel_builder=own, security_protocol="SASL_SSL").client._selector._builder is own


def test_credentials_that_no_protocol_asks_for_are_not_looked_at(build: Any) -> None:
    built = build(security_protocol="PLAINTEXT", sasl_mechanism="GSSAPI", ssl_truststore_location="/nowhere")
    assert not isinstance(built.client._selector._builder, ClientChannelBuilder)


def test_another_password_is_that_of_the_next_connection(build: Any) -> None:
    client = build(security_protocol="SASL_PLAINTEXT", **PLAIN).client
    client.update_credentials("bob", "other")
    assert client._selector._builder._sasl.new_mechanism("broker").first() == b"\0bob\0other"


def test_a_client_without_sasl_imports_nothing_that_only_some_mechanisms_need() -> None:
    program = """
import sys
before = set(sys.modules)
from kclient import KafkaProducer
KafkaProducer(bootstrap_servers="127.0.0.1:1").close(0)
print(*({"ctypes", "http", "urllib.request", "cryptography", "jwt", "botocore"} & (set(sys.modules) - before)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_a_client_that_does_not_authenticate_has_no_password_to_replace(build: Any) -> None:
    with pytest.raises(IllegalStateError, match=r"security\.protocol"):
        build().client.update_credentials("bob", "other")


@pytest.mark.parametrize(
    ("servers", "settings", "error"),
    [
        (["127.0.0.1"], {}, ConfigError),
        (["no-such-host.invalid:9092"], {}, BootstrapError),
        (["127.0.0.1:9092"], {"security_protocol": "SASL_PLAINTEXT"}, ConfigError),
        (
            ["127.0.0.1:9092"],
            {"security_protocol": "SSL", "ssl_truststore_location": "/nowhere"},
            ConfigError,
        ),
    ],
    ids=["no port", "no such host", "no credentials", "no trust store"],
)
def test_what_is_refused_leaves_no_descriptor_behind(
    build: Any, servers: list[str], settings: dict[str, Any], error: type[Exception]
) -> None:
    before = open_descriptors()
    with pytest.raises(error):
        build(*servers, **settings)
    assert open_descriptors() == before


def test_requests_carry_the_time_they_may_take(build: Any) -> None:
    built = build(request_timeout_ms=1234, max_in_flight=2)
    assert built.client.new_request(1, object(), api_key=object()).timeout_ms == 1234
