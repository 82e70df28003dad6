"""SASL with a real broker: PLAIN and SCRAM, with and without TLS, and what is refused at once with its reason."""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Iterator

import pytest

from harness.network.certificates import Authority
from harness.real_kafka.broker import RealKafka, missing
from harness.requirements import skip_if
from harness.topics import new_topic
from harness.waiting import wait_until
from kclient import KafkaConsumer, KafkaProducer
from kclient.admin import KafkaAdminClient
from kclient.cli.main import main
from kclient.errors import (
    KafkaError,
    KafkaTimeoutError,
    SaslAuthenticationError,
    UnsupportedSaslMechanismError,
)

MODULES = "org.apache.kafka.common.security"
PASSWORD = 'a "secret"; and more'
QUOTED = PASSWORD.replace('"', '\\"')


def jaas(mechanism: str, username: str = "alice", password: str = QUOTED) -> str:
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    return f'{MODULES}.{module} required username="{username}" password="{password}";'


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def broker(authority: Authority) -> Iterator[RealKafka]:
    """A broker whose user alice has the same password for every mechanism; TLS has SCRAM-SHA-512 alone.

    Sessions of SECURE and SHORT end, those of SHORT after two seconds.
    """
    skip_if(missing())
    # server.properties takes away one backslash.
    plain = f'{MODULES}.plain.PlainLoginModule required user_alice="{QUOTED}";'.replace("\\", "\\\\")
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue("127.0.0.1")),
        "listener.name.open.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
        "listener.name.open.plain.sasl.jaas.config": plain,
        "listener.name.secure.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.secure.scram-sha-512.sasl.jaas.config": f"{MODULES}.scram.ScramLoginModule required;",
    }
    for name in ("256", "512"):
        settings[f"listener.name.open.scram-sha-{name}.sasl.jaas.config"] = (
            f"{MODULES}.scram.ScramLoginModule required;"
        )
    settings["listener.name.secure.scram-sha-512.connections.max.reauth.ms"] = "8000"
    settings["listener.name.short.sasl.enabled.mechanisms"] = "PLAIN"
    settings["listener.name.short.plain.sasl.jaas.config"] = plain
    settings["listener.name.short.plain.connections.max.reauth.ms"] = "2000"
    listeners = {"OPEN": "SASL_PLAINTEXT", "SECURE": "SASL_SSL", "SHORT": "SASL_PLAINTEXT"}
    with RealKafka(listeners=listeners, settings=settings) as running:
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            RealKafka.tool(
                "kafka.admin.ConfigCommand",
                *("--bootstrap-server", running.bootstrap_servers, "--alter", "--entity-type", "users"),
                *(
                    "--entity-name",
                    "alice",
                    "--add-config",
                    f"{mechanism}=[iterations=8192,password={PASSWORD}]",
                ),
            )
        yield running


def settings_for(broker: RealKafka, authority: Authority, listener: str, mechanism: str) -> dict[str, object]:
    made: dict[str, object] = {
        "bootstrap.servers": f"127.0.0.1:{broker.ports[listener]}",
        "security.protocol": "SASL_SSL" if listener == "SECURE" else "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": jaas(mechanism),
    }
    if listener == "SECURE":
        made["ssl.truststore.location"] = str(authority.file)
    return made


@pytest.mark.parametrize(
    ("listener", "mechanism"),
    [
        ("OPEN", "PLAIN"),
        ("OPEN", "SCRAM-SHA-256"),
        ("OPEN", "SCRAM-SHA-512"),
        ("SECURE", "SCRAM-SHA-512"),
    ],
)
def test_records_go_there_and_back_and_no_log_has_the_password(
    broker: RealKafka,
    authority: Authority,
    listener: str,
    mechanism: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("DEBUG")
    topic = new_topic(broker.bootstrap_servers, 1)
    settings = settings_for(broker, authority, listener, mechanism)
    with KafkaProducer(settings) as producer:
        for i in range(1000):
            producer.send(topic, b"%d" % i)
    with KafkaConsumer(settings, group_id=f"g-{topic}", auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic])
        values = [next(iter(consumer)).value for _ in range(1000)]
    assert values == [b"%d" % i for i in range(1000)]
    assert len(caplog.records) > 10
    assert PASSWORD not in caplog.text
    assert QUOTED not in caplog.text


def test_sessions_are_renewed_and_no_connection_is_lost(
    broker: RealKafka, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    topic = new_topic(broker.bootstrap_servers, 3)
    settings = settings_for(broker, authority, "SECURE", "SCRAM-SHA-512")
    with (
        caplog.at_level("DEBUG", "kclient.client"),
        KafkaProducer(settings) as producer,
        KafkaConsumer(settings, group_id=f"g-{topic}", auto_offset_reset="earliest") as consumer,
    ):
        consumer.subscribe([topic])
        sent, read = 0, []
        ends = time.monotonic() + 9
        while time.monotonic() < ends or len(read) < sent:
            if time.monotonic() < ends:
                producer.send(topic, b"%d" % sent)
                sent += 1
            read += [record.value for record in consumer.poll(timeout_ms=5)]
            assert time.monotonic() < ends + 30
        assert sorted(read) == sorted(b"%d" % i for i in range(sent))
    said = [record.getMessage() for record in caplog.records]
    # Two connections of the producer and three of the consumer, and the broker had half a second for each at least.
    assert sum("Authenticated again" in each for each in said) >= 5
    assert not [each for each in said if "Disconnected from" in each or "Cannot" in each]


@pytest.mark.parametrize("kind", [KafkaProducer, KafkaConsumer, KafkaAdminClient])
def test_a_password_can_be_replaced_while_a_client_runs(
    broker: RealKafka, authority: Authority, kind: type[KafkaProducer | KafkaConsumer | KafkaAdminClient]
) -> None:
    settings = settings_for(broker, authority, "OPEN", "SCRAM-SHA-256")
    settings["sasl.jaas.config"] = jaas("SCRAM-SHA-256", password="guessed")
    topic = new_topic(broker.bootstrap_servers, 1)
    with kind(settings, reconnect_backoff_ms=10, reconnect_backoff_max_ms=20) as client:
        with pytest.raises(SaslAuthenticationError):
            ask(client, topic)
        client.update_credentials("alice", PASSWORD)
        wait_until(lambda: answered(client, topic), 30, "the answer")


def ask(client: KafkaProducer | KafkaConsumer | KafkaAdminClient, topic: str) -> None:
    if isinstance(client, KafkaAdminClient):
        client.list_topics()
    else:
        client.partitions_for(topic)


def answered(client: KafkaProducer | KafkaConsumer | KafkaAdminClient, topic: str) -> bool:
    try:
        ask(client, topic)
    except SaslAuthenticationError:  # of the try before
        return False
    return True


@pytest.mark.parametrize("kind", [KafkaProducer, KafkaConsumer, KafkaAdminClient])
def test_authentications_are_counted_the_first_the_later_ones_and_those_that_are_refused(
    broker: RealKafka, authority: Authority, kind: type[KafkaProducer | KafkaConsumer | KafkaAdminClient]
) -> None:
    topic = new_topic(broker.bootstrap_servers, 1)
    settings = settings_for(broker, authority, "SHORT", "PLAIN")
    settings |= {"reconnect.backoff.ms": 10, "reconnect.backoff.max.ms": 20, "metadata.max.age.ms": 300}
    with kind({**settings, "sasl.jaas.config": jaas("PLAIN", password="guessed")}) as client:
        with pytest.raises(SaslAuthenticationError):
            ask(client, topic)
        values = authentications(client)
        assert values["failed-authentication-total"] >= 1
        assert values["failed-authentication-rate"] > 0
        assert not any(value for name, value in values.items() if "failed-authentication" not in name)

    with kind(settings) as client:
        ask(client, topic)
        first = authentications(client)
        assert first["successful-authentication-total"] >= 1
        assert first["successful-authentication-rate"] > 0
        assert not any(value for name, value in first.items() if "successful-authentication" not in name)

        def counted(name: str) -> bool:
            with contextlib.suppress(SaslAuthenticationError):
                ask(client, topic)
            return authentications(client)[name] > 0

        wait_until(lambda: counted("successful-reauthentication-total"), 30, "a session that is renewed")
        values = authentications(client)
        assert values["successful-reauthentication-rate"] > 0
        assert 0 <= values["reauthentication-latency-avg"] <= values["reauthentication-latency-max"] < 2000
        assert values["successful-authentication-total"] == client.metrics()["connection-creation-total"]
        assert values["failed-authentication-total"] == values["failed-reauthentication-total"] == 0

        client.update_credentials("alice", "guessed")
        wait_until(lambda: counted("failed-reauthentication-total"), 30, "a session that ends")
        assert authentications(client)["failed-reauthentication-rate"] > 0


def authentications(client: KafkaProducer | KafkaConsumer | KafkaAdminClient) -> dict[str, float]:
    """Metrics of authentication; 0 for what was not measured yet."""
    values = {key.name: value for key, value in client.metrics().items() if "authentication" in key.name}
    return {name: 0.0 if math.isnan(value) else value for name, value in values.items()}


def refused(settings: dict[str, object], **changes: object) -> KafkaError:
    with (
        KafkaAdminClient({**settings, **changes}) as admin,
        pytest.raises(KafkaError) as caught,
    ):
        admin.list_topics(timeout_ms=60_000)
    assert not isinstance(caught.value, KafkaTimeoutError)
    assert PASSWORD not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
@pytest.mark.parametrize("wrong", [{"username": "mallory"}, {"password": "guessed"}])
def test_wrong_credentials_are_refused_at_once(
    broker: RealKafka, authority: Authority, mechanism: str, wrong: dict[str, str]
) -> None:
    settings = settings_for(broker, authority, "OPEN", mechanism)
    error = refused(settings, **{"sasl.jaas.config": jaas(mechanism, **wrong)})
    assert isinstance(error, SaslAuthenticationError)
    assert "guessed" not in str(error)


def test_a_mechanism_that_is_not_offered_is_told_with_those_that_are(
    broker: RealKafka, authority: Authority
) -> None:
    settings = settings_for(broker, authority, "SECURE", "SCRAM-SHA-512")
    error = refused(settings, **{"sasl.mechanism": "SCRAM-SHA-256"})
    assert isinstance(error, UnsupportedSaslMechanismError)
    assert "offered are: SCRAM-SHA-512" in str(error)


def test_a_listener_without_sasl_is_told(broker: RealKafka, authority: Authority) -> None:
    settings = settings_for(broker, authority, "OPEN", "PLAIN")
    settings["bootstrap.servers"] = broker.bootstrap_servers
    with (
        KafkaAdminClient(settings) as admin,
        pytest.raises(KafkaError, match=r"SASL|security\.protocol"),
    ):
        admin.list_topics(timeout_ms=2000)


@pytest.mark.parametrize("kind", [KafkaProducer, KafkaConsumer, KafkaAdminClient])
def test_a_client_that_does_not_authenticate_is_told_what_the_listener_may_want(
    broker: RealKafka, kind: type[KafkaProducer | KafkaConsumer | KafkaAdminClient]
) -> None:
    address = f"127.0.0.1:{broker.ports['OPEN']}"
    more = {"max.block.ms": 1500} if kind is KafkaProducer else {"default.api.timeout.ms": 1500}
    more["request.timeout.ms"] = 1000
    with (
        kind({"bootstrap.servers": address, **more}) as client,
        pytest.raises(
            KafkaTimeoutError, match=rf"{address}: request: closed by the peer .*with SASL"
        ) as caught,
    ):
        ask(client, "t")
    assert caught.value.connection is not None
    assert (caught.value.connection.step, caught.value.connection.setting) == ("request", "security.protocol")
    assert caught.value.connection.attempts > 1


@pytest.mark.parametrize(
    ("listener", "changes", "step", "setting"),
    [
        ("SECURE", {}, None, None),
        ("OPEN", {"sasl.jaas.config": jaas("SCRAM-SHA-512", password="guessed")}, "sasl", "sasl.jaas.config"),
        ("SECURE", {"sasl.mechanism": "SCRAM-SHA-256"}, "sasl", "sasl.mechanism"),
        ("OPEN", {"security.protocol": "PLAINTEXT"}, "metadata", "security.protocol"),
    ],
)
def test_the_doctor_finds_what_is_wrong_with_credentials(
    broker: RealKafka,
    authority: Authority,
    listener: str,
    changes: dict[str, object],
    step: str | None,
    setting: str | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = {**settings_for(broker, authority, listener, "SCRAM-SHA-512"), **changes}
    words = [word for name, value in settings.items() for word in ("-X", f"{name}={value}")]
    code = main(["doctor", "--output", "json", *words])
    printed = capsys.readouterr().out
    assert PASSWORD not in printed
    found = json.loads(printed)
    assert code == (0 if step is None else 1), found
    steps = found["brokers"][0]["addresses"][0]["steps"]
    assert [(each["step"], each["setting"]) for each in steps if not each["ok"]] == (
        [] if step is None else [(step, setting)]
    )
    if step is None:
        assert [each["step"] for each in steps] == ["tcp", "tls", "sasl", "api_versions", "metadata"]
        assert steps[2]["offered"] == ["SCRAM-SHA-512"]
    if step == "metadata":
        assert steps[-1]["offered"] == ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]
