"""GSSAPI with a real broker and a real KDC."""

from __future__ import annotations

from collections.abc import Iterator

import attrs
import pytest

from harness.real_kafka.broker import RealKafka, missing
from harness.real_kafka.kdc import Kdc, kdc
from harness.real_kafka.node import SHORT_LIVED
from harness.requirements import skip_if
from harness.topics import new_topic
from kclient import KafkaConsumer, KafkaProducer
from kclient.admin import KafkaAdminClient
from kclient.errors import SaslAuthenticationError

KRB5 = "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true"


@attrs.frozen
class Realm:
    """A broker whose only clients are those that the KDC knows."""

    broker: RealKafka
    kdc: Kdc

    def settings(self, principal: str = "alice@EXAMPLE.COM", **changes: object) -> dict[str, object]:
        """Return a client's settings."""
        return {
            "bootstrap.servers": f"127.0.0.1:{self.broker.ports['KERBEROS']}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            "sasl.jaas.config": f'{KRB5} keyTab="{self.kdc.key_table}" principal="{principal}";',
            **changes,
        }


@pytest.fixture(scope="module")
def realm() -> Iterator[Realm]:
    skip_if(missing())
    with kdc("alice", "kafka/127.0.0.1") as center:
        listener = "listener.name.kerberos.gssapi."
        settings = {
            "sasl.enabled.mechanisms": "GSSAPI",
            "sasl.kerberos.service.name": "kafka",
            f"{listener}sasl.jaas.config": (
                f'{KRB5} keyTab="{center.key_table}" principal="kafka/127.0.0.1@EXAMPLE.COM";'
            ),
            f"{listener}connections.max.reauth.ms": "3000",
        }
        java = [*SHORT_LIVED, f"-Djava.security.krb5.conf={center.krb5_conf}"]
        with RealKafka(listeners={"KERBEROS": "SASL_PLAINTEXT"}, settings=settings, java=java) as broker:
            yield Realm(broker, center)


@pytest.fixture(autouse=True)
def _environment(realm: Realm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KRB5_CONFIG", str(realm.kdc.krb5_conf))


def test_records_go_there_and_back_and_sessions_are_renewed(
    realm: Realm, caplog: pytest.LogCaptureFixture
) -> None:
    topic = new_topic(realm.broker.bootstrap_servers, 1)
    settings = realm.settings()
    with (
        caplog.at_level("DEBUG", "kclient.client"),
        KafkaProducer(settings) as producer,
        KafkaConsumer(settings, group_id=f"g-{topic}", auto_offset_reset="earliest") as consumer,
    ):
        consumer.subscribe([topic])
        sent = 0
        while sum("Authenticated again" in record.getMessage() for record in caplog.records) < 3:
            producer.send(topic, b"%d" % sent)
            (record,) = [next(iter(consumer))]
            assert record.value == b"%d" % sent
            sent += 1
    assert not [record for record in caplog.records if "Disconnected from" in record.getMessage()]


def test_a_ticket_of_a_cache_is_taken(realm: Realm, monkeypatch: pytest.MonkeyPatch) -> None:
    # The library fetches a ticket for whoever has a key table in the environment, and keeps it in a cache.
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(realm.kdc.key_table))
    cache = realm.kdc.key_table.with_name("cache")
    jaas = f'com.sun.security.auth.module.Krb5LoginModule required useTicketCache=true ticketCache="{cache}";'
    with KafkaAdminClient(realm.settings(**{"sasl.jaas.config": jaas})) as admin:
        admin.list_topics()
    assert cache.exists()


def test_a_principal_without_a_key_is_told_when_the_client_is_made(realm: Realm) -> None:
    with pytest.raises(SaslAuthenticationError, match=r"No ticket for mallory@EXAMPLE\.COM: .*keyTab"):
        KafkaAdminClient(realm.settings("mallory@EXAMPLE.COM"))


def test_a_service_that_the_kdc_does_not_know_is_told_at_once(realm: Realm) -> None:
    settings = realm.settings(**{"sasl.kerberos.service.name": "kafkaesque"})
    with (
        KafkaAdminClient(settings) as admin,
        pytest.raises(SaslAuthenticationError, match=r"kafkaesque/127\.0\.0\.1@EXAMPLE\.COM not found"),
    ):
        admin.list_topics(timeout_ms=60_000)
