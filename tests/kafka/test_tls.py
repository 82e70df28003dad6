"""TLS with a real broker: what connects, and what is refused at once with its reason."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.network.certificates import Authority
from harness.real_kafka.broker import RealKafka, missing
from harness.real_kafka.node import SHORT_LIVED
from harness.requirements import skip_if
from harness.topics import new_topic
from harness.waiting import wait_until
from kclient import KafkaConsumer, KafkaProducer
from kclient.admin import KafkaAdminClient
from kclient.cli.main import main
from kclient.errors import InvalidReceiveError, KafkaError, KafkaTimeoutError, SslAuthenticationError

STORE = "store-password"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def broker(authority: Authority) -> Iterator[RealKafka]:
    """A broker that is known as 127.0.0.1, with a listener SSL, one that wants certificates, and one for TLS 1.2."""
    skip_if(missing())
    expired = authority.issue("127.0.0.1", expired=True)
    other = authority.issue("other.example")
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue("127.0.0.1")),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority.file),
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.old.ssl.enabled.protocols": "TLSv1.2",
        "listener.name.old.ssl.protocol": "TLSv1.2",
    }
    for name, pair in (("expired", expired), ("other", other)):
        settings[f"listener.name.{name}.ssl.keystore.type"] = "PEM"
        settings[f"listener.name.{name}.ssl.keystore.location"] = str(pair)
    listeners = dict.fromkeys(("SSL", "MUTUAL", "OLD", "EXPIRED", "OTHER"), "SSL")
    # Java changes its keys by itself, after 128 GB; here after 128 KB.
    limits = authority.directory / "java.security"
    limits.write_text("jdk.tls.keyLimits=AES/GCM/NoPadding KeyUpdate 2^17\n")
    java = [*SHORT_LIVED, f"-Djava.security.properties={limits}"]
    with RealKafka(listeners=listeners, settings=settings, java=java) as running:
        yield running


@pytest.fixture(scope="module")
def topic(broker: RealKafka) -> str:
    return new_topic(broker.bootstrap_servers, 2)


def trusting(authority: Authority, **settings: object) -> dict[str, object]:
    return {"security_protocol": "SSL", "ssl_truststore_location": str(authority.file), **settings}


def there_and_back(servers: str, topic: str, settings: dict[str, object]) -> None:
    """Send records of all sizes, and read them again."""
    values = [bytes([i % 256]) * size for i, size in enumerate((1, 100, 20_000, 900_000) * 5)]
    with KafkaProducer(settings, bootstrap_servers=servers) as producer:
        sent = [producer.send(topic, value).result(30) for value in values]
    with KafkaConsumer(settings, bootstrap_servers=servers) as consumer:
        for metadata, value in zip(sent, values, strict=True):
            consumer.assign([metadata.topic_partition])
            consumer.seek(metadata.topic_partition, metadata.offset)
            assert next(iter(consumer)).value == value


def refused(servers: str, settings: dict[str, object]) -> KafkaError:
    """The error that an application sees; it comes at once, and not after a timeout."""
    with (
        KafkaAdminClient(settings, bootstrap_servers=servers) as admin,
        pytest.raises(KafkaError) as caught,
    ):
        admin.list_topics(timeout_ms=60_000)
    assert not isinstance(caught.value, KafkaTimeoutError)
    return caught.value


@pytest.mark.parametrize("listener", ["SSL", "OLD"])
def test_records_of_all_sizes_go_there_and_back(
    broker: RealKafka, authority: Authority, topic: str, listener: str
) -> None:
    there_and_back(f"127.0.0.1:{broker.ports[listener]}", topic, trusting(authority))


def test_keys_that_java_changes_in_mid_stream_change_nothing_else(
    broker: RealKafka, authority: Authority, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    changes: Counter[str] = Counter()

    def note(
        connection: object, direction: str, version: object, content: object, kind: int, data: bytes
    ) -> None:
        if kind == 24:  # KeyUpdate
            changes[direction] += 1

    real = ssl.SSLContext.wrap_bio

    def wrap_bio(context: ssl.SSLContext, *arguments: Any, **options: Any) -> ssl.SSLObject:
        vars(ssl.SSLContext)["_msg_callback"].__set__(context, note)
        return real(context, *arguments, **options)

    monkeypatch.setattr(ssl.SSLContext, "wrap_bio", wrap_bio)
    there_and_back(f"127.0.0.1:{broker.ports['SSL']}", topic, trusting(authority))
    assert changes["read"] >= 10
    # Java asks for new keys of the client each time.
    assert changes["write"] >= 1


def test_a_group_reads_everything(broker: RealKafka, authority: Authority) -> None:
    topic = new_topic(broker.bootstrap_servers, 3)
    servers = f"127.0.0.1:{broker.ports['SSL']}"
    settings = trusting(authority)
    with KafkaProducer(settings, bootstrap_servers=servers, compression_type="zstd") as producer:
        for i in range(50_000):
            producer.send(topic, b"%d" % i)
    seen: set[bytes] = set()
    with KafkaConsumer(
        settings, bootstrap_servers=servers, group_id=f"g-{topic}", auto_offset_reset="earliest"
    ) as consumer:
        consumer.subscribe([topic])
        wait_until(
            lambda: seen.update(r.value for r in consumer.poll(100)) or len(seen) == 50_000, 60, "all records"
        )


def java_stores(authority: Authority, kind: str, pair: Path, folder: Path) -> dict[str, object]:
    """Make key stores of Java's with Java's own tool."""
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key
    from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates
    from cryptography.x509 import load_pem_x509_certificates

    data = pair.read_bytes()
    key = load_pem_private_key(data, None)
    certificates = load_pem_x509_certificates(data)
    p12 = folder / "key.p12"
    p12.write_bytes(
        serialize_key_and_certificates(
            b"client",
            key,
            certificates[0],
            certificates[1:],
            BestAvailableEncryption(STORE.encode()),  # type: ignore[arg-type]
        )
    )
    trust, keys = folder / f"trust.{kind}", folder / f"keys.{kind}"
    keytool = shutil.which("keytool")
    assert keytool is not None
    into_trust = f"-storetype {kind} -keystore {trust} -storepass {STORE}"
    into_keys = f"-deststoretype {kind} -destkeystore {keys} -deststorepass {STORE}"
    for command in (
        f"-importcert -noprompt -alias authority -file {authority.file} {into_trust}",
        f"-importkeystore -noprompt -srckeystore {p12} -srcstoretype PKCS12 -srcstorepass {STORE} {into_keys}",
    ):
        subprocess.run([keytool, *command.split()], check=True, capture_output=True)
    return {
        "security_protocol": "SSL",
        "ssl_truststore_location": str(trust),
        "ssl_truststore_password": STORE,
        "ssl_keystore_location": str(keys),
        "ssl_keystore_password": STORE,
    }


@pytest.mark.parametrize("kind", ["PEM", "PEM text", "PKCS12", "JKS"])
def test_a_client_proves_itself_with_a_key_of_every_form(
    broker: RealKafka, authority: Authority, topic: str, kind: str, tmp_path: Path
) -> None:
    servers = f"127.0.0.1:{broker.ports['MUTUAL']}"
    if kind == "PEM":
        pair = authority.issue("client", password="hidden")
        settings = trusting(authority, ssl_keystore_location=str(pair), ssl_key_password="hidden")
    elif kind == "PEM text":
        text = authority.issue("client").read_text()
        settings = {"security_protocol": "SSL", "ssl_truststore_certificates": authority.pem}
        settings |= {"ssl_keystore_key": text, "ssl_keystore_certificate_chain": text}
    else:
        settings = java_stores(authority, kind, authority.issue("client"), tmp_path)
    there_and_back(servers, topic, settings)


def test_a_client_without_a_certificate_is_refused_where_one_is_wanted(
    broker: RealKafka, authority: Authority
) -> None:
    error = refused(f"127.0.0.1:{broker.ports['MUTUAL']}", trusting(authority))
    assert isinstance(error, SslAuthenticationError)
    assert "ssl.keystore.location" in str(error)


@pytest.mark.parametrize(
    ("listener", "text"),
    [("EXPIRED", "certificate has expired"), ("OTHER", "ssl.endpoint.identification.algorithm")],
)
def test_a_broker_whose_certificate_is_not_right_is_refused(
    broker: RealKafka, authority: Authority, listener: str, text: str
) -> None:
    error = refused(f"127.0.0.1:{broker.ports[listener]}", trusting(authority))
    assert isinstance(error, SslAuthenticationError)
    assert text in str(error)


def test_a_name_is_not_checked_when_that_is_turned_off(
    broker: RealKafka, authority: Authority, topic: str
) -> None:
    settings = trusting(authority, ssl_endpoint_identification_algorithm="")
    there_and_back(f"127.0.0.1:{broker.ports['OTHER']}", topic, settings)


def test_a_broker_that_the_system_does_not_trust_is_refused(broker: RealKafka) -> None:
    error = refused(f"127.0.0.1:{broker.ports['SSL']}", {"security_protocol": "SSL"})
    assert isinstance(error, SslAuthenticationError)
    assert "ssl.truststore.location" in str(error)


def test_versions_that_do_not_fit_are_refused(broker: RealKafka, authority: Authority) -> None:
    settings = trusting(authority, ssl_enabled_protocols="TLSv1.3")
    error = refused(f"127.0.0.1:{broker.ports['OLD']}", settings)
    assert isinstance(error, SslAuthenticationError)
    assert "ssl.enabled.protocols" in str(error)


def test_a_plaintext_client_on_a_port_for_tls_is_told_so(broker: RealKafka) -> None:
    address = f"127.0.0.1:{broker.ports['SSL']}"
    told = rf"{address}: api versions: .* speaks TLS; set security\.protocol"
    with (
        KafkaProducer(bootstrap_servers=address) as producer,
        pytest.raises(InvalidReceiveError, match=told) as caught,
    ):
        producer.send("t", b"")
    assert caught.value.connection is not None
    assert caught.value.connection.setting == "security.protocol"
    with (
        KafkaAdminClient(bootstrap_servers=address) as admin,
        pytest.raises(KafkaTimeoutError, match=told),
    ):
        admin.list_topics(timeout_ms=1500)


def test_a_client_with_tls_on_a_plaintext_port_is_told_so(broker: RealKafka, authority: Authority) -> None:
    with (
        KafkaAdminClient(trusting(authority), bootstrap_servers=broker.bootstrap_servers) as admin,
        pytest.raises(KafkaTimeoutError, match=r"in the TLS handshake; is security\.protocol"),
    ):
        admin.list_topics(timeout_ms=1500)


@pytest.mark.parametrize(
    ("listener", "step", "setting"),
    [
        ("SSL", None, None),
        ("EXPIRED", "tls", "ssl.truststore.location"),
        ("OTHER", "tls", "ssl.endpoint.identification.algorithm"),
        ("MUTUAL", "tls", "ssl.keystore.location"),
        ("OLD", "tls", "ssl.enabled.protocols"),
        ("PLAINTEXT", "tls", "security.protocol"),
    ],
)
def test_the_doctor_finds_what_is_wrong_with_a_listener(
    broker: RealKafka,
    authority: Authority,
    listener: str,
    step: str | None,
    setting: str | None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    address = f"127.0.0.1:{broker.ports[listener]}" if listener in broker.ports else broker.bootstrap_servers
    settings = {"security.protocol": "SSL", "ssl.truststore.location": str(authority.file)}
    settings["ssl.enabled.protocols"] = "TLSv1.3"
    words = [word for name, value in settings.items() for word in ("-X", f"{name}={value}")]
    code = main(["doctor", "--bootstrap-server", address, "--output", "json", *words])
    found = json.loads(capsys.readouterr().out)
    assert code == (0 if step is None else 1), found
    steps = found["brokers"][0]["addresses"][0]["steps"]
    wrong = [(each["step"], each["setting"]) for each in steps if not each["ok"]]
    assert wrong == ([] if step is None else [(step, setting)])
    if listener in {"SSL", "EXPIRED", "OTHER", "MUTUAL"}:
        certificate = steps[1]["certificate"]
        assert certificate["has_the_name"] is (listener != "OTHER")
        assert (certificate["days_left"] < 0) is (listener == "EXPIRED")
