"""Fetches whose limits are smaller than the data."""

from __future__ import annotations

from collections import Counter

import pytest

from harness.scenarios.reading import read_beside_a_record_that_is_too_large
from harness.topics import new_topic, read_all
from kclient.producer import KafkaProducer


@pytest.mark.parametrize("fetch_max_bytes", [1, 2500, 10_000])
def test_partitions_for_which_a_fetch_has_no_room_left_are_read_later(
    servers: str, fetch_max_bytes: int
) -> None:
    topic = new_topic(servers, 4)
    with KafkaProducer(bootstrap_servers=servers, linger_ms=0, batch_size=0) as producer:
        for number in range(80):
            producer.send(topic, b"%04d" % number + bytes(1000), partition=number % 4)
    records = read_all(servers, topic, **{"fetch.max.bytes": fetch_max_bytes})
    assert Counter(int((record.value or b"")[:4]) for record in records) == Counter(range(80))


def test_partitions_without_anything_new_do_not_keep_the_others_waiting(servers: str) -> None:
    topic = new_topic(servers, 3)
    with KafkaProducer(bootstrap_servers=servers, linger_ms=0, batch_size=0) as producer:
        for number in range(200):
            producer.send(topic, b"%04d" % number + bytes(1000), partition=1)
    # A single wait for the two that are empty would outlast the deadline of the reading.
    wait = {"fetch.max.wait.ms": 100_000, "request.timeout.ms": 200_000, "max.poll.records": 3}
    records = read_all(servers, topic, **wait, **{"max.partition.fetch.bytes": 5000})
    assert [int((record.value or b"")[:4]) for record in records] == list(range(200))


def test_a_record_that_no_answer_may_bring_is_told_of_and_stops_no_other_partition(servers: str) -> None:
    read_beside_a_record_that_is_too_large(servers)
