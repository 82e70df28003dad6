"""Kafka's own tools read what kclient wrote, and the reverse."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.real_kafka.broker import RealKafka
from harness.topics import assert_read_back, new_topic, produce, read_all
from kclient.broker.embedded import EmbeddedKafka
from kclient.consumer import KafkaConsumer


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_the_console_consumer_reads_what_kclient_wrote(kafka: RealKafka, codec: str) -> None:
    topic = new_topic(kafka.bootstrap_servers, 1)
    produce(kafka.bootstrap_servers, topic, 200, **{"compression.type": codec})
    printed = kafka.tool(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", kafka.bootstrap_servers, "--topic", topic, "--from-beginning"),
        *("--max-messages", "200", "--timeout-ms", "20000"),
        *("--formatter-property", "print.key=true", "--formatter-property", "print.headers=true"),
    )
    assert printed.splitlines() == [f"n:{i},none:null\tk{i % 100}\tv{i}" for i in range(200)]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_kclient_reads_what_the_console_producer_wrote(kafka: RealKafka, codec: str) -> None:
    topic = new_topic(kafka.bootstrap_servers, 1)
    kafka.tool(
        "org.apache.kafka.tools.ConsoleProducer",
        *("--bootstrap-server", kafka.bootstrap_servers, "--topic", topic, "--compression-codec", codec),
        *("--reader-property", "parse.key=true", "--reader-property", "key.separator=:"),
        stdin="".join(f"k{i}:värde {i}\n" for i in range(200)).encode(),
    )
    records = read_all(kafka.bootstrap_servers, topic)
    assert [(r.key, r.value) for r in records] == [(b"k%d" % i, f"värde {i}".encode()) for i in range(200)]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_kafkas_tools_find_the_embedded_brokers_segments_sound(
    kafka: RealKafka, tmp_path: Path, codec: str
) -> None:
    with EmbeddedKafka(
        data_dir=tmp_path, **{"log.segment.bytes": "16384", "log.index.interval.bytes": "512"}
    ) as ours:
        topic = new_topic(ours.bootstrap_servers, 1)
        produce(ours.bootstrap_servers, topic, 2000, **{"compression.type": codec, "max.request.size": 4096})
        assert_read_back(read_all(ours.bootstrap_servers, topic), 2000)
    partition = next(tmp_path.rglob(f"{topic}-0"))
    logs = sorted(partition.glob("*.log"))
    assert len(logs) > 1 or codec != "none"
    values = []
    for log in logs:
        printed = kafka.tool(
            "org.apache.kafka.tools.DumpLogSegments",
            "--files",
            str(log),
            "--deep-iteration",
            "--print-data-log",
        )
        values += [line.rsplit("payload: ", 1)[1] for line in printed.splitlines() if "payload: " in line]
        assert "Found" not in printed
        assert "isvalid: false" not in printed
    assert values == [f"v{i}" for i in range(2000)]
    for index in sorted([*partition.glob("*.index"), *partition.glob("*.timeindex")]):
        arguments = ["--index-sanity-check"] if index.suffix == ".index" else []
        printed = kafka.tool("org.apache.kafka.tools.DumpLogSegments", "--files", str(index), *arguments)
        assert "mismatch" not in printed.lower()
        assert "Found" not in printed


def test_kafkas_tools_read_the_embedded_brokers_committed_offsets(kafka: RealKafka, tmp_path: Path) -> None:
    with EmbeddedKafka({"offsets.topic.num.partitions": "1"}, data_dir=tmp_path) as ours:
        topic = new_topic(ours.bootstrap_servers, 1)
        produce(ours.bootstrap_servers, topic, 30)
        with KafkaConsumer(
            bootstrap_servers=ours.bootstrap_servers, group_id="dumped", auto_offset_reset="earliest"
        ) as consumer:
            consumer.subscribe([topic])
            seen = 0
            while seen < 30:
                seen += len(consumer.poll(500))
            consumer.commit_sync()
    logs = sorted(next(tmp_path.rglob("__consumer_offsets-0")).glob("*.log"))
    printed = "".join(
        kafka.tool("org.apache.kafka.tools.DumpLogSegments", "--files", str(log), "--offsets-decoder")
        for log in logs
    )
    assert '"group":"dumped"' in printed
    assert f'"topic":"{topic}"' in printed
    assert '"offset":30' in printed
