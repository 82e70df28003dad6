"""Embedded brokers that ask their clients who they are: clients of every kind, those that are refused, and renewal."""

from __future__ import annotations

import itertools
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from harness.broker.servers import read_frame
from harness.waiting import wait_until
from kclient import KafkaConsumer, KafkaProducer
from kclient.admin import (
    KafkaAdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kclient.broker.apis import metadata
from kclient.broker.apis.registry import ServedApi
from kclient.broker.embedded import EmbeddedKafka
from kclient.errors import (
    ConfigError,
    Errors,
    KafkaError,
    SaslAuthenticationError,
    SslAuthenticationError,
    UnsupportedSaslMechanismError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.header import parse_response, request_buffers
from kclient.protocol.messages.api_versions import ApiVersionsRequest
from kclient.protocol.messages.metadata import MetadataRequest
from kclient.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kclient.protocol.messages.sasl_handshake import SaslHandshakeRequest
from kclient.protocol.schema import Message

USERS = {"alice": 'se"cr\\et', "bob": "other"}
LONG_S = 30.0


@pytest.fixture(params=["SSL", "SASL_PLAINTEXT", "SASL_SSL"])
def kafka(request: pytest.FixtureRequest) -> Iterator[EmbeddedKafka]:
    protocol = request.param
    users = USERS if protocol.startswith("SASL") else None
    with EmbeddedKafka(security=protocol, users=users) as broker:
        yield broker


@pytest.fixture
def passwords() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(security="SASL_PLAINTEXT", users=USERS, connections_max_reauth_ms=0) as broker:
        yield broker


_sockets: list[socket.socket] = []


@pytest.fixture(autouse=True)
def closed_sockets() -> Iterator[None]:
    """Close behind a test what it leaves open."""
    yield
    while _sockets:
        _sockets.pop().close()


class Raw:
    """A client that says what the test wants, in frames."""

    def __init__(self, kafka: EmbeddedKafka) -> None:
        host, _, port = kafka.bootstrap_servers.rpartition(":")
        self.sock = socket.create_connection((host, int(port)), 10)
        _sockets.append(self.sock)
        self.lifetime_ms = 0
        self._correlation_id = 0

    def ask(self, message: Message, version: int) -> Any:
        """Send a request and return its answer."""
        assert message.API_KEY is not None
        self._correlation_id += 1
        try:
            for piece in request_buffers(message, version, self._correlation_id, "raw"):
                self.sock.sendall(piece)
        except ConnectionError:
            raise EOFError from None
        found, answer = parse_response(message.API_KEY, version, memoryview(self.receive()))
        assert found == self._correlation_id
        return answer

    def send(self, body: bytes) -> None:
        self.sock.sendall(len(body).to_bytes(4, "big") + body)

    def receive(self) -> bytes:
        try:
            return read_frame(self.sock)
        except ConnectionError:
            raise EOFError from None

    def log_in(self, user: str, password: str) -> Any:
        """Log in with PLAIN, for the first time or once more."""
        assert self.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == 0
        answer = self.ask(SaslAuthenticateRequest(auth_bytes=f"\0{user}\0{password}".encode()), 2)
        self.lifetime_ms = answer.session_lifetime_ms
        return answer


@contextmanager
def principals_seen() -> Iterator[set[str]]:
    """Principals that ask for metadata, as the handler knows them."""
    seen: set[str] = set()
    real = metadata.metadata

    def noting(call: Any, request: Any) -> Any:
        seen.add(str(call.principal))
        return real(call, request)

    usual = ServedApi.handler.fget  # type: ignore[attr-defined]  # a property of the class
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            ServedApi,
            "handler",
            property(lambda api: noting if api.key is ApiKeys.METADATA else usual(api)),
        )
        yield seen


def asked(settings: dict[str, Any]) -> set[str]:
    """The topics that a client with these settings is shown."""
    with KafkaAdminClient({**settings, "request.timeout.ms": 5000, "default.api.timeout.ms": 8000}) as admin:
        return set(admin.list_topics())


def test_kclient_writes_and_reads(kafka: EmbeddedKafka) -> None:
    settings = kafka.client_settings()
    with KafkaProducer(settings) as producer:
        for number in range(500):
            producer.send("t", b"v%d" % number)
    with KafkaConsumer({**settings, "group.id": "g", "auto.offset.reset": "earliest"}) as consumer:
        consumer.subscribe(["t"])
        values = [record.value for record in itertools.islice(consumer, 500)]
    assert values == [b"v%d" % number for number in range(500)]


def test_confluent_kafka_writes_and_reads(kafka: EmbeddedKafka) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    given = kafka.client_settings()
    settings: dict[str, Any] = {"bootstrap.servers": given["bootstrap.servers"]}
    settings["security.protocol"] = given["security.protocol"]
    if "ssl.truststore.location" in given:
        settings["ssl.ca.location"] = given["ssl.truststore.location"]
    if "sasl.mechanism" in given:
        settings |= {"sasl.mechanism": "PLAIN", "sasl.username": "alice", "sasl.password": USERS["alice"]}
    producer = confluent_kafka.Producer(settings)
    for number in range(100):
        producer.produce("t", b"v%d" % number)
    assert producer.flush(LONG_S) == 0
    consumer = confluent_kafka.Consumer({**settings, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["t"])
    values: list[bytes] = []
    deadline = time.monotonic() + LONG_S
    while len(values) < 100 and time.monotonic() < deadline:
        message = consumer.poll(0.5)
        if message is not None and message.error() is None:
            values.append(message.value())
    consumer.close()
    assert values == [b"v%d" % number for number in range(100)]


def test_kafka_python_writes(kafka: EmbeddedKafka) -> None:
    kafka_python = pytest.importorskip("kafka")
    given = kafka.client_settings()
    settings: dict[str, Any] = {"security_protocol": given["security.protocol"]}
    if "ssl.truststore.location" in given:
        settings["ssl_cafile"] = given["ssl.truststore.location"]
    if "sasl.mechanism" in given:
        settings |= {
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": "bob",
            "sasl_plain_password": USERS["bob"],
        }
    producer = kafka_python.KafkaProducer(bootstrap_servers=given["bootstrap.servers"], **settings)
    try:
        assert producer.send("t", b"v").get(timeout=LONG_S).offset == 0
    finally:
        producer.close()


def test_a_wrong_password_is_refused_with_the_reason_and_not_at_once(
    passwords: EmbeddedKafka, caplog: pytest.LogCaptureFixture
) -> None:
    settings = passwords.client_settings("bob")
    settings["sasl.jaas.config"] = settings["sasl.jaas.config"].replace("other", "guess")
    began = time.monotonic()
    with pytest.raises(SaslAuthenticationError, match="invalid credentials with SASL mechanism PLAIN"):
        asked(settings)
    assert time.monotonic() - began >= 0.1
    assert "Refused a client from 127.0.0.1" in caplog.text
    assert "guess" not in caplog.text
    assert asked(passwords.client_settings("bob")) == set()


def test_a_mechanism_that_the_listener_does_not_have_is_refused_with_those_that_it_has(
    passwords: EmbeddedKafka,
) -> None:
    settings = passwords.client_settings() | {"sasl.mechanism": "SCRAM-SHA-256"}
    settings["sasl.jaas.config"] = settings["sasl.jaas.config"].replace("PlainLogin", "ScramLogin")
    with pytest.raises(UnsupportedSaslMechanismError, match="PLAIN"):
        asked(settings)


def test_a_client_that_does_not_say_who_it_is_gets_nowhere(passwords: EmbeddedKafka) -> None:
    plain = {"bootstrap.servers": passwords.bootstrap_servers}
    with pytest.raises(KafkaError):
        asked(plain)


def test_a_client_that_speaks_no_tls_gets_nowhere_and_others_are_served() -> None:
    with EmbeddedKafka(security="SSL") as kafka:
        host, _, port = kafka.bootstrap_servers.rpartition(":")
        with socket.create_connection((host, int(port)), 10) as stranger:
            stranger.sendall(b"\0\0\0\x10" + bytes(16))
            stranger.settimeout(10)
            while stranger.recv(1000):
                pass
        assert asked(kafka.client_settings()) == set()


def test_a_certificate_is_asked_for_and_says_who_the_client_is() -> None:
    with EmbeddedKafka(
        security="SSL", ssl_client_auth="required", ssl_principal_mapping_rules="RULE:CN=(.*)/$1/U"
    ) as kafka:
        with pytest.raises(SslAuthenticationError):
            asked(kafka.client_settings())
        with principals_seen() as seen:
            assert asked(kafka.client_settings("carol")) == set()
        assert seen == {"User:CAROL"}


def test_a_user_is_known_to_whoever_handles_its_requests(passwords: EmbeddedKafka) -> None:
    with principals_seen() as seen:
        for user in USERS:
            asked(passwords.client_settings(user))
    assert seen == {"User:alice", "User:bob"}


def test_listeners_differ_in_what_they_ask() -> None:
    with EmbeddedKafka(
        {
            "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
            "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:SASL_PLAINTEXT",
            "listener.name.outside.sasl.enabled.mechanisms": "PLAIN",
            "listener.name.outside.plain.sasl.jaas.config": 'PlainLoginModule required user_alice="secret";',
        }
    ) as kafka:
        inside, outside = kafka.bootstrap_servers.split(",")
        with principals_seen() as seen:
            asked({"bootstrap.servers": inside})
            asked(
                {
                    "bootstrap.servers": outside,
                    "security.protocol": "SASL_PLAINTEXT",
                    "sasl.mechanism": "PLAIN",
                    "sasl.jaas.config": 'PlainLoginModule required username="alice" password="secret";',
                }
            )
    assert seen == {"User:ANONYMOUS", "User:alice"}


def test_unsecured_tokens_are_taken_where_that_is_asked_for() -> None:
    settings = {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": 'OAuthBearerLoginModule required x="y";',
    }
    with pytest.raises(ConfigError, match='unsecured="true"'):
        EmbeddedKafka(settings).start()
    jaas = 'OAuthBearerLoginModule required unsecured="true";'
    settings["listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config"] = jaas
    with EmbeddedKafka(settings) as kafka, principals_seen() as seen:
        asked(
            {
                "bootstrap.servers": kafka.bootstrap_servers,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.jaas.config": 'OAuthBearerLoginModule required unsecuredLoginStringClaim_sub="dora";',
            }
        )
    assert seen == {"User:dora"}


def test_a_session_is_renewed_on_the_same_connection() -> None:
    with (
        EmbeddedKafka(security="SASL_PLAINTEXT", users=USERS, connections_max_reauth_ms=1500) as kafka,
        KafkaProducer(kafka.client_settings("alice")) as producer,
    ):

        def renewed() -> bool:
            producer.send("t", b"v").result(10)
            values = producer.metrics()
            return (
                values["successful-reauthentication-total"] >= 3 and values["connection-creation-total"] < 4
            )

        wait_until(renewed)


def test_a_client_that_does_not_renew_its_session_is_cut_off() -> None:
    with EmbeddedKafka(security="SASL_PLAINTEXT", users=USERS, connections_max_reauth_ms=500) as kafka:
        client = Raw(kafka)
        client.log_in("bob", USERS["bob"])
        assert client.lifetime_ms == 500

        def ends() -> bool:
            try:
                client.ask(ApiVersionsRequest(), 0)
            except EOFError:
                return True
            return False

        began = time.monotonic()
        wait_until(ends)
        assert time.monotonic() - began >= 0.4


def test_the_end_of_one_session_takes_no_request_of_another_with_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with EmbeddedKafka(security="SASL_PLAINTEXT", users=USERS, connections_max_reauth_ms=400) as kafka:
        clients = [Raw(kafka) for _ in range(12)]
        for client in clients:
            client.log_in("bob", USERS["bob"])
        began = time.monotonic()
        wait_until(lambda: time.monotonic() - began > 0.5)
        # All of them at once, so that the broker reads several of them in one round.
        for client in clients:
            client.send(b"".join(request_buffers(ApiVersionsRequest(), 0, 1, "raw"))[4:])
        for client in clients:
            with pytest.raises(EOFError):
                client.receive()
    assert "unexpected error" not in caplog.text


def test_who_renews_its_session_stays_who_it_was() -> None:
    with EmbeddedKafka(security="SASL_PLAINTEXT", users=USERS, connections_max_reauth_ms=60_000) as kafka:
        client = Raw(kafka)
        client.log_in("bob", USERS["bob"])
        client.log_in("bob", USERS["bob"])
        client.ask(ApiVersionsRequest(), 0)
        answer = client.log_in("alice", USERS["alice"])
        assert answer.error_code == int(Errors.SASL_AUTHENTICATION_FAILED)
        assert "began as User:bob and may not go on as User:alice" in str(answer.error_message)
        with pytest.raises(EOFError):
            client.ask(ApiVersionsRequest(), 0)


def test_tokens_may_follow_a_handshake_of_version_0_without_a_header(passwords: EmbeddedKafka) -> None:
    client = Raw(passwords)
    client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 0)
    client.send(b"\0bob\0other")
    assert client.receive() == b""
    client.ask(ApiVersionsRequest(), 0)


@pytest.mark.parametrize(
    "message",
    [MetadataRequest(topics=[]), SaslAuthenticateRequest(auth_bytes=b"\0bob\0other")],
    ids=["another request", "no handshake"],
)
def test_requests_out_of_turn_end_the_connection(passwords: EmbeddedKafka, message: Message) -> None:
    with pytest.raises(EOFError):
        Raw(passwords).ask(message, 1)


@pytest.mark.parametrize(
    "token", [b"", b"bob", b"\0bob\0other\0", b"\xff\0\xff\0\xff", b"alice\0bob\0other", b"\0\0"]
)
def test_tokens_that_are_none_are_refused_and_the_broker_goes_on(
    passwords: EmbeddedKafka, token: bytes
) -> None:
    client = Raw(passwords)
    client.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1)
    answer = client.ask(SaslAuthenticateRequest(auth_bytes=token), 2)
    assert answer.error_code == int(Errors.SASL_AUTHENTICATION_FAILED)
    assert asked(passwords.client_settings()) == set()


def test_nobody_keeps_the_broker_busy_with_questions_for_versions(passwords: EmbeddedKafka) -> None:
    client = Raw(passwords)

    def ends() -> bool:
        try:
            client.ask(ApiVersionsRequest(), 0)
        except EOFError:
            return True
        return False

    assert [ends() for _ in range(10)] == [False] * 10
    assert ends()


def test_a_frame_that_is_too_long_before_the_client_is_known_ends_the_connection(
    passwords: EmbeddedKafka,
) -> None:
    client = Raw(passwords)
    client.sock.sendall((1 << 20).to_bytes(4, "big"))
    with pytest.raises(EOFError):
        client.receive()


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"security": "TLS"}, "security"),
        ({"security": "SASL_SSL"}, "users"),
        ({"security": "SSL", "users": USERS}, "users"),
        ({"users": USERS}, "users"),
        ({"security": "SSL", "listeners": "SSL://127.0.0.1:0"}, "listeners"),
    ],
)
def test_arguments_that_do_not_go_together_are_refused(arguments: dict[str, Any], name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        EmbeddedKafka(**arguments)
    assert caught.value.name == name


def test_an_unknown_user_is_refused_by_name(passwords: EmbeddedKafka) -> None:
    with pytest.raises(ConfigError, match="'carol' is none of the users alice, bob"):
        passwords.client_settings("carol")


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_users_that_an_administrator_makes_are_known_also_after_a_restart(mechanism: str) -> None:
    with EmbeddedKafka(
        {
            "listeners": "INSIDE://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
            "listener.security.protocol.map": "INSIDE:PLAINTEXT",
            "sasl.enabled.mechanisms": mechanism,
        }
    ) as kafka:
        inside, outside = kafka.bootstrap_servers.split(",")
        user = {
            "bootstrap.servers": outside,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": 'ScramLoginModule required username="erin" password="pass word";',
        }
        with pytest.raises(SaslAuthenticationError):
            asked(user)
        change = UserScramCredentialUpsertion(
            "erin", ScramCredentialInfo(ScramMechanism[mechanism.replace("-", "_")]), "pass word"
        )
        with KafkaAdminClient(bootstrap_servers=inside) as admin:
            admin.alter_user_scram_credentials([change])
        assert asked(user) == set()
        kafka.restart()
        inside, user["bootstrap.servers"] = kafka.bootstrap_servers.split(",")
        assert asked(user) == set()
        with KafkaAdminClient(bootstrap_servers=inside) as admin:
            assert list(admin.describe_user_scram_credentials()) == ["erin"]
