"""Records that no deserializer can read, on the embedded broker: raised, left out, or replaced by a function."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from harness.asyncio_faces import Consumer
from harness.topics import DEADLINE_S, new_topic
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import KafkaConsumer
from kclient.errors import RecordDeserializationError
from kclient.producer import KafkaProducer
from kclient.serialization import JsonDeserializer

SETTING = "kclient.on.deserialization.error"


@pytest.fixture(params=["none", "gzip"])
def topic(servers: str, request: pytest.FixtureRequest) -> str:
    """A topic with thirty records, every third of which is no JSON, and the last one neither."""
    name = new_topic(servers, 1)
    with KafkaProducer(bootstrap_servers=servers, compression_type=request.param) as producer:
        for number in range(30):
            producer.send(name, b"{" if number % 3 == 2 else b"%d" % number, headers=[("n", b"%d" % number)])
    return name


def settings(servers: str, topic: str, **more: object) -> dict[str, Any]:
    return {
        "bootstrap.servers": servers,
        "group.id": f"g-{topic}",
        "auto.offset.reset": "earliest",
        "value.deserializer": JsonDeserializer(),
        "max.poll.records": 4,
        **more,
    }


def read(consumer: KafkaConsumer[Any, Any], count: int) -> list[Any]:
    found: list[Any] = []
    deadline = time.monotonic() + DEADLINE_S
    while len(found) < count:
        assert time.monotonic() < deadline, f"{len(found)} records came"
        found += consumer.poll(500)
    return found


GOOD = [number for number in range(30) if number % 3 != 2]


def test_records_left_out_are_behind_the_committed_offset(servers: str, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    with KafkaConsumer(settings(servers, topic, **{SETTING: "skip"})) as consumer:
        consumer.subscribe([topic])
        assert [record.value for record in read(consumer, 20)] == GOOD
        while consumer.position(tp) < 30:
            assert not consumer.poll(100)
        assert consumer.metrics()["records-left-out-total"] == 10
    with KafkaConsumer(settings(servers, topic)) as consumer:
        assert consumer.committed([tp])[tp].offset == 30  # type: ignore[union-attr]
        consumer.subscribe([topic])
        assert not consumer.poll(1000), "nobody hears of them again"


def test_a_loop_leaves_them_out_and_commits_what_it_has_given_out(servers: str, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    with KafkaConsumer(
        settings(servers, topic, **{SETTING: "skip", "enable.auto.commit": False})
    ) as consumer:
        consumer.subscribe([topic])
        for record in consumer:
            if record.value == 12:
                consumer.commit_sync()
                break
        assert consumer.committed([tp])[tp].offset == 13  # type: ignore[union-attr]


def test_a_function_runs_on_the_thread_of_the_call_and_puts_values_in_their_place(
    servers: str, topic: str
) -> None:
    threads = set()

    def instead(error: RecordDeserializationError) -> Any:
        threads.add(threading.current_thread())
        return dict(error.headers)["n"]

    with KafkaConsumer(settings(servers, topic, **{SETTING: instead})) as consumer:
        consumer.subscribe([topic])
        values = [record.value for record in read(consumer, 30)]
    assert values == [b"%d" % number if number % 3 == 2 else number for number in range(30)]
    assert threads == {threading.current_thread()}


def test_what_is_raised_loses_no_record(servers: str, topic: str) -> None:
    tp = TopicPartition(topic, 0)
    found: list[Any] = []
    errors = []
    with KafkaConsumer(settings(servers, topic)) as consumer:
        consumer.subscribe([topic])
        while len(found) + len(errors) < 30:
            try:
                found += consumer.poll(500)
            except RecordDeserializationError as error:
                errors.append(
                    (error.offset, consumer.position(tp), error.value, error.headers, error.timestamp_type)
                )
                consumer.seek(tp, error.offset + 1)
    assert [record.value for record in found] == GOOD
    assert errors == [(n, n, b"{", (("n", b"%d" % n),), 0) for n in range(2, 30, 3)]


def test_a_member_that_raises_leaves_the_record_to_who_comes_next(servers: str, topic: str) -> None:
    def refuse(_error: RecordDeserializationError) -> Any:
        raise LookupError("nothing in its place")

    def fail() -> None:
        with KafkaConsumer(settings(servers, topic, **{SETTING: refuse})) as consumer:
            consumer.subscribe([topic])
            read(consumer, 30)

    with pytest.raises(LookupError, match="nothing in its place"):
        fail()
    with KafkaConsumer(settings(servers, topic, **{SETTING: "skip"})) as consumer:
        consumer.subscribe([topic])
        assert [record.value for record in read(consumer, 18)] == GOOD[2:]


@pytest.mark.parametrize("as_loop", [False, True])
def test_coroutines_do_not_see_them(servers: str, topic: str, as_loop: bool) -> None:
    async def main() -> list[Any]:
        found: list[Any] = []
        wanted: Any = {
            name.replace(".", "_"): value
            for name, value in settings(servers, topic, **{SETTING: "skip"}).items()
        }
        async with Consumer(**wanted) as consumer:
            consumer.subscribe([topic])
            while len(found) < 20:
                if as_loop:
                    found.append(await anext(consumer))
                else:
                    found += await consumer.poll(500)
            await consumer.commit()
            tp = TopicPartition(topic, 0)
            assert (await consumer.committed(tp))[tp].offset in (29, 30)  # type: ignore[union-attr]
        return [record.value for record in found]

    assert asyncio.run(asyncio.wait_for(main(), DEADLINE_S)) == GOOD


def test_columns_have_the_bytes_as_they_are(servers: str, topic: str) -> None:
    asked: list[Callable[..., Any]] = []
    with KafkaConsumer(settings(servers, topic, **{SETTING: asked.append})) as consumer:
        consumer.subscribe([topic])
        values: list[Any] = []
        while len(values) < 30:
            for columns in consumer.poll_columns(500).values():
                values += columns.values
    assert values.count(b"{") == 10
    assert not asked
