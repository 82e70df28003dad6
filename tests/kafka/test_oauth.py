"""OAUTHBEARER with a real broker: tokens of an identity provider that it checks, and unsecured ones."""

from __future__ import annotations

import time
from collections.abc import Iterator

import attrs
import pytest

from harness.network.identity_provider import IdentityProvider, identity_provider
from harness.real_kafka.broker import RealKafka, missing
from harness.real_kafka.node import SHORT_LIVED
from harness.requirements import skip_if
from harness.topics import new_topic
from kclient import KafkaConsumer, KafkaProducer
from kclient.admin import KafkaAdminClient
from kclient.errors import SaslAuthenticationError
from kclient.security import OAuthBearerToken

JAVA = "org.apache.kafka.common.security.oauthbearer"
MODULE = f"{JAVA}.OAuthBearerLoginModule required"
LIFETIME_S = 8


@attrs.frozen
class Cluster:
    """A broker, and the provider of the tokens that its listener OIDC takes; UNSECURED takes any."""

    broker: RealKafka
    provider: IdentityProvider

    def settings(self, listener: str) -> dict[str, object]:
        """Return a client's settings for a listener, but for the source of its tokens."""
        return {
            "bootstrap.servers": f"127.0.0.1:{self.broker.ports[listener]}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "OAUTHBEARER",
        }

    def with_credentials(self) -> dict[str, object]:
        """Return settings with which the client asks the provider by itself."""
        return {
            **self.settings("OIDC"),
            "sasl.oauthbearer.token.endpoint.url": self.provider.token_url,
            "kclient.sasl.oauthbearer.allowed.urls": self.provider.token_url,
            "sasl.oauthbearer.client.credentials.client.id": "me",
            "sasl.oauthbearer.client.credentials.client.secret": "secret",
        }


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    skip_if(missing())
    with identity_provider(lifetime_s=LIFETIME_S) as provider:
        oidc, unsecured = "listener.name.oidc.", "listener.name.unsecured."
        settings = {
            "sasl.enabled.mechanisms": "OAUTHBEARER",
            f"{oidc}oauthbearer.sasl.jaas.config": f"{MODULE};",
            f"{oidc}oauthbearer.sasl.server.callback.handler.class": (
                f"{JAVA}.OAuthBearerValidatorCallbackHandler"
            ),
            f"{oidc}oauthbearer.sasl.oauthbearer.jwks.endpoint.url": provider.jwks_url,
            f"{oidc}oauthbearer.sasl.oauthbearer.expected.audience": provider.audience,
            f"{oidc}oauthbearer.sasl.oauthbearer.expected.issuer": provider.issuer,
            f"{oidc}oauthbearer.sasl.oauthbearer.clock.skew.seconds": "0",
            f"{unsecured}oauthbearer.sasl.jaas.config": f'{MODULE} unsecuredLoginStringClaim_sub="broker";',
        }
        with RealKafka(
            listeners={"OIDC": "SASL_PLAINTEXT", "UNSECURED": "SASL_PLAINTEXT"},
            settings=settings,
            java=[*SHORT_LIVED, f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={provider.jwks_url}"],
        ) as broker:
            yield Cluster(broker, provider)


def test_an_unsecured_jwt_of_the_login_module_is_taken(cluster: Cluster) -> None:
    topic = new_topic(cluster.broker.bootstrap_servers, 1)
    jaas = f'{MODULE} unsecuredLoginStringClaim_sub="alice";'
    with KafkaProducer(cluster.settings("UNSECURED"), sasl_jaas_config=jaas) as producer:
        assert producer.send(topic, b"v").result(30).offset == 0


def test_a_token_of_a_function_is_taken(cluster: Cluster) -> None:
    topic = new_topic(cluster.broker.bootstrap_servers, 1)
    settings = cluster.settings("OIDC")
    with KafkaProducer(settings, sasl_login_callback_handler_class=cluster.provider.token) as producer:
        assert producer.send(topic, b"v").result(30).offset == 0


def test_tokens_that_end_are_followed_by_others_and_no_connection_is_lost(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    topic = new_topic(cluster.broker.bootstrap_servers, 3)
    settings = cluster.with_credentials()
    asked = len(cluster.provider.requests)
    with (
        caplog.at_level("DEBUG", "kclient"),
        KafkaProducer(settings) as producer,
        KafkaConsumer(settings, group_id=f"g-{topic}", auto_offset_reset="earliest") as consumer,
    ):
        consumer.subscribe([topic])
        sent, read = 0, []
        ends = time.monotonic() + LIFETIME_S * 1.5
        while time.monotonic() < ends or len(read) < sent:
            if time.monotonic() < ends:
                producer.send(topic, b"%d" % sent)
                sent += 1
            read += [record.value for record in consumer.poll(timeout_ms=5)]
            assert time.monotonic() < ends + 30
        assert sorted(read) == sorted(b"%d" % i for i in range(sent))
    said = [record.getMessage() for record in caplog.records]
    assert (
        len(cluster.provider.requests) - asked >= 4
    )  # each of the two clients, for the second time at least
    assert sum("Authenticated again" in each for each in said) >= 4
    assert not [each for each in said if "Disconnected from" in each or "Cannot" in each]
    assert not [each for each in said if "secret" in each or "eyJ" in each]  # with which every JWT begins


@pytest.mark.parametrize("claim", ["issuer", "audience"])
def test_a_token_for_somebody_else_is_refused_at_once_with_the_reason(
    cluster: Cluster, claim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster.provider, claim, "another")
    token = cluster.provider.token()
    settings = cluster.settings("OIDC")
    with (
        KafkaAdminClient(settings, sasl_login_callback_handler_class=lambda: token) as admin,
        pytest.raises(SaslAuthenticationError, match="invalid_token") as caught,
    ):
        admin.list_topics(timeout_ms=60_000)
    assert token not in str(caught.value)


def test_a_token_that_ended_is_refused_at_once_and_not_shown(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster.provider, "lifetime_s", -60)
    token = cluster.provider.token()
    # The client takes the function's word for when it ends, the broker does not.
    later = OAuthBearerToken(token, expires_ms=int(time.time() * 1000) + 3_600_000)
    settings = cluster.settings("OIDC")
    for given, why in ((later, "invalid_token"), (token, "ended")):
        with (
            pytest.raises(SaslAuthenticationError, match=why) as caught,
            KafkaAdminClient(settings, sasl_login_callback_handler_class=lambda given=given: given) as admin,
        ):
            admin.list_topics(timeout_ms=60_000)
        assert token not in str(caught.value)
