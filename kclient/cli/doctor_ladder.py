"""Ladder: the steps of a client's connection to a broker, taken one after the other with the client's own parts."""

from __future__ import annotations

import contextlib
import datetime as dt
import itertools
from collections.abc import Iterator
from time import perf_counter
from typing import Any, Final

import attrs

from kclient.admin.config import AdminConfig
from kclient.cli.broker_release import release_of
from kclient.cli.doctor_certificates import NotedHandshakes, describe, look_at_refused
from kclient.cli.doctor_report import AddressReport, BrokerReport, Step
from kclient.client.api_versions import (
    ApiVersionsNegotiation,
    NodeApiVersions,
    parse_api_versions_response,
)
from kclient.client.assembly import channel_builder_of
from kclient.client.bootstrap import resolve_host
from kclient.client.connection_reports import setting_to_look_at
from kclient.common.node import Node
from kclient.errors import (
    ConnectionFailure,
    ConnectionStep,
    DisconnectError,
    Errors,
    KafkaError,
    SchemaError,
    SslAuthenticationError,
)
from kclient.network.channel import KafkaChannel
from kclient.network.channel_builder import ChannelBuilder, TlsContextSource
from kclient.network.client_channel_builder import ClientChannelBuilder
from kclient.network.proxy import ProxyAddress
from kclient.network.sasl_authenticator import SaslClientAuthenticator
from kclient.network.selector import Selector
from kclient.network.send import NetworkSend
from kclient.network.tls_transport import TlsTransport
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.header import parse_response, request_buffers
from kclient.protocol.messages.api_versions import ApiVersionsResponse
from kclient.protocol.messages.metadata import MetadataRequest
from kclient.protocol.messages.sasl_handshake import SaslHandshakeRequest
from kclient.protocol.schema import Message
from kclient.security.sasl import SaslCredentials
from kclient.security.tls import TlsContexts

_LOOK_MS: Final = 1  # between two looks at how far a connection is, but at first
_CLOSELY_S: Final = 0.05  # no time at all: steps to a broker nearby take less than a millisecond
_REFUSAL_MS: Final = 100
_NO_MECHANISM: Final = "?"

_ids = itertools.count()


@attrs.define(eq=False, repr=False)
class _Connection:
    """One connection, and how far it has come. Raises KafkaError."""

    _selector: Selector
    _config: AdminConfig
    _id: str = attrs.field(factory=lambda: str(next(_ids)), init=False)
    _number: int = attrs.field(default=0, init=False)
    channel: KafkaChannel | None = attrs.field(default=None, init=False)

    def connect(self, broker: Node, address: str, port: int) -> Iterator[ConnectionStep]:
        """Set it up; yields the steps that it is at, again and again, until it is ready."""
        yield "tcp"
        try:
            self._selector.connect(self._id, address, port, host=broker.host, host_port=broker.port)
        except OSError as error:
            raise DisconnectError(error.strerror or str(error)) from error
        channel = self.channel = next(each for each in self._selector.channels() if each.id == self._id)
        setting = "socket.connection.setup.timeout.ms"
        limit_ms = self._config.socket_connection_setup_timeout_ms
        began = perf_counter()
        while True:
            self._selector.poll(0 if perf_counter() - began < _CLOSELY_S else _LOOK_MS)
            self._raise_if_ended()
            yield channel.step
            if self._id in self._selector.connected:
                break
            if _since(began) > limit_ms:
                raise DisconnectError(
                    f"not set up in {limit_ms} ms ({setting})",
                    connection=ConnectionFailure(step=channel.step, setting=setting),
                )
        if isinstance(channel.transport, TlsTransport):
            # With TLS 1.3 a client hears only now that its certificate is refused, or missing. What it sends meanwhile
            # to a peer that has closed the connection may keep it from hearing that at all.
            self._selector.poll(_REFUSAL_MS)
            self._raise_if_ended()

    def ask(self, message: Message, version: int) -> memoryview:
        """Return the frame that answers a request."""
        self._number += 1
        buffers = request_buffers(message, version, self._number, self._config.client_id)
        self._selector.send(self._id, NetworkSend(buffers))
        limit_ms = self._config.request_timeout_ms
        ends = perf_counter() + limit_ms / 1000
        while (left_ms := int((ends - perf_counter()) * 1000)) > 0:
            self._selector.poll(left_ms)
            receive = self._selector.completed_receives.get(self._id)
            if receive is not None:
                return receive.payload
            self._raise_if_ended()
        setting = "request.timeout.ms"
        raise DisconnectError(
            f"not answered in {limit_ms} ms ({setting})", connection=ConnectionFailure(setting=setting)
        )

    def close(self) -> None:
        self._selector.close_channel(self._id)

    def _raise_if_ended(self) -> None:
        error = self._selector.disconnected.get(self._id)
        if error is not None:
            raise error


class Ladder:
    """Climbs to one broker after the other. Used by one thread. Raises ConfigError."""

    def __init__(
        self, config: AdminConfig, credentials: SaslCredentials | None, proxy: ProxyAddress | None
    ) -> None:
        self._config = config
        self._proxy = proxy
        self._builder = channel_builder_of(config, credentials, proxy)
        self._handshakes: NotedHandshakes | None = None
        if isinstance(self._builder, ClientChannelBuilder) and config.security_protocol.endswith("SSL"):
            self._handshakes = NotedHandshakes(TlsContexts(config, config.log_context()))
            self._builder = attrs.evolve(self._builder, tls=self._handshakes)
        self._selector = self._selector_of(self._builder)
        self.advertised: dict[int, Node] = {}
        """The brokers that metadata answers have named."""

    def close(self) -> None:
        """Close what is left."""
        self._selector.close()

    def climb(self, broker: BrokerReport) -> None:
        """Try every address of a broker, as far as it goes, and write down what is found."""
        began = perf_counter()
        node = Node(-1 if broker.node_id is None else broker.node_id, broker.host, broker.port)
        try:
            addresses = resolve_host(broker.host if self._proxy is None else self._proxy.host)
        except OSError as error:
            text = str(error.strerror or error)
            broker.dns = Step(
                "dns", _since(began), error=text, setting=self._setting(node, DisconnectError(), "dns")
            )
            return
        broker.dns = Step("dns", _since(began), {"addresses": addresses})
        for address in addresses:
            report = AddressReport(address)
            broker.addresses.append(report)
            self._walk(report, node)

    def _walk(self, report: AddressReport, node: Node) -> None:
        with contextlib.closing(_Connection(self._selector, self._config)) as connection:
            if not self._connect(report, node, connection):
                return
            versions = self._step(report, node, "api_versions", lambda: _ask_versions(connection))
            if versions is None:
                return
            report.steps[-1].found = {"speaks_like": f"Kafka {release_of(versions)}"}
            self._step(report, node, "metadata", lambda: self._ask_metadata(connection, versions))
        self._see_who_is_wanted(report, node)

    def _connect(self, report: AddressReport, node: Node, connection: _Connection) -> bool:
        began = perf_counter()
        at: ConnectionStep = "tcp"
        error: KafkaError | None = None
        try:
            for step in connection.connect(node, report.address, self._port(node)):
                if step != at:
                    self._passed(report, connection, at, step, _since(began))
                    began, at = perf_counter(), step
        except KafkaError as raised:
            error = raised
        if error is None:
            return True
        step = at if error.connection is None else error.connection.step
        if step != at:
            self._passed(report, connection, at, step, _since(began))
            began = perf_counter()
        self._failed(report, node, step, error, _since(began))
        return False

    def _passed(
        self,
        report: AddressReport,
        connection: _Connection,
        first: ConnectionStep,
        until: ConnectionStep,
        elapsed_ms: float,
    ) -> None:
        """Write down the steps from `first` on that are over; several at once share no time of their own."""
        order = self._order()
        for name in order[order.index(first) : order.index(until)]:
            report.steps.append(Step(name, elapsed_ms, self._found(name, connection, report.address)))
            elapsed_ms = 0.0

    def _port(self, node: Node) -> int:
        return node.port if self._proxy is None else self._proxy.port

    def _order(self) -> list[str]:
        protocol = self._config.security_protocol
        steps = {
            "tcp": True,
            "proxy": self._proxy is not None,
            "tls": protocol.endswith("SSL"),
            "sasl": protocol.startswith("SASL"),
            "request": True,
        }
        return [name for name, there in steps.items() if there]

    def _found(self, name: str, connection: _Connection, address: str) -> dict[str, Any]:
        if name == "tcp":
            return {"address": address}
        if name == "proxy":
            return {"proxy": str(self._proxy)}
        if name == "tls" and self._handshakes is not None:
            done = self._handshakes.done[-1]
            certificate = describe(done.decoded, dt.datetime.now(dt.UTC))
            checked = bool(self._config.ssl_endpoint_identification_algorithm)
            certificate["has_the_name"] = True if checked else "not checked"
            return {"protocol": done.protocol, "cipher": done.cipher, "certificate": certificate}
        authenticator = None if connection.channel is None else connection.channel.authenticator
        if name == "sasl" and isinstance(authenticator, SaslClientAuthenticator):
            found: dict[str, Any] = {"mechanism": self._config.sasl_mechanism}
            found["offered"] = sorted(authenticator.offered)
            if authenticator.session_lifetime_ms:
                found["session_lifetime_ms"] = authenticator.session_lifetime_ms
            return found
        return {}

    def _step(self, report: AddressReport, node: Node, name: str, do: Any) -> Any:
        """Return what `do` gives; None if it fails, which is written down as the other outcome is."""
        began = perf_counter()
        try:
            done = do()
        except KafkaError as error:
            # With TLS 1.3 a refusal may come after the handshake.
            is_late = isinstance(error, SslAuthenticationError)
            self._failed(report, node, "tls" if is_late else name, error, _since(began))
            return None
        step = Step(name, _since(began))
        if isinstance(done, dict):
            step.found = done
        report.steps.append(step)
        return done

    def _failed(
        self, report: AddressReport, node: Node, name: str, error: KafkaError, elapsed_ms: float
    ) -> None:
        step = next((each for each in report.steps if each.name == name), None)
        if step is None:
            step = Step(name, elapsed_ms)
            report.steps.append(step)
        step.error = str(error).rstrip(".")
        known: ConnectionStep = "request" if name == "metadata" else name  # type: ignore[assignment]
        step.setting = self._setting(node, error, known)
        if isinstance(error, SslAuthenticationError) and "certificate" not in step.found:
            certificate = look_at_refused(
                self._config, lambda contexts: self._shake_hands(contexts, node, report.address)
            )
            if certificate is not None:
                step.found["certificate"] = certificate

    def _setting(self, node: Node, error: KafkaError, step: ConnectionStep) -> str | None:
        if error.connection is not None and error.connection.setting is not None:
            return error.connection.setting
        return setting_to_look_at(node, error, step, self._proxy is not None)

    def _ask_metadata(self, connection: _Connection, versions: ApiVersionsResponse) -> dict[str, Any]:
        version = NodeApiVersions.from_response(versions).usable_version(ApiKeys.METADATA)
        frame = connection.ask(MetadataRequest(topics=[], allow_auto_topic_creation=False), version)
        answer: Any = parse_response(ApiKeys.METADATA, version, frame)[1]
        error = Errors.for_code(answer.error_code)
        if error is not None:
            raise error
        if not answer.brokers:
            raise SchemaError("the answer names no broker")
        nodes = {each.node_id: Node(each.node_id, each.host, each.port) for each in answer.brokers}
        self.advertised.update(nodes)
        return {
            "cluster_id": answer.cluster_id,
            "controller_id": answer.controller_id,
            "brokers": [str(nodes[node_id]) for node_id in sorted(nodes)],
        }

    def _see_who_is_wanted(self, report: AddressReport, node: Node) -> None:
        """See whether a listener that failed the first request wants SASL: then it says with which mechanisms."""
        last = report.steps[-1]
        if last.ok or last.name != "metadata" or self._config.security_protocol.startswith("SASL"):
            return
        with contextlib.closing(_Connection(self._selector, self._config)) as connection:
            try:
                for _ in connection.connect(node, report.address, self._port(node)):
                    pass
                frame = connection.ask(SaslHandshakeRequest(mechanism=_NO_MECHANISM), 1)
                answer: Any = parse_response(ApiKeys.SASL_HANDSHAKE, 1, frame)[1]
            except KafkaError:
                return
        if answer.error_code == Errors.UNSUPPORTED_SASL_MECHANISM:
            last.error = f"{last.error}: the listener wants SASL"
            last.setting = "security.protocol"
            last.found["offered"] = sorted(answer.mechanisms)

    def _shake_hands(self, contexts: TlsContextSource, node: Node, address: str) -> None:
        """Make a connection that ends with its handshake. Raises KafkaError."""
        assert isinstance(self._builder, ClientChannelBuilder)
        selector = self._selector_of(attrs.evolve(self._builder, tls=contexts, sasl=None))
        try:
            for _ in _Connection(selector, self._config).connect(node, address, self._port(node)):
                pass
        finally:
            selector.close()

    def _selector_of(self, builder: ChannelBuilder) -> Selector:
        return Selector(
            max_receive_bytes=self._config.kclient_receive_max_bytes,
            connections_max_idle_ms=-1,
            channel_builder=builder,
            log_context=self._config.log_context(),
        )


def _ask_versions(connection: _Connection) -> ApiVersionsResponse:
    negotiation = ApiVersionsNegotiation()
    while True:
        message, version = negotiation.request(), negotiation.version
        response = parse_api_versions_response(version, connection.ask(message, version))
        if response.error_code != Errors.UNSUPPORTED_VERSION or not negotiation.unsupported(response):
            break
    error = Errors.for_code(response.error_code)
    if error is not None:
        raise error
    return response


def _since(began: float) -> float:
    return (perf_counter() - began) * 1000
