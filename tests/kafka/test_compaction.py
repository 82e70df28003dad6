"""Kafka and kclient compact alike, and Kafka's tools find cleaned segments sound."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from harness.broker.cleaning import clean, end_transaction, put
from harness.broker.logs import LogHarness
from harness.real_kafka.broker import RealKafka
from harness.topics import new_topic, read_all
from harness.waiting import wait_until
from kclient.broker.embedded import EmbeddedKafka
from kclient.broker.log.config import LogConfig
from kclient.compress import CompressionType
from kclient.producer import KafkaProducer

Survivors = list[tuple[int, "bytes | None", "bytes | None"]]

COUNT = 1000


@pytest.mark.parametrize("codec", list(CompressionType))
def test_kafkas_tools_find_cleaned_segments_sound(
    kafka: RealKafka, tmp_path: Path, codec: CompressionType
) -> None:
    harness = LogHarness(tmp_path)
    config = LogConfig(
        cleanup_policy=("compact",),
        segment_bytes=6000,
        index_interval_bytes=100,
        delete_retention_ms=10,
        file_delete_delay_ms=0,
    )
    log = harness.open(config, clean=True)
    chance = random.Random(1)
    for i in range(200):
        harness.time.advance(1)
        pairs = [
            (b"k%d" % chance.randrange(40), None if chance.random() < 0.2 else b"%d" % i) for _ in range(5)
        ]
        pid = chance.choice([-1, 7, 8])
        put(harness, log, *pairs, pid=pid, seq=5 * i, transactional=pid > 0, compression=codec)
        if pid > 0 and chance.random() < 0.7:
            end_transaction(harness, log, pid, commit=chance.random() < 0.5)
    for pid in (7, 8):
        end_transaction(harness, log, pid, commit=True)
    log.roll()
    for _ in range(3):
        clean(harness, log)
        harness.run_due(11)
    log.close()
    harness.close()
    logs = sorted(harness.directory.glob("*.log"))
    assert sum(path.stat().st_size for path in logs) > 500
    files = ",".join(map(str, logs))
    printed = kafka.tool("org.apache.kafka.tools.DumpLogSegments", "--files", files, "--deep-iteration")
    assert "isvalid: true" in printed
    assert "isvalid: false" not in printed
    assert "Found" not in printed
    assert "deleteHorizonMs: OptionalLong[" in printed
    for index in sorted(
        path for kind in ("index", "timeindex", "txnindex") for path in harness.directory.glob(f"*.{kind}")
    ):
        arguments = ["--index-sanity-check"] if index.suffix == ".index" else []
        printed = kafka.tool("org.apache.kafka.tools.DumpLogSegments", "--files", str(index), *arguments)
        assert "mismatch" not in printed.lower()
        assert "Found" not in printed


def write(servers: str, topic: str) -> None:
    """Send the same records in the same order to whichever broker."""
    chance = random.Random(5)
    with KafkaProducer({"bootstrap.servers": servers, "compression.type": "gzip"}) as producer:
        sent = []
        for i in range(COUNT):
            value = None if chance.random() < 0.2 else b"v%d" % i
            sent.append(producer.send(topic, value, key=b"k%d" % chance.randrange(100)))
        assert [future.result(30).offset for future in sent] == list(range(COUNT))


def survivors(servers: str, topic: str) -> Survivors:
    """Compact what `write` has sent, and read what is left of it."""
    found: Survivors = []
    with KafkaProducer({"bootstrap.servers": servers}) as producer:

        def compacted() -> bool:
            # A segment is closed by a record that comes when its time is over.
            producer.send(topic, b"v", key=b"filler").result(30)
            found[:] = [(r.offset, r.key, r.value) for r in read_all(servers, topic) if r.offset < COUNT]
            return len(found) <= 100

        wait_until(compacted, 90, "compaction")
    return found


def test_the_same_records_survive(kafka: RealKafka) -> None:
    settings = {
        "cleanup_policy": "compact",
        "segment_ms": "1000",
        "min_cleanable_dirty_ratio": "0.01",
    }
    topic = new_topic(kafka.bootstrap_servers, 1, **settings)
    write(kafka.bootstrap_servers, topic)
    theirs = survivors(kafka.bootstrap_servers, topic)
    with EmbeddedKafka({"log.cleaner.backoff.ms": 100}) as ours:
        topic = new_topic(ours.bootstrap_servers, 1, **settings)
        write(ours.bootstrap_servers, topic)
        assert survivors(ours.bootstrap_servers, topic) == theirs
    assert any(value is None for _, _, value in theirs)
