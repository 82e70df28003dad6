"""Connections that fail at every step: what the calls of an application say of it, in words and as data."""

from __future__ import annotations

import contextlib
import pickle
import socket
from typing import Any

import pytest

from harness.network.certificates import Authority
from harness.network.forward_proxy import ForwardProxy, TlsFront
from harness.network.listener import Listener, SilentListener
from harness.network.ports import closed_port
from harness.network.scripted_broker import Reply, ScriptedBroker
from harness.waiting import wait_until
from kclient import KafkaConsumer, KafkaProducer
from kclient.admin import KafkaAdminClient
from kclient.common.topic_partition import TopicPartition
from kclient.errors import ConnectionFailure, KafkaError, KafkaTimeoutError, ProxyAuthenticationError
from kclient.protocol.api_keys import ApiKeys

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="hunter2";'
SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.jaas.config": JAAS}
QUICK = {
    "reconnect.backoff.ms": 10,
    "reconnect.backoff.max.ms": 20,
    "socket.connection.setup.timeout.ms": 100,
    "socket.connection.setup.timeout.max.ms": 100,
}


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


class RudeListener(Listener):
    """Closes every connection once it has read something."""

    def __init__(self) -> None:
        super().__init__("rude")

    def serve(self, sock: socket.socket) -> None:
        sock.recv(1 << 16)


def produce(settings: dict[str, Any]) -> None:
    with KafkaProducer(settings, max_block_ms=500) as producer:
        producer.send("t", b"x")


def consume(settings: dict[str, Any]) -> None:
    with KafkaConsumer(settings) as consumer:
        consumer.partitions_for("t", timeout_ms=500)


def position(settings: dict[str, Any]) -> None:
    with KafkaConsumer(settings) as consumer:
        consumer.assign([TopicPartition("t", 0)])
        consumer.position(TopicPartition("t", 0), timeout_ms=500)


def commit(settings: dict[str, Any]) -> None:
    with KafkaConsumer(settings, group_id="g") as consumer:
        consumer.assign([TopicPartition("t", 0)])
        consumer.committed([TopicPartition("t", 0)], timeout_ms=500)


def find_ends(settings: dict[str, Any]) -> None:
    with KafkaConsumer(settings) as consumer:
        consumer.end_offsets([TopicPartition("t", 0)], timeout_ms=500)


def ask(settings: dict[str, Any]) -> None:
    with KafkaAdminClient(settings) as admin:
        admin.list_topics(timeout_ms=500)


USES = {use.__name__: use for use in (produce, consume, position, commit, find_ends, ask)}


def failure(name: str, servers: str, **settings: Any) -> tuple[KafkaError, ConnectionFailure]:
    """The error of one of the calls, and what it says of the connection, which must be the same after pickling."""
    with pytest.raises(KafkaError) as caught:
        USES[name]({"bootstrap.servers": servers, **QUICK, **settings})
    error = caught.value
    assert "hunter2" not in str(error)
    assert error.connection is not None, str(error)
    copied = pickle.loads(pickle.dumps(error))
    assert (str(copied), copied.connection) == (str(error), error.connection)
    return error, error.connection


EVERY_CALL = pytest.mark.parametrize("call", USES)


@EVERY_CALL
def test_a_port_that_is_closed(call: str) -> None:
    port = closed_port()
    error, connection = failure(call, f"localhost:{port}")
    assert isinstance(error, KafkaTimeoutError)
    assert (connection.host, connection.port, connection.step) == ("localhost", port, "tcp")
    assert connection.address in {"127.0.0.1", "::1"}
    assert connection.attempts > 1
    assert 0 < connection.elapsed_ms < 10_000
    assert connection.setting == "bootstrap.servers"
    assert f"localhost:{port} ({connection.address}): tcp: Connection refused" in str(error)
    assert f"; {connection.attempts} attempts in {connection.elapsed_ms / 1000:.1f} s" in str(error)
    assert "; see bootstrap.servers" in str(error)


@EVERY_CALL
def test_a_name_that_resolves_no_more(call: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real, asked = socket.getaddrinfo, []

    def getaddrinfo(host: Any, *more: Any, **options: Any) -> Any:
        if host != "broker.example":
            return real(host, *more, **options)
        asked.append(host)
        if len(asked) > 1:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return real("127.0.0.1", *more, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    error, connection = failure(call, "broker.example:9092")
    assert (connection.step, connection.address, connection.setting) == ("dns", None, "bootstrap.servers")
    assert "broker.example:9092: dns: Name or service not known; " in str(error)


@EVERY_CALL
def test_a_listener_that_says_nothing(call: str) -> None:
    with SilentListener() as silent:
        error, connection = failure(call, silent.bootstrap, **SASL)
        assert (connection.step, connection.setting) == ("sasl", "socket.connection.setup.timeout.ms")
        assert f"{silent.bootstrap}: sasl: not set up in " in str(error)
        assert "(socket.connection.setup.timeout.ms)" in str(error)


@EVERY_CALL
def test_a_proxy_that_refuses(call: str) -> None:
    with ForwardProxy() as proxy:
        proxy.refusal = 5
        error, connection = failure(call, "broker.example:9092", **{"kclient.proxy.url": proxy.url("socks5")})
        assert (connection.host, connection.address) == ("broker.example", "127.0.0.1")
        assert (connection.step, connection.proxy) == ("proxy", proxy.url("socks5"))
        assert connection.setting == "kclient.proxy.url"
        assert (
            f"broker.example:9092 (through {proxy.url('socks5')} at 127.0.0.1): proxy: The proxy "
            f"{proxy.url('socks5')} did not connect to broker.example:9092: the connection was refused"
        ) in str(error)
        assert "see kclient.proxy.url" in str(error)


@EVERY_CALL
@pytest.mark.parametrize(
    ("how", "setting", "text"),
    [
        ("expired", "ssl.truststore.location", "certificate has expired"),
        ("another name", "ssl.endpoint.identification.algorithm", "not valid for '127.0.0.1'"),
        ("closes", "security.protocol", "closed by the peer in the TLS handshake"),
    ],
)
def test_tls_that_fails(call: str, how: str, setting: str, text: str, authority: Authority) -> None:
    tls = {"security.protocol": "SSL", "ssl.truststore.location": str(authority.file)}
    with contextlib.ExitStack() as stack:
        listener: Listener
        if how == "closes":
            listener = stack.enter_context(RudeListener())
        else:
            pair = authority.issue(
                "127.0.0.1" if how == "expired" else "other.example", expired=how == "expired"
            )
            listener = stack.enter_context(TlsFront(("127.0.0.1", 1), authority.server_context(pair)))
        error, connection = failure(call, listener.bootstrap, **tls)
        assert (connection.step, connection.setting) == ("tls", setting)
        assert f"{listener.bootstrap}: tls: " in str(error)
        assert text in str(error)
        # Certificates do not mend themselves; a listener may.
        assert isinstance(error, KafkaTimeoutError) is (how == "closes")


@EVERY_CALL
def test_sasl_that_is_hung_up_on(call: str) -> None:
    with RudeListener() as rude:
        error, connection = failure(call, rude.bootstrap, **SASL)
        assert (connection.step, connection.setting) == ("sasl", "security.protocol")
        assert f"{rude.bootstrap}: sasl: it was closed by the peer during SASL authentication" in str(error)


@EVERY_CALL
def test_versions_that_nobody_answers(call: str) -> None:
    with RudeListener() as rude:
        error, connection = failure(call, rude.bootstrap)
        assert (connection.step, connection.setting) == ("api_versions", "security.protocol")
        assert f"{rude.bootstrap}: api versions: closed by the peer; " in str(error)
        assert str(error).endswith("see security.protocol")


@EVERY_CALL
def test_a_listener_that_wants_to_know_who_the_client_is(call: str) -> None:
    # As Kafka's listeners with SASL: versions are told to everybody, and what comes next has to be SASL.
    with ScriptedBroker() as broker:
        broker.on(ApiKeys.METADATA, lambda header, message: Reply.CLOSE)
        error, connection = failure(call, broker.bootstrap)
        assert isinstance(error, KafkaTimeoutError)
        assert (connection.step, connection.setting) == ("request", "security.protocol")
        assert connection.attempts > 1
        assert "as listeners with SASL do to clients without it" in str(error)
        assert "; see security.protocol" in str(error)


def elsewhere(broker: ScriptedBroker, host: str = "no-such-broker.invalid", port: int = 9092) -> None:
    """Have the broker advertise another address."""
    answer = broker.metadata

    def metadata() -> Any:
        response = answer()
        response.brokers[0].host, response.brokers[0].port = host, port
        return response

    broker.metadata = metadata  # type: ignore[method-assign]


def check_advertised(error: KafkaError, connection: ConnectionFailure | None) -> None:
    assert connection is not None
    assert (connection.host, connection.step) == ("no-such-broker.invalid", "dns")
    assert connection.setting == "advertised.listeners"
    assert "; see advertised.listeners" in str(error)


@pytest.mark.parametrize("call", ["position", "find_ends"])
def test_an_advertised_name_that_does_not_resolve(call: str) -> None:
    with ScriptedBroker(topics={"t": 1}) as broker:
        elsewhere(broker)
        check_advertised(*failure(call, broker.bootstrap))


def error_of_a_record(broker: ScriptedBroker, **settings: Any) -> KafkaError:
    times = {"linger.ms": 0, "request.timeout.ms": 300, "delivery.timeout.ms": 600}
    times |= {"enable.idempotence": False}  # which asks for an id first
    with KafkaProducer({**times, **QUICK, **settings}, bootstrap_servers=broker.bootstrap) as producer:
        error = producer.send("t", b"x").exception(20)
    assert isinstance(error, KafkaTimeoutError)
    return error


def test_records_whose_leader_has_a_name_that_does_not_resolve() -> None:
    with ScriptedBroker(topics={"t": 1}) as broker:
        elsewhere(broker)
        error = error_of_a_record(broker)
        check_advertised(error, error.connection)


@pytest.mark.parametrize("port", [-1, 70_000])
def test_an_advertised_port_that_no_host_has(port: int, caplog: pytest.LogCaptureFixture) -> None:
    with ScriptedBroker(topics={"t": 1}) as broker, ForwardProxy() as proxy:
        elsewhere(broker, "127.0.0.1", port)
        ways: list[tuple[dict[str, str], str]] = [
            ({}, "tcp"),
            ({"kclient.proxy.url": proxy.url("socks5")}, "proxy"),
        ]
        for settings, step in ways:
            error = error_of_a_record(broker, **settings)
            assert error.connection is not None
            assert (error.connection.step, error.connection.port) == (step, port)
            assert f"{port} cannot be a port" in str(error)
    assert "unexpected error" not in caplog.text


def test_a_request_that_nobody_answers() -> None:
    with ScriptedBroker() as broker:
        broker.on(ApiKeys.LIST_GROUPS, lambda header, message: Reply.NOTHING)
        with (
            KafkaAdminClient(bootstrap_servers=broker.bootstrap, request_timeout_ms=200, retries=1) as admin,
            pytest.raises(KafkaError) as caught,
        ):
            admin.list_groups(timeout_ms=5000)
        connection = caught.value.connection
        assert connection is not None
        assert (connection.step, connection.setting) == ("request", "request.timeout.ms")
        assert (connection.host, connection.port) == broker.address


def test_an_error_of_authentication_ends_with_the_next_update() -> None:
    with (
        ForwardProxy(credentials=("me", "right")) as proxy,
        ScriptedBroker(topics=dict.fromkeys("tuv", 1)) as broker,
    ):
        settings = {"bootstrap.servers": broker.bootstrap, "kclient.proxy.url": proxy.url("http"), **QUICK}
        with KafkaProducer(settings, max_block_ms=5000, enable_idempotence=False) as producer:
            assert len(producer.partitions_for("t")) == 1
            proxy.credentials = ("me", "changed")
            proxy.drop_connections()
            with pytest.raises(ProxyAuthenticationError):
                producer.partitions_for("u")
            proxy.credentials = ("me", "right")
            wait_until(lambda: _answered(producer))
            assert len(producer.partitions_for("v")) == 1


def _answered(producer: KafkaProducer[bytes, bytes]) -> bool:
    try:
        return len(producer.partitions_for("u")) == 1
    except ProxyAuthenticationError:  # of the try before
        return False
