"""A producer that sends a little to each of many partitions."""

from __future__ import annotations

import time

from harness.network.scripted_broker import ScriptedBroker
from harness.producer.model import Server
from harness.waiting import wait_until

PARTITIONS = 1000
_BUFFER = 2 << 20
"""Less than is sent in all."""


def test_a_megabyte_a_second_to_a_thousand_partitions_is_kept_up_with_in_little_memory() -> None:
    seconds, size = 3, 1000
    with ScriptedBroker(topics={"t": PARTITIONS}) as broker:
        server = Server(broker)
        with server.producer(buffer_memory=_BUFFER, linger_ms=20, max_block_ms=1000) as producer:
            producer.partitions_for("t")
            began = time.monotonic()
            futures = []
            for number in range(seconds * 1000):
                wait_until(lambda number=number: time.monotonic() - began > number / 1000)  # type: ignore[misc]
                futures.append(
                    producer.send("t", b"%04d" % number + bytes(size), partition=number % PARTITIONS)
                )
            producer.flush(20_000)
            metrics = {name.name: value for name, value in producer.metrics().items()}
        assert [future.result(0).offset for future in futures] == [
            n // PARTITIONS for n in range(len(futures))
        ]
        assert metrics["bufferpool-wait-time-ns-total"] < 1e9, "it did not keep up"
        assert metrics["buffer-available-bytes"] == _BUFFER
        assert time.monotonic() - began < 30
    assert all(len(log.values) == seconds for log in server.logs.logs.values())
