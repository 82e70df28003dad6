"""The public face: arguments, serializers, interceptors; against a scripted broker on a real socket."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from typing import Any

import attrs
import pytest

from harness.network.ports import closed_port
from harness.producer.model import Server
from harness.waiting import wait_until
from kclient.errors import (
    ClientClosedError,
    ConfigError,
    IllegalStateError,
    InvalidTopicError,
    KafkaTimeoutError,
    RecordTooLargeError,
    SerializationError,
)
from kclient.producer import (
    KafkaProducer,
    ProducerRecord,
    RecordMetadata,
    RoundRobinPartitioner,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.serialization import StringSerializer
from kclient.utils.futures import KafkaFuture


def test_a_record_arrives_with_key_headers_and_timestamp(server: Server) -> None:
    with server.producer() as producer:
        future = producer.send(
            "t", b"v", key=b"k", headers=[("h", b"1"), ("n", None)], timestamp_ms=5, partition=2
        )
        metadata = future.result(10)
    assert isinstance(future, KafkaFuture)
    assert metadata == RecordMetadata("t", 2, 0, 5, 1, 1)
    assert type(metadata) is RecordMetadata
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        metadata.offset = 1
    (record,) = server.records()
    assert (record.key, record.value, record.timestamp_ms) == (b"k", b"v", 5)
    assert tuple(record.headers) == (("h", b"1"), ("n", None))


def test_null_and_empty_are_not_the_same(server: Server) -> None:
    with server.producer() as producer:
        producer.send("t", None, key=b"", partition=0)
        producer.send("t", b"", key=None, partition=0)
    assert [(record.key, record.value) for record in server.records()] == [(b"", None), (None, b"")]


def test_a_producer_record_may_be_sent_as_it_is(server: Server) -> None:
    with server.producer() as producer:
        record = ProducerRecord("t", b"v", key=b"k", partition=1)
        assert producer.send(record).result(10).partition == 1
        with pytest.raises(TypeError, match="from the record"):
            producer.send(record, b"other")  # type: ignore[call-overload]


def test_keys_go_where_java_puts_them_and_ignore_keys_ignores_them(server: Server) -> None:
    server.broker.topics["many"] = 100
    with server.producer() as producer:
        assert producer.send("many", b"v", key=b"b3").result(10).partition == 29
        assert producer.send("many", b"v", key=b"5").result(10).partition == 50
    with server.producer(partitioner_ignore_keys=True, batch_size=0) as producer:
        futures = [producer.send("many", b"v", key=b"b3") for _ in range(30)]
        assert len({future.result(10).partition for future in futures}) > 5


@pytest.mark.parametrize("linger_ms", [0, 5])
def test_a_coroutine_awaits_what_it_sends(server: Server, linger_ms: int) -> None:
    async def run(producer: KafkaProducer[bytes, bytes]) -> list[int]:
        alone = [(await producer.send("t", b"v", partition=0)).offset for _ in range(5)]
        together = await asyncio.gather(*(producer.send("t", b"v", partition=0) for _ in range(100)))
        many = await producer.send_many("t", [b"v"] * 5, partition=0)
        return [*alone, *(metadata.offset for metadata in together), many[0].base_offset]

    with server.producer(linger_ms=linger_ms) as producer:
        assert asyncio.run(run(producer)) == list(range(106))


def test_a_custom_partitioner_decides_and_is_closed(server: Server) -> None:
    class Mine:
        closed = 0
        seen: tuple[Any, ...] = ()

        def partition(
            self, topic: str, key: Any, key_bytes: Any, value: Any, value_bytes: Any, cluster: Any
        ) -> int:
            self.seen = (topic, key, key_bytes, value, value_bytes, cluster.partition_count(topic))
            return 2 if value == "good" else 99

        def close(self) -> None:
            self.closed += 1

    mine = Mine()
    with server.producer(partitioner_class=mine, value_serializer=StringSerializer()) as producer:
        assert producer.send("t", "good", key=b"k").result(10).partition == 2
        assert mine.seen == ("t", b"k", b"k", "good", b"good", 3)
        with pytest.raises(ValueError, match="99"):
            producer.send("t", "bad")
    producer.close()
    assert mine.closed == 1


def test_round_robin_spreads_records_one_by_one(server: Server) -> None:
    with server.producer(partitioner_class=RoundRobinPartitioner) as producer:
        futures = [producer.send("t", b"v") for _ in range(6)]
        assert [future.result(10).partition for future in futures] == [0, 1, 2, 0, 1, 2]


def test_what_a_serializer_refuses_is_raised_by_send_and_nothing_is_sent(server: Server) -> None:
    def explode(value: object) -> bytes:
        raise RuntimeError("mine")

    with server.producer(value_serializer=explode) as producer, pytest.raises(SerializationError) as caught:
        producer.send("t", b"v")
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert server.records() == []


def test_text_is_never_encoded_silently(server: Server) -> None:
    with server.producer() as producer:
        with pytest.raises(SerializationError, match=r"value\.serializer"):
            producer.send("t", "text")
        with pytest.raises(SerializationError, match=r"key\.serializer"):
            producer.send("t", b"v", key="text")


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"topic": ""}, InvalidTopicError, "topic"),
        ({"topic": "a/b"}, InvalidTopicError, "a/b"),
        ({"topic": "x" * 250}, InvalidTopicError, "249"),
        ({"topic": None}, TypeError, "topic"),
        ({"partition": -1}, ValueError, "partition"),
        ({"partition": "1"}, TypeError, "partition"),
        ({"timestamp_ms": -2}, ValueError, "timestamp_ms"),
        ({"headers": [(None, b"")]}, TypeError, "headers"),
        ({"headers": {"k": b"v"}}, TypeError, "headers"),
        ({"on_delivery": 5}, TypeError, "on_delivery"),
        ({"value": b"x" * 2_000_000}, RecordTooLargeError, r"max\.request\.size"),
    ],
)
def test_what_is_wrong_with_a_record_is_raised_at_once(
    server: Server, arguments: dict[str, Any], error: type[Exception], match: str
) -> None:
    arguments = {"topic": "t", "value": b"v", **arguments}
    with server.producer() as producer, pytest.raises(error, match=match):
        producer.send(arguments.pop("topic"), arguments.pop("value"), **arguments)
    assert server.records() == []


def test_an_unknown_topic_is_waited_for_and_named_with_servers_and_setting(server: Server) -> None:
    with server.producer(max_block_ms=200) as producer, pytest.raises(KafkaTimeoutError) as caught:
        producer.send("missing", b"v")
    for part in ("missing", server.broker.bootstrap, "max.block.ms"):
        assert part in str(caught.value)


def test_a_topic_that_appears_within_max_block_is_sent_to(server: Server) -> None:
    with server.producer(retry_backoff_ms=10) as producer:
        timer = threading.Timer(0.2, lambda: server.broker.topics.update(late=1))
        timer.start()
        assert producer.send("late", b"v").result(10).topic == "late"
        timer.join()


def test_a_partition_that_is_not_there_is_waited_for_and_named_with_count_and_setting(server: Server) -> None:
    with server.producer(max_block_ms=1000, retry_backoff_ms=10) as producer:
        for send in (producer.send, lambda *_, **named: producer.send_many("t", [b"v"], **named)):
            with pytest.raises(KafkaTimeoutError) as caught:
                send("t", b"v", partition=999)
            for part in ("Partition 999 of topic t", "3 partitions", "1000 ms", "max.block.ms"):
                assert part in str(caught.value)
        values = {name.name: value for name, value in producer.metrics().items()}
    assert values["metadata-wait-time-ns-total"] >= 1_900_000_000  # two waits, each told in whole ms
    assert server.records() == []


def test_a_partition_that_appears_within_max_block_is_sent_to(server: Server) -> None:
    with server.producer(retry_backoff_ms=10) as producer:
        assert len(producer.partitions_for("t")) == 3
        asked = len(server.broker.received(ApiKeys.METADATA))

        def grow() -> None:
            wait_until(lambda: len(server.broker.received(ApiKeys.METADATA)) > asked + 2)
            server.broker.topics.update(t=5)

        thread = threading.Thread(target=grow)
        thread.start()
        assert producer.send("t", b"v", partition=4).result(20).partition == 4
        thread.join()


def test_no_broker_at_all_ends_with_max_block_and_close_does_not_hang() -> None:
    started = time.monotonic()
    producer = KafkaProducer(bootstrap_servers=f"127.0.0.1:{closed_port()}", max_block_ms=200)
    with producer, pytest.raises(KafkaTimeoutError, match=r"bootstrap\.servers"):
        producer.send("t", b"v")
    assert time.monotonic() - started < 30


def test_a_missing_server_list_is_told_with_the_way_out() -> None:
    with pytest.raises(ConfigError, match="embedded://"):
        KafkaProducer()


def test_callbacks_run_on_the_io_thread_and_get_metadata_and_no_error(server: Server) -> None:
    told: list[tuple[Any, Any, bool]] = []
    with server.producer() as producer:
        producer.send(
            "t",
            b"v",
            on_delivery=lambda metadata, error: told.append(
                (metadata.offset, error, threading.current_thread() is threading.main_thread())
            ),
        )
        producer.flush()
        assert told == [(0, None, False)]


def test_a_callback_may_send_and_close_but_not_flush(server: Server) -> None:
    outcome: list[Any] = []
    producer = server.producer()

    def callback(metadata: Any, error: Any) -> None:
        try:
            producer.flush()
        except IllegalStateError as refused:
            outcome.append(refused)
        outcome.append(producer.send("t", b"second"))
        producer.close()

    producer.send("t", b"first", on_delivery=callback)
    wait_until(lambda: not producer._core.io_thread.alive)
    assert isinstance(outcome[0], IllegalStateError)
    assert isinstance(outcome[1].exception(5), ClientClosedError)
    producer.close()


def test_interceptors_see_and_change_records_and_their_faults_are_only_logged(
    server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[tuple[Any, Any]] = []

    class Upper:
        def on_send(self, record: ProducerRecord[Any, Any]) -> ProducerRecord[Any, Any]:
            return ProducerRecord(record.topic, record.value.upper(), partition=1)

        def on_acknowledgement(self, metadata: RecordMetadata, error: Any) -> None:
            told.append((metadata.offset, error))

        def close(self) -> None:
            told.append(("closed", None))

    class Faulty:
        def on_send(self, record: Any) -> Any:
            raise RuntimeError("odd")

        def on_acknowledgement(self, metadata: Any, error: Any) -> None:
            raise RuntimeError("odd")

    mine: list[Any] = []
    with server.producer(interceptor_classes=[Faulty(), Upper]) as producer:
        producer.send("t", b"v", on_delivery=lambda metadata, error: mine.append(metadata.offset)).result(10)
        with pytest.raises(SerializationError):
            producer.send(ProducerRecord("t", "text"))
    assert [record.value for record in server.records()] == [b"V"]
    assert mine == [0]
    assert told[0] == (0, None)
    assert told[1][0] == -1
    assert isinstance(told[1][1], SerializationError)
    assert told[2] == ("closed", None)
    assert "Faulty" in caplog.text


def test_partitions_for_tells_leaders(server: Server) -> None:
    with server.producer() as producer:
        assert [info.partition for info in producer.partitions_for("t")] == [0, 1, 2]


def test_metrics_have_javas_names(server: Server) -> None:
    with server.producer(client_id="me") as producer:
        producer.send("t", b"v").result(10)
        values = {name.name: value for name, value in producer.metrics().items()}
        assert {dict(name.tags)["client-id"] for name in producer.metrics()} == {"me"}
        assert producer.metrics()["record-send-total"] == 1
    assert values["record-send-total"] == 1
    assert values.keys() >= {
        "bufferpool-wait-time-ns-total",
        "flush-time-ns-total",
        "metadata-wait-time-ns-total",
    }
    assert values["buffer-total-bytes"] == 33_554_432


def test_flush_with_nothing_to_send_returns_and_a_timeout_tells_how_much_is_left(server: Server) -> None:
    with server.producer() as producer:
        producer.flush()
        server.broker.on(ApiKeys.PRODUCE, lambda h, m: time.sleep(0.3) or server.logs.produce(m))
        producer.send("t", b"v")
        with pytest.raises(KafkaTimeoutError, match="1 records"):
            producer.flush(timeout_ms=20)
        producer.flush(timeout_ms=10_000)


def test_a_batch_that_is_closed_while_a_record_is_on_its_way_into_it_is_no_error(server: Server) -> None:
    class ClosedMeanwhile:
        """A builder whose batch the I/O thread closes between two looks of the application's thread."""

        looks = 0

        def __init__(self, builder: Any) -> None:
            self.builder = builder

        @property
        def open(self) -> Any:
            self.looks += 1
            return self.builder if self.looks == 1 else None

    with server.producer(linger_ms=60_000) as producer:
        producer.send("t", b"a")
        topic = producer._core.accumulator.topic("t")
        queue = topic.sticky_queue
        assert queue is not None
        for headers in ((), [("with", b"headers")]):  # the short way and the long one
            topic.sticky_queue = ClosedMeanwhile(queue.open)  # type: ignore[assignment]
            producer.send("t", b"b", headers=headers, on_delivery=lambda metadata, error: None)
        topic.sticky_queue = queue
    assert [record.value for record in server.records()] == [b"a", b"b", b"b"]


def test_many_threads_share_a_producer(server: Server) -> None:
    with server.producer(linger_ms=1) as producer:
        futures: dict[int, list[KafkaFuture[RecordMetadata]]] = {}

        def send(who: int) -> None:
            futures[who] = [producer.send("t", b"%d:%d" % (who, i), partition=who % 3) for i in range(500)]

        threads = [threading.Thread(target=send, args=(who,)) for who in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        producer.flush(60_000)
        for mine in futures.values():
            offsets = [future.result(0).offset for future in mine]
            assert offsets == sorted(set(offsets))
    values = [record.value for record in server.records()]
    assert len(values) == len(set(values)) == 8000


def test_logs_name_the_client_and_hold_no_payload(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "kclient"), server.producer(client_id="me") as producer:
        producer.send("t", b"top-secret").result(10)
    assert "clientId=me" in caplog.text
    assert "top-secret" not in caplog.text
