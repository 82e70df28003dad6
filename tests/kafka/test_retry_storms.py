"""Every way in which a real broker and a client refuse each other: said at once, and no storm of connections after it.

Three clients at a time are refused and asked again and again, each through a relay that counts its connections.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import attrs
import pytest

from harness.network.certificates import Authority, self_signed
from harness.network.forward_proxy import Relay
from harness.real_kafka.broker import RealKafka, missing
from harness.requirements import skip_if
from kclient import KafkaConsumer, KafkaProducer
from kclient.admin import KafkaAdminClient
from kclient.errors import (
    InvalidReceiveError,
    KafkaError,
    KafkaTimeoutError,
    SaslAuthenticationError,
    SslAuthenticationError,
    UnsupportedSaslMechanismError,
)
from kclient.security import OAuthBearerToken

Client = KafkaProducer | KafkaConsumer | KafkaAdminClient

SECURITY = "org.apache.kafka.common.security"
PLAIN = f"{SECURITY}.plain.PlainLoginModule required"
BEARER = f"{SECURITY}.oauthbearer.OAuthBearerLoginModule required"

_BACKOFF_MS, _BACKOFF_MAX_MS = 100, 400
_CONNECTIONS = 5
# 100, 200, 400 and 400 ms between them, each less a fifth by chance.
_LEAST_S = 0.8 * 1.1


@attrs.frozen
class Refusals:
    """A broker with a listener for each thing that can be wrong."""

    broker: RealKafka
    authority: Authority
    directory: Path

    def tls(self, **more: object) -> dict[str, object]:
        trust = {"security.protocol": "SSL", "ssl.truststore.location": str(self.authority.file)}
        return trust | {name.replace("_", "."): value for name, value in more.items()}


@pytest.fixture(scope="module")
def refusals(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Refusals]:
    skip_if(missing())
    directory = tmp_path_factory.mktemp("certificates")
    authority = Authority(directory)
    certificates = {
        "right": authority.issue("127.0.0.1"),
        "mutual": authority.issue("127.0.0.1"),
        "expired": authority.issue("127.0.0.1", expired=True),
        "other": authority.issue("other.example"),
        "self": self_signed(directory, "127.0.0.1"),
    }
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates["right"]),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.file),
        "listener.name.mutual.ssl.client.auth": "required",
        "connection.failed.authentication.delay.ms": "0",  # which would slow down whoever does not wait
        "listener.name.users.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.users.plain.sasl.jaas.config": f'{PLAIN} user_alice="right";',
        "listener.name.tokens.sasl.enabled.mechanisms": "OAUTHBEARER",
        "listener.name.tokens.oauthbearer.sasl.jaas.config": f'{BEARER} unsecuredLoginStringClaim_sub="b";',
    }
    for name, pair in certificates.items():
        settings[f"listener.name.{name}.ssl.keystore.type"] = "PEM"
        settings[f"listener.name.{name}.ssl.keystore.location"] = str(pair)
    listeners = {name.upper(): "SSL" for name in certificates}
    listeners |= {"USERS": "SASL_PLAINTEXT", "TOKENS": "SASL_PLAINTEXT"}
    with RealKafka(listeners=listeners, settings=settings) as broker:
        yield Refusals(broker, authority, directory)


def ask(client: Client, timeout_ms: int) -> None:
    if isinstance(client, KafkaAdminClient):
        client.list_topics(timeout_ms=timeout_ms)
    elif isinstance(client, KafkaConsumer):
        client.partitions_for("t", timeout_ms=timeout_ms)
    else:
        client.partitions_for("t")  # which max.block.ms limits


def storm(
    port: int,
    settings: Mapping[str, object],
    errors: type[KafkaError] | tuple[type[KafkaError], ...],
    text: str,
    *,
    timeout_ms: int = 60_000,
) -> None:
    """Check what three clients are told each time that they ask, and that they wait between connections.

    None of `errors` is one of time-outs where a client can know that it will not get in.
    """
    more = {
        "reconnect.backoff.ms": _BACKOFF_MS,
        "reconnect.backoff.max.ms": _BACKOFF_MAX_MS,
        "max.block.ms": timeout_ms,
    }

    def refused(kind: type[Client]) -> float:
        given: dict[str, Any] = {**settings, **more}
        if kind is not KafkaProducer:
            del given["max.block.ms"]
        with (
            Relay(("127.0.0.1", port)) as relay,
            kind({**given, "bootstrap.servers": relay.bootstrap}) as client,
        ):
            began = time.monotonic()
            while len(relay.accepted_s) < _CONNECTIONS:
                with pytest.raises(errors, match=text):
                    ask(client, timeout_ms)
            return sorted(relay.accepted_s)[_CONNECTIONS - 1] - began

    kinds: list[type[Client]] = [KafkaProducer, KafkaConsumer, KafkaAdminClient]
    with ThreadPoolExecutor() as pool:
        waited_s = list(pool.map(refused, kinds))
    assert min(waited_s) >= _LEAST_S, dict(zip(kinds, waited_s, strict=True))


@pytest.mark.parametrize(
    ("listener", "text"),
    [
        ("OTHER", "not valid for '127.0.0.1'.*ssl.endpoint.identification.algorithm"),
        ("EXPIRED", "certificate has expired.*ssl.truststore.location"),
        (
            "SELF",
            "self-signed certificate; a certificate that signs itself has to be in ssl.truststore.location",
        ),
        ("MUTUAL", "the broker wants a certificate.*ssl.keystore.location"),
    ],
)
def test_certificates_that_are_not_right_and_one_that_is_missing(
    refusals: Refusals, listener: str, text: str
) -> None:
    storm(refusals.broker.ports[listener], refusals.tls(), SslAuthenticationError, text)


def test_a_certificate_of_an_authority_that_the_broker_does_not_know(
    refusals: Refusals, tmp_path: Path
) -> None:
    settings = refusals.tls(ssl_keystore_location=str(Authority(tmp_path).issue("client")))
    storm(refusals.broker.ports["MUTUAL"], settings, SslAuthenticationError, "ssl.keystore.location")


def sasl(jaas: str, mechanism: str = "PLAIN") -> dict[str, object]:
    return {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": jaas,
    }


def test_a_wrong_password(refusals: Refusals) -> None:
    settings = sasl(f'{PLAIN} username="alice" password="guessed";')
    storm(refusals.broker.ports["USERS"], settings, SaslAuthenticationError, "Invalid username or password")


def test_a_mechanism_that_is_not_offered(refusals: Refusals) -> None:
    settings = sasl(f'{SECURITY}.scram.ScramLoginModule required username="a" password="b";', "SCRAM-SHA-256")
    port = refusals.broker.ports["USERS"]
    storm(port, settings, UnsupportedSaslMechanismError, "offered are: PLAIN")


def test_a_token_that_has_ended(refusals: Refusals) -> None:
    now = int(time.time())
    claims = {"sub": "alice", "iat": now - 7200, "exp": now - 3600}
    parts = (base64.urlsafe_b64encode(json.dumps(part).encode()) for part in ({"alg": "none"}, claims))
    # The client takes the function's word for when it ends, the broker does not.
    token = OAuthBearerToken(
        ".".join(part.decode().rstrip("=") for part in parts) + ".", expires_ms=(now + 3600) * 1000
    )
    settings = {
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.login.callback.handler.class": lambda: token,
    }
    storm(refusals.broker.ports["TOKENS"], settings, SaslAuthenticationError, "invalid_token")


def test_a_plaintext_client_on_a_port_for_tls(refusals: Refusals) -> None:
    storm(
        refusals.broker.ports["RIGHT"],
        {},
        (InvalidReceiveError, KafkaTimeoutError),
        r"speaks TLS; set security\.protocol",
        timeout_ms=1000,
    )


def test_a_client_with_tls_on_a_plaintext_port(refusals: Refusals) -> None:
    storm(
        refusals.broker.port,
        refusals.tls(),
        KafkaTimeoutError,
        r"in the TLS handshake; is security\.protocol",
        timeout_ms=1000,
    )
