"""Pipelines on a cluster that wants TLS and passwords: from a file and the environment, and said nowhere."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest

from harness.network.certificates import Authority
from harness.real_kafka.broker import RealKafka
from harness.real_kafka.node import missing
from harness.requirements import skip_if
from harness.spark import sessions
from harness.spark.pipelines import PipelineProcess
from harness.waiting import wait_until
from kclient.admin import KafkaAdminClient, NewTopic
from kclient.broker import EmbeddedKafka
from kclient.cli.main import main
from kclient.spark.pipelines import (
    BackfillOptions,
    DeadLetterOptions,
    EnrichOptions,
    EtlOptions,
    EventsOptions,
    WindowOptions,
    orders,
)

pytestmark = [
    pytest.mark.heavy,
    pytest.mark.spark,
    pytest.mark.xdist_group("spark-secured"),
    pytest.mark.timeout(600),
]

SECRET = "tell-nobody-8c1f"
JAAS = "org.apache.kafka.common.security.plain.PlainLoginModule"
RECORDS = 1300
DEADLINE_S = 300


def client(authority: str, secret: str) -> dict[str, str]:
    """Settings of a client, with the authority as text."""
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.jaas.config": f'{JAAS} required username="alice" password="{secret}";',
        "ssl.truststore.certificates": authority,
        "ssl.truststore.type": "PEM",
    }


@pytest.fixture(scope="module")
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka(security="SASL_SSL", users={"alice": SECRET}) as broker:
        yield broker


def authority_of(kafka: EmbeddedKafka) -> str:
    return Path(kafka.client_settings()["ssl.truststore.location"]).read_text()


def order_options(servers: str, settings: Mapping[str, str], folder: Path) -> EventsOptions:
    made = orders.order_options(
        bootstrap_servers=servers,
        settings=settings,
        topic="orders",
        checkpoint=str(folder / "checkpoint"),
        output=str(folder / "output"),
        dead_letter_topic="orders.dead",
        window_topic="orders.windows",
    )
    with KafkaAdminClient({**settings, "bootstrap.servers": servers}) as admin:
        names = (made.topic, made.dead_letter_topic, made.window_topic)
        admin.create_topics([NewTopic(name, num_partitions=1) for name in names])
    return made


def properties(servers: str, settings: Mapping[str, str], folder: Path) -> Path:
    """A file as `--command-config` takes it, in which the password is in the environment."""
    lines = {"bootstrap.servers": servers, "config.providers": "env", **settings}
    text = "".join(f"{name}={value}\n" for name, value in lines.items())
    # Lines of a PEM are one value.
    escaped = text.replace(
        settings["ssl.truststore.certificates"], _one_line(settings["ssl.truststore.certificates"])
    )
    (folder / "client.properties").write_text(escaped.replace(SECRET, "${env:KAFKA_PASSWORD}"))
    return folder / "client.properties"


def _one_line(pem: str) -> str:
    return pem.strip().replace("\n", "\\n")


def run_the_pipeline(servers: str, settings: Mapping[str, str], folder: Path, exactly_once: bool) -> None:
    """Run `kclient pipeline events` and a replay, and look wherever a password could have got to."""
    from kclient.spark.pipelines import trial

    options = order_options(servers, settings, folder)
    file = properties(servers, settings, folder)
    start_ms = (time.time_ns() // 1_000_000 // 300_000 - 12) * 300_000
    expected = trial.send(list(orders.generate(RECORDS, start_ms, options)), options)
    seen: set[str] = set()
    with PipelineProcess(
        folder / "log",
        *("events", "--command-config", str(file), "--topic", options.topic, "--schema", options.schema),
        *(
            "--time-column",
            "time",
            "--required",
            ",".join(options.required),
            "--conditions",
            orders.CONDITION,
        ),
        *(
            "--max-lateness",
            str(options.max_lateness),
            "--max-ahead",
            str(options.max_ahead),
            "--group-by",
            "product",
        ),
        *("--sums", "amount", "--watermark", options.watermark, "--checkpoint", options.checkpoint),
        *("--output", options.output, "--dead-letter-topic", options.dead_letter_topic),
        *("--window-topic", options.window_topic),
    ) as program:

        def ended() -> bool:
            seen.update(command_lines())
            return program.ended

        wait_until(ended, DEADLINE_S, "the pipeline's end")
        program.finish(1)
        said = program.said()
    assert any("pyspark" in line for line in seen)
    assert not [line for line in seen if SECRET in line]
    assert SECRET not in said
    assert trial.differences(trial.outcome(options), expected) == []

    words = [
        "pipeline",
        "replay-dead-letters",
        "--command-config",
        str(file),
        "--topic",
        options.dead_letter_topic,
    ]
    delivery = "exactly_once" if exactly_once else "at_least_once"
    assert main([*words, "--reason", "yesterday|timestamp", "--delivery", delivery, "--execute"]) == 0
    for path in folder.rglob("*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes(), path


def command_lines() -> set[str]:
    """Those of everything that this test has started."""
    found = set()
    for process in psutil.Process().children(recursive=True):
        try:
            found.add(" ".join(process.cmdline()))
        except psutil.Error:
            continue  # it has ended meanwhile
    return found


def test_the_flagship_runs_secured_and_its_password_is_nowhere(
    kafka: EmbeddedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sessions.need()
    monkeypatch.setenv("KAFKA_PASSWORD", SECRET)
    run_the_pipeline(
        kafka.bootstrap_servers, client(authority_of(kafka), SECRET), tmp_path, exactly_once=False
    )
    captured = capsys.readouterr()
    assert SECRET not in captured.out + captured.err


@pytest.mark.kafka
@pytest.mark.soak
@pytest.mark.long
def test_it_does_on_a_real_kafka_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sessions.need()
    skip_if(missing())
    monkeypatch.setenv("KAFKA_PASSWORD", SECRET)
    (tmp_path / "certificates").mkdir()
    (tmp_path / "run").mkdir()
    authority = Authority(tmp_path / "certificates")
    settings = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue("127.0.0.1")),
        "listener.name.secure.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.secure.plain.sasl.jaas.config": f'{JAAS} required user_alice="{SECRET}";',
    }
    with RealKafka(listeners={"SECURE": "SASL_SSL"}, settings=settings) as kafka:
        servers = f"127.0.0.1:{kafka.ports['SECURE']}"
        run_the_pipeline(
            servers, client(authority.file.read_text(), SECRET), tmp_path / "run", exactly_once=True
        )


@pytest.mark.soak
@pytest.mark.long
def test_every_template_runs_secured(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    from kclient.spark.pipelines import trial
    from kclient.spark.pipelines.backfill import run_backfill
    from kclient.spark.pipelines.dead_letters import start_dead_letters
    from kclient.spark.pipelines.enrich import start_enrich
    from kclient.spark.pipelines.etl import start_etl
    from kclient.spark.pipelines.source import wait
    from kclient.spark.pipelines.windows import start_windows

    settings = {name: value for name, value in kafka.client_settings().items() if name != "bootstrap.servers"}
    (tmp_path / "table.csv").write_text("product,origin\nbread,Lyon\n")
    common: dict[str, Any] = {
        "bootstrap_servers": kafka.bootstrap_servers,
        "settings": settings,
        "topic": "templates",
        "schema": orders.SCHEMA,
        "time_column": "time",
    }
    with KafkaAdminClient(kafka.client_settings()) as admin:
        admin.create_topics(
            [NewTopic(name, num_partitions=1) for name in ("templates", "good", "bad", "rich", "sums")]
        )
    sent_from = orders.order_options(
        **{name: common[name] for name in ("bootstrap_servers", "settings", "topic")},
        checkpoint="c",
        output="o",
        dead_letter_topic="d",
        window_topic="w",
    )
    start_ms = 1_735_732_800_000
    sent = list(orders.generate(130, start_ms, sent_from))
    trial.send(sent, sent_from)

    def stream(name: str) -> dict[str, Any]:
        return {**common, "checkpoint": str(tmp_path / name)}

    with sessions.session() as spark:
        table = {"table": str(tmp_path / "table.csv"), "table_format": "csv", "join_on": ("product",)}
        for query in (
            start_etl(spark, EtlOptions(**stream("etl"), output=str(tmp_path / "etl-output"))),
            start_dead_letters(
                spark, DeadLetterOptions(**stream("letters"), output_topic="good", dead_letter_topic="bad")
            ),
            start_enrich(spark, EnrichOptions(**stream("enrich"), **table, output_topic="rich")),
            start_windows(spark, WindowOptions(**stream("windows"), output_topic="sums")),
        ):
            wait(spark, [query])
        end_ms = sent[-1].timestamp_ms + 1
        filled = BackfillOptions(**common, start_ms=start_ms, end_ms=end_ms, output=str(tmp_path / "filled"))
        done = run_backfill(spark, filled)
        assert done.records == len(sent)
        good = spark.read.parquet(str(tmp_path / "etl-output")).count()
    counts = {
        topic: len(trial.read_topic(kafka.bootstrap_servers, topic, settings))
        for topic in ("good", "bad", "rich", "sums")
    }
    assert counts.pop("sums") > 0
    assert counts == {"good": good, "bad": len(sent) - good, "rich": good}
    assert done.records - done.bad == good


def test_an_error_about_a_password_does_not_tell_it(kafka: EmbeddedKafka, tmp_path: Path) -> None:
    from pyspark.errors import StreamingQueryException

    from kclient.spark.pipelines.etl import start_etl
    from kclient.spark.pipelines.source import wait

    wrong = client(authority_of(kafka), f"{SECRET}-and-wrong")
    options = EtlOptions(
        bootstrap_servers=kafka.bootstrap_servers,
        settings=wrong,
        topic="orders",
        schema=orders.SCHEMA,
        time_column="time",
        checkpoint=str(tmp_path / "checkpoint"),
        output=str(tmp_path / "output"),
    )
    with sessions.session() as spark, pytest.raises(StreamingQueryException) as refused:
        wait(spark, [start_etl(spark, options)])
    assert "Authentication" in str(refused.value) or "authentication" in str(refused.value)
    assert SECRET not in str(refused.value)
    assert SECRET not in repr(options)
