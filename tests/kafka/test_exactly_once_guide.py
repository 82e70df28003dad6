"""The programs of docs/exactly-once.md run as they stand, on a real broker."""

from __future__ import annotations

from pathlib import Path

from harness.guides import python_blocks, run_block
from harness.real_kafka.broker import RealKafka
from harness.topics import read_all
from kclient import KafkaProducer


def committed(servers: str, topic: str) -> list[bytes | None]:
    return [record.value for record in read_all(servers, topic, isolation_level="read_committed")]


def test_the_programs_of_the_guide_do_what_it_says(kafka: RealKafka, tmp_path: Path) -> None:
    servers = kafka.bootstrap_servers
    transaction, loop = (
        block.replace("localhost:9092", servers) for block in python_blocks("docs/exactly-once.md")
    )
    run_block(transaction, tmp_path)
    assert committed(servers, "orders") == [b"created"]
    assert committed(servers, "audit") == [b"order 17 created"]
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for word in (b"a", b"b", b"c"):
            producer.send("words", word)
    run_block(loop, tmp_path)
    assert sorted(committed(servers, "shouted"), key=str) == [b"A", b"B", b"C"]
