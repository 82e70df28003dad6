"""A cluster with SASL_SSL: the same job as with Spark's own connector, shipped files, and where secrets are not seen.

Beside the connector with the PySpark that it is there for; with others what is no comparison.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

from harness.network.certificates import Authority
from harness.real_kafka.broker import RealKafka
from harness.real_kafka.node import classpath, missing
from harness.requirements import skip_if
from harness.spark import sessions
from harness.topics import new_topic, read_all
from harness.waiting import wait_until
from kclient.admin import (
    KafkaAdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kclient.producer import KafkaProducer

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.kafka,
    pytest.mark.old_spark,
    pytest.mark.spark,
    pytest.mark.xdist_group("spark-secured"),
    pytest.mark.timeout(300),
]

CONNECTOR = "4.0.0"
POM = Path(__file__).parent / "connector" / "pom.xml"
MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
PASSWORD, STORE_PASSWORD = "hunter-of-alice", "hunter-of-store"
JAAS = f'{MODULE} required username="alice" password="{PASSWORD}";'
RECORDS = 40


@attrs.frozen
class Cluster:
    """A broker that clients reach over SASL_SSL alone, with a topic, and what they need for it."""

    servers: str
    plain: str
    """The address for tests, without TLS and SASL."""
    source: str
    authority: Authority
    store: Path
    """Java's key store with the authority's certificate."""
    client: Path
    """A key and a certificate of the client's own, in PEM."""

    @property
    def sasl(self) -> dict[str, str]:
        return {
            "kafka.bootstrap.servers": self.servers,
            "kafka.security.protocol": "SASL_SSL",
            "kafka.sasl.mechanism": "SCRAM-SHA-512",
            "kafka.sasl.jaas.config": JAAS,
        }

    @property
    def by_path(self) -> dict[str, str]:
        return {
            **self.sasl,
            "kafka.ssl.truststore.location": str(self.store),
            "kafka.ssl.truststore.password": STORE_PASSWORD,
        }

    @property
    def inline(self) -> dict[str, str]:
        key, end, chain = self.client.read_text().partition("-----END PRIVATE KEY-----\n")
        return {
            **self.sasl,
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.truststore.certificates": self.authority.pem,
            "kafka.ssl.keystore.type": "PEM",
            "kafka.ssl.keystore.key": key + end,
            "kafka.ssl.keystore.certificate.chain": chain,
        }

    @property
    def secrets(self) -> list[str]:
        """Texts that must be nowhere."""
        return [PASSWORD, STORE_PASSWORD, self.client.read_text().splitlines()[1]]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    skip_if(missing())
    authority = Authority(tmp_path_factory.mktemp("certificates"))
    store = authority.directory / "trust.jks"
    importing = ["keytool", "-importcert", "-noprompt", "-alias", "authority", "-file", str(authority.file)]
    importing += ["-keystore", str(store), "-storetype", "JKS", "-storepass", STORE_PASSWORD]
    subprocess.run(importing, check=True, capture_output=True)
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue("127.0.0.1")),
        "listener.name.secure.sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.secure.scram-sha-512.sasl.jaas.config": f"{MODULE} required;",
    }
    with RealKafka(listeners={"SECURE": "SASL_SSL"}, settings=settings) as kafka:
        plain = kafka.bootstrap_servers
        with KafkaAdminClient(bootstrap_servers=plain) as admin:
            how = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
            admin.alter_user_scram_credentials([UserScramCredentialUpsertion("alice", how, PASSWORD)])
        source = new_topic(plain, 2)
        with KafkaProducer(bootstrap_servers=plain) as producer:
            for number in range(RECORDS):
                producer.send(source, b"%d" % number, key=b"k", partition=number % 2)
        servers = f"127.0.0.1:{kafka.ports['SECURE']}"
        yield Cluster(servers, plain, source, authority, store, authority.issue("client"))


@pytest.fixture(scope="module")
def kinds() -> list[str]:
    """The formats that there are."""
    sessions.need()
    import pyspark

    return ["kafka", "kclient"] if pyspark.__version__ == CONNECTOR else ["kclient"]


@pytest.fixture
def both(kinds: list[str]) -> list[str]:
    """Both formats, for what is nothing but their comparison."""
    if len(kinds) == 1:
        pytest.skip(f"Spark's own connector is there for PySpark {CONNECTOR}")
    return kinds


@pytest.fixture(scope="module")
def events(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the events that Spark logs."""
    return tmp_path_factory.mktemp("events")


@pytest.fixture(scope="module")
def spark(cluster: Cluster, kinds: list[str], events: Path) -> Iterator[Any]:
    secrets = cluster.authority.directory / "secrets.properties"
    secrets.write_text(f"jaas={JAAS}\n")
    core = {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": str(events),
        "spark.eventLog.compress": "false",
        "spark.files": f"{cluster.store},{secrets}",
    }
    if "kafka" in kinds:
        core["spark.jars"] = classpath(POM).replace(os.pathsep, ",")
    with sessions.session(core) as made:
        yield made


def read(spark: Any, kind: str, topic: str, options: dict[str, str]) -> Any:
    return spark.read.format(kind).options(**options).option("subscribe", topic).load()


def copy(spark: Any, kind: str, topic: str, options: dict[str, str], checkpoint: Path) -> Any:
    """Start a streaming query that writes what is in the cluster's topic to another one."""
    stream = spark.readStream.format(kind).options(**options).option("fetchOffset.numRetries", "1")
    stream = stream.option("subscribe", topic).option("startingOffsets", "earliest").load()
    writer = stream.select("key", "value").writeStream.format(kind).options(**options)
    writer = writer.option("topic", f"{topic}-copy-{kind}").option("checkpointLocation", str(checkpoint))
    return writer.trigger(availableNow=True).start()


def written(cluster: Cluster, topic: str) -> Counter[tuple[bytes | None, bytes | None]]:
    """The keys and values in a topic."""
    return Counter((record.key, record.value) for record in read_all(cluster.plain, topic))


def test_the_same_job_has_the_same_rows(
    spark: Any, both: list[str], cluster: Cluster, tmp_path: Path
) -> None:
    found = []
    for kind in both:
        frame = read(spark, kind, cluster.source, cluster.by_path)
        writer = frame.select("key", "value").write.format(kind).options(**cluster.by_path)
        writer.option("topic", f"by-{kind}").mode("append").save()
        assert copy(spark, kind, cluster.source, cluster.by_path, tmp_path / kind).awaitTermination(100)
        found.append(
            (
                sessions.rows(frame),
                written(cluster, f"by-{kind}"),
                written(cluster, f"{cluster.source}-copy-{kind}"),
            )
        )
    assert [each.total() for each in found[-1]] == [RECORDS] * 3
    assert all(each == found[0] for each in found)


def test_files_that_were_shipped_are_found_by_their_names(
    spark: Any, cluster: Cluster, tmp_path: Path
) -> None:
    shipped = {
        **cluster.by_path,
        "kafka.ssl.truststore.location": cluster.store.name,
        "kafka.config.providers": "file",
        "kafka.sasl.jaas.config": "${file:secrets.properties:jaas}",
    }
    frame = read(spark, "kclient", cluster.source, shipped).select("key", "value")
    once = {"topic": "once", "kclient.delivery": "exactly_once"}
    frame.coalesce(1).write.format("kclient").options(**shipped, **once).mode("append").save()
    assert written(cluster, "once").total() == RECORDS
    topic = new_topic(cluster.plain, 1)
    with KafkaProducer(bootstrap_servers=cluster.plain) as producer:
        producer.send(topic, b"v", key=b"k")
    assert copy(spark, "kclient", topic, shipped, tmp_path).awaitTermination(100)
    assert written(cluster, f"{topic}-copy-kclient") == {(b"k", b"v"): 1}


@pytest.mark.parametrize(
    ("changes", "theirs", "ours"),
    [
        (
            {"kafka.sasl.jaas.config": JAAS.replace("alice", "mallory")},
            "SaslAuthenticationException: Authentication failed during authentication due to invalid credentials",
            "SaslAuthenticationError: .*due to invalid credentials .*; see sasl.jaas.config",
        ),
        (
            {"kafka.sasl.jaas.config": JAAS.rstrip(";")},
            "JAAS config entry not terminated by semi-colon",
            'ConfigError: sasl.jaas.config: name="value" or a semicolon is missing after the option password',
        ),
        (
            {"kafka.ssl.truststore.location": "/nowhere/trust.jks"},
            "Failed to load SSL keystore /nowhere/trust.jks of type JKS",
            "ConfigError: kafka.ssl.truststore.location: /nowhere/trust.jks is not on this machine",
        ),
        (
            {"kafka.ssl.truststore.certificates": "of another authority"},
            "SslAuthenticationException: SSL handshake failed",
            "SslAuthenticationError: .*unable to get local issuer certificate; .* those of ssl.truststore.location",
        ),
        (
            {"kafka.ssl.truststore.password": STORE_PASSWORD + "!"},
            "keystore password was incorrect|Keystore was tampered with",
            "ConfigError: ssl.truststore.location .* its password is wrong",
        ),
    ],
    ids=["user", "jaas", "missing", "truststore", "store password"],
)
def test_what_is_wrong_is_told_by_both_and_no_secret_with_it(
    spark: Any,
    both: list[str],
    cluster: Cluster,
    tmp_path: Path,
    changes: dict[str, str],
    theirs: str,
    ours: str,
) -> None:
    base = cluster.by_path
    if "kafka.ssl.truststore.certificates" in changes:
        base, changes = cluster.inline, dict.fromkeys(changes, Authority(tmp_path).pem)
    for kind in both:
        with pytest.raises(Exception, match=r".") as caught:
            read(spark, kind, cluster.source, {**base, **changes}).count()
        said = str(caught.value)
        assert re.search(theirs if kind == "kafka" else ours, said), said
        assert not [each for each in cluster.secrets if each in said]


def logged(events: Path) -> str:
    """Return all events so far."""
    return "".join(each.read_text() for each in events.rglob("events_*"))


def test_a_session_shows_no_secret_of_a_job(
    spark: Any,
    kinds: list[str],
    cluster: Cluster,
    events: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    texts = []
    for kind in kinds:
        given = {**cluster.inline, "topic": f"shown-{kind}"}
        frame = read(spark, kind, cluster.source, cluster.inline)
        frame.select("value").write.format(kind).options(**given).mode("append").save()
        frame.explain("extended")
        failing = {**cluster.inline, "kafka.sasl.jaas.config": JAAS.replace("alice", "mallory")}
        query = copy(spark, kind, cluster.source, failing, tmp_path / kind)
        with pytest.raises(Exception, match="STREAM_FAILED") as caught:
            query.awaitTermination(100)
        texts.append(str(caught.value))
        query.explain(True)
        options = {**cluster.inline, "subscribe": cluster.source}
        listed = ", ".join(f"'{name}' '{value}'" for name, value in options.items())
        spark.sql(f"CREATE TEMPORARY VIEW by_{kind} USING {kind} OPTIONS ({listed})")
    wait_until(lambda: f"by_{kinds[-1]}" in logged(events), 60, "the events")
    found = logged(events)
    texts += [found, capfd.readouterr().out]
    assert len(texts) == len(kinds) + 2
    for text in texts:
        assert not [each for each in cluster.secrets if each in text]
    # Options are shown, and what is secret of them is not.
    for name in ("sasl.jaas.config", "ssl.keystore.key"):
        assert re.search(rf"kafka\.{name}( -> |=)\*+\(redacted\)", found), name
