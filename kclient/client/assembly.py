"""Builds the NetworkClient of a producer, consumer or admin client from its settings."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from kclient.client.bootstrap import (
    expand_servers,
    resolve_host,
    validate_proxy_resolvable,
    validate_resolvable,
)
from kclient.client.connection_reports import ConnectionReports
from kclient.client.connection_states import ConnectionStates
from kclient.client.metadata import Metadata
from kclient.client.metadata_updater import MetadataUpdater, RebootstrapPolicy
from kclient.client.network_client import NetworkClient
from kclient.client.network_metrics import NetworkMetrics
from kclient.client.node_connections import NodeConnections
from kclient.client.request_pipeline import RequestPipeline
from kclient.client.requests import RequestFactory
from kclient.client.sessions import Sessions
from kclient.client.telemetry.client_telemetry import ClientTelemetry
from kclient.client.telemetry.telemetry_sender import TelemetrySender
from kclient.config.client_configs import ClientConfig
from kclient.network.channel_builder import ChannelBuilder, PlaintextChannelBuilder
from kclient.network.selector import Selector
from kclient.utils.time import SYSTEM_TIME, Time

if TYPE_CHECKING:
    from kclient.network.proxy import ProxyAddress
    from kclient.security.sasl import SaslCredentials


def build_network_client(
    config: ClientConfig,
    *,
    metadata: Metadata,
    max_in_flight: int,
    metrics: NetworkMetrics,
    telemetry: ClientTelemetry | None = None,
    channel_builder: ChannelBuilder | None = None,
    time: Time = SYSTEM_TIME,
) -> NetworkClient:
    """A NetworkClient for `config`; `metadata` begins with the bootstrap servers and belongs to the client.

    Blocks while names are resolved. Raises ConfigError for a bad bootstrap.servers or kclient.proxy.url,
    BootstrapError if no name resolves of those that are resolved here, and what an embedded broker raises that does not
    start.
    """

    log_context = config.log_context()
    proxy = proxy_of(config)

    def addresses() -> list[tuple[str, int]]:
        found = expand_servers(config.bootstrap_servers)
        if proxy is None:
            found = validate_resolvable(found, config.client_dns_lookup, log_context)
        else:
            validate_proxy_resolvable(proxy)
        return [(address.host, address.port) for address in found]

    def resolve(host: str) -> Sequence[str]:
        return resolve_host(host if proxy is None else proxy.host)

    metadata.bootstrap(addresses())
    updater = MetadataUpdater(
        metadata,
        request_timeout_ms=config.request_timeout_ms,
        reconnect_backoff_ms=config.reconnect_backoff_ms,
        rebootstrap=RebootstrapPolicy(
            config.metadata_recovery_strategy.lower() == "rebootstrap",
            config.metadata_recovery_rebootstrap_trigger_ms,
            addresses,
            config.metadata_cluster_check_enable,
        ),
        log_context=log_context,
    )
    states = ConnectionStates(
        reconnect_backoff_ms=config.reconnect_backoff_ms,
        reconnect_backoff_max_ms=config.reconnect_backoff_max_ms,
        setup_timeout_ms=config.socket_connection_setup_timeout_ms,
        setup_timeout_max_ms=config.socket_connection_setup_timeout_max_ms,
        resolve=resolve,
    )
    sasl = None
    if channel_builder is None:
        sasl = credentials_of(config)
        channel_builder = channel_builder_of(config, sasl, proxy)
    selector = Selector(
        max_receive_bytes=config.kclient_receive_max_bytes,
        connections_max_idle_ms=config.connections_max_idle_ms,
        channel_builder=channel_builder,
        send_buffer_bytes=config.send_buffer_bytes,
        receive_buffer_bytes=config.receive_buffer_bytes,
        time=time,
        log_context=log_context,
    )
    pipeline = RequestPipeline(
        selector,
        states,
        metrics,
        max_in_flight=max_in_flight,
        client_id=config.client_id,
        log_context=log_context,
    )
    new_request = RequestFactory(config.request_timeout_ms)
    sessions = Sessions(selector, states, pipeline.in_flight, config.request_timeout_ms)
    connections = NodeConnections(
        selector,
        states,
        pipeline,
        sessions,
        new_request,
        updater,
        ConnectionReports(
            log_context, config.security_protocol, lambda: not metadata.is_bootstrapping, proxy
        ),
        metrics,
        time,
        log_context,
        proxy,
    )
    return NetworkClient(
        selector,
        updater,
        states,
        pipeline,
        connections,
        new_request,
        metrics,
        time,
        log_context,
        sasl,
        TelemetrySender(telemetry, time, log_context)
        if telemetry is not None and telemetry.enabled
        else None,
    )


def credentials_of(config: ClientConfig) -> SaslCredentials | None:
    """Return who the client is, if SASL is to tell that. Raises ConfigError, and may block for a token."""
    if not config.security_protocol.startswith("SASL"):
        return None
    # Here and below: most processes have no use for it.
    from kclient.security.sasl_credentials import sasl_credentials

    return sasl_credentials(config, config.log_context())


def proxy_of(config: ClientConfig) -> ProxyAddress | None:
    """Return the proxy that leads to the brokers, if there is one. Raises ConfigError."""
    if config.kclient_proxy_url is None:
        return None
    from kclient.network.proxy import parse_proxy

    return parse_proxy(config.kclient_proxy_url)


def channel_builder_of(
    config: ClientConfig, sasl: SaslCredentials | None, proxy: ProxyAddress | None
) -> ChannelBuilder:
    """Return what makes the channels of a client with these settings. Raises ConfigError."""
    protocol = config.security_protocol
    if protocol == "PLAINTEXT" and proxy is None:
        return PlaintextChannelBuilder()
    from kclient.network.client_channel_builder import ClientChannelBuilder

    tls = None
    if protocol.endswith("SSL"):
        from kclient.security.tls import TlsContexts

        tls = TlsContexts(config, config.log_context())
    tunnel = None
    if proxy is not None:
        from kclient.network.proxy import ProxyTunnel

        tunnel = partial(ProxyTunnel, proxy)
    return ClientChannelBuilder(
        tls=tls,
        sasl=sasl,
        tunnel=tunnel,
        client_id=config.client_id,
    )
