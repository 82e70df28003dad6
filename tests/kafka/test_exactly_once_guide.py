"""The programs of docs/exactly-once.md run as they stand, on a real broker."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from harness.real_kafka.broker import RealKafka
from harness.topics import read_all
from kclient import KafkaProducer

GUIDE = Path(__file__).parent.parent.parent / "docs" / "exactly-once.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def run(block: str, servers: str) -> None:
    program = block.replace("localhost:9092", servers)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def committed(servers: str, topic: str) -> list[bytes | None]:
    return [record.value for record in read_all(servers, topic, isolation_level="read_committed")]


def test_the_programs_of_the_guide_do_what_it_says(kafka: RealKafka) -> None:
    servers = kafka.bootstrap_servers
    transaction, loop = BLOCKS
    run(transaction, servers)
    assert committed(servers, "orders") == [b"created"]
    assert committed(servers, "audit") == [b"order 17 created"]
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for word in (b"a", b"b", b"c"):
            producer.send("words", word)
    run(loop, servers)
    assert sorted(committed(servers, "shouted"), key=str) == [b"A", b"B", b"C"]
