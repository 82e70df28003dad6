"""Records through a network and brokers that misbehave: nothing acknowledged is lost, nothing comes twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.network.proxy import FaultProxy
from harness.network.scripted_broker import Reply, ScriptedBroker
from harness.topics import new_topic, read_all
from kclient.broker.embedded import EmbeddedKafka
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import KafkaConsumer
from kclient.errors import BufferExhaustedError, Errors, KafkaError, KafkaTimeoutError, UnknownServerError
from kclient.producer import KafkaProducer
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.api_versions import ApiVersionsResponse
from kclient.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from kclient.protocol.messages.init_producer_id import InitProducerIdResponse
from kclient.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)


@pytest.fixture(scope="module")
def proxy() -> Iterator[FaultProxy]:
    """A proxy before a broker that clients know by the proxy's address."""
    # The port that the broker names in its metadata has to be the proxy's.
    with (
        FaultProxy(("127.0.0.1", 1)) as made,
        EmbeddedKafka(advertised_listeners=f"PLAINTEXT://127.0.0.1:{made.port}") as kafka,
    ):
        broker = kafka._broker
        assert broker is not None
        made.target = broker.address
        yield made
        made.drop_connections()


@pytest.fixture(autouse=True)
def no_rules(request: pytest.FixtureRequest) -> Iterator[None]:
    yield
    if "proxy" in request.fixturenames:
        request.getfixturevalue("proxy").clear()


_QUICK = {
    "retry.backoff.ms": 5,
    "retry.backoff.max.ms": 50,
    "reconnect.backoff.ms": 5,
    "reconnect.backoff.max.ms": 50,
}

FAULTS: dict[str, Callable[[FaultProxy, ApiKeys], Any]] = {
    "cut request": lambda p, api: p.cut(api, 9, on_response=False),
    "reset request": lambda p, api: p.reset(api, 30, on_response=False),
    "cut response": lambda p, api: p.cut(api, 3),
    "cut before response": lambda p, api: p.cut(api, 0),
    "reset response": lambda p, api: p.reset(api, 20),
    "swallowed response": lambda p, api: p.swallow(api),
    "swallowed request": lambda p, api: p.swallow(api, on_response=False),
    "blackhole": lambda p, api: p.blackhole(api),
    "delayed": lambda p, api: p.delay(api, 300),
    "wrong correlation id": lambda p, api: p.corrupt(api, 3),
    "answered twice": lambda p, api: p.duplicate(api),
    "dripped": lambda p, api: p.drip(api, 2000),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_while_producing_loses_nothing_and_doubles_nothing(proxy: FaultProxy, fault: str) -> None:
    topic = new_topic(proxy.bootstrap, 1)
    settings = {"bootstrap.servers": proxy.bootstrap, "request.timeout.ms": 700, "linger.ms": 0, **_QUICK}
    with KafkaProducer(settings) as producer:
        futures = [producer.send(topic, b"0")]
        futures[0].result(20)
        rule = FAULTS[fault](proxy, ApiKeys.PRODUCE)
        futures += [producer.send(topic, b"%d" % i) for i in range(1, 40)]
        offsets = [future.result(30).offset for future in futures]
    assert rule.hits == 1
    proxy.clear()
    records = read_all(proxy.bootstrap, topic)
    assert [record.value for record in records] == [b"%d" % i for i in range(40)]
    known = [(i, offset) for i, offset in enumerate(offsets) if offset >= 0]
    assert all(records[offset].value == b"%d" % i for i, offset in known)


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_while_consuming_skips_nothing_and_repeats_nothing(proxy: FaultProxy, fault: str) -> None:
    topic = new_topic(proxy.bootstrap, 1)
    with KafkaProducer(bootstrap_servers=proxy.bootstrap) as producer:
        for i in range(40):
            producer.send(topic, b"%d" % i)
    rule = FAULTS[fault](proxy, ApiKeys.FETCH)
    settings = {
        "bootstrap.servers": proxy.bootstrap,
        "request.timeout.ms": 700,
        "fetch.max.wait.ms": 100,
        "auto.offset.reset": "earliest",
        **_QUICK,
    }
    values: list[bytes | None] = []
    with KafkaConsumer(settings) as consumer:
        consumer.assign([TopicPartition(topic, 0)])
        deadline = time.monotonic() + 30
        while len(values) < 40:
            assert time.monotonic() < deadline, f"{len(values)} records"
            values += [record.value for record in consumer.poll(200)]
        values += [record.value for record in consumer.poll(300)]
    assert values == [b"%d" % i for i in range(40)]
    assert rule.hits == 1


# Brokers that answer nonsense.


def answering(broker: ScriptedBroker) -> None:
    """Have `broker` give producer ids and accept records."""
    broker.on(
        ApiKeys.INIT_PRODUCER_ID,
        lambda header, message: InitProducerIdResponse(producer_id=1, producer_epoch=0),
    )
    broker.on(ApiKeys.PRODUCE, produced(0))


def produced(code: int, throttle_ms: int = 0) -> Callable[[Any, Any], ProduceResponse]:
    def answer(_header: Any, message: Any) -> ProduceResponse:
        return ProduceResponse(
            responses=[
                TopicProduceResponse(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partition_responses=[
                        PartitionProduceResponse(index=p.index, error_code=code, base_offset=7)
                        for p in topic.partition_data
                    ],
                )
                for topic in message.topic_data
            ],
            throttle_time_ms=throttle_ms,
        )

    return answer


def scripted() -> ScriptedBroker:
    """A broker of the time before topic ids in produce and fetch requests."""
    broker = ScriptedBroker(topics={"t": 1})
    broker.versions[ApiKeys.PRODUCE] = (3, 12)
    broker.versions[ApiKeys.FETCH] = (4, 12)
    return broker


@pytest.mark.parametrize(
    "frame",
    [
        (-1).to_bytes(4, "big", signed=True),
        (2**31 - 1).to_bytes(4, "big"),
        (104_857_601).to_bytes(4, "big"),
        (0).to_bytes(4, "big"),
        (4).to_bytes(4, "big") + (999_999).to_bytes(4, "big"),
        Reply.CLOSE,
        Reply.RESET,
    ],
    ids=["negative", "huge", "above the limit", "empty", "foreign correlation id", "close", "reset"],
)
def test_a_frame_that_cannot_be_closes_the_connection_and_the_record_is_sent_again(frame: Any) -> None:
    with scripted() as broker:
        answering(broker)
        broker.answer(ApiKeys.PRODUCE, frame)
        with KafkaProducer({"bootstrap.servers": broker.bootstrap, **_QUICK}) as producer:
            assert producer.send("t", b"x").result(20).offset == 7
        assert len(broker.received(ApiKeys.PRODUCE)) == 2
        assert broker.accepted >= 2


def test_an_unknown_error_code_of_a_produce_answer_keeps_its_number_and_the_producer_lives() -> None:
    with scripted() as broker:
        answering(broker)
        broker.once(ApiKeys.PRODUCE, produced(32000))
        settings = {"bootstrap.servers": broker.bootstrap, "enable.idempotence": False, **_QUICK}
        with KafkaProducer(settings) as producer:
            error = producer.send("t", b"x").exception(20)
            assert isinstance(error, UnknownServerError)
            assert error.code == 32000
            assert "t-0" in str(error)
            assert producer.send("t", b"x").result(20).offset == 7


def test_an_unknown_error_code_of_a_fetch_answer_keeps_its_number_and_the_consumer_lives() -> None:
    def fetched(code: int) -> FetchResponse:
        data = PartitionData(partition_index=0, error_code=code, high_watermark=0, records=None)
        return FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=[data])])

    with scripted() as broker:
        broker.answer(ApiKeys.FETCH, fetched(32000))
        with KafkaConsumer({"bootstrap.servers": broker.bootstrap, **_QUICK}) as consumer:
            tp = TopicPartition("t", 0)
            consumer.assign([tp])
            consumer.seek(tp, 0)
            with pytest.raises(KafkaError) as failed:
                consumer.poll(10_000)
            assert failed.value.code == 32000
            assert not consumer.poll(10)
            assert consumer.position(tp) == 0


@pytest.mark.parametrize("answer", ["unsupported", "undecodable", "closed"])
def test_a_broker_that_cannot_answer_the_newest_version_question_is_asked_the_oldest(answer: str) -> None:
    with scripted() as broker:
        answering(broker)
        replies: dict[str, Any] = {
            "unsupported": ApiVersionsResponse(error_code=Errors.UNSUPPORTED_VERSION, api_keys=[]),
            "undecodable": b"\x00\x00\x00\x06" + b"\x00" * 6,
            "closed": Reply.CLOSE,
        }
        broker.answer(ApiKeys.API_VERSIONS, replies[answer])
        with KafkaProducer({"bootstrap.servers": broker.bootstrap, **_QUICK}) as producer:
            assert producer.send("t", b"x").result(20).offset == 7
        asked = [
            header.api_version for header, _ in broker.requests if header.api_key is ApiKeys.API_VERSIONS
        ]
        assert asked[0] == ApiKeys.API_VERSIONS.max_version
        assert asked[1] == 0


def test_a_broker_that_throttles_is_left_alone_for_that_long() -> None:
    with scripted() as broker:
        answering(broker)
        broker.once(ApiKeys.PRODUCE, produced(0, throttle_ms=700))
        with KafkaProducer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0, **_QUICK}) as producer:
            producer.send("t", b"x").result(20)
            started = time.monotonic()
            producer.send("t", b"x").result(20)
            assert 0.6 < time.monotonic() - started < 20


def test_a_full_buffer_fails_after_max_block_ms_and_is_empty_again_afterwards() -> None:
    with scripted() as broker:
        answering(broker)
        broker.on(ApiKeys.PRODUCE, lambda header, message: Reply.NOTHING)
        settings = {
            "bootstrap.servers": broker.bootstrap,
            "buffer.memory": 50_000,
            "batch.size": 10_000,
            "linger.ms": 0,
            "max.block.ms": 300,
            "request.timeout.ms": 500,
            "delivery.timeout.ms": 1500,
            **_QUICK,
        }
        with KafkaProducer(settings) as producer:
            futures = [producer.send("t", b"x" * 9000) for _ in range(4)]
            started = time.monotonic()
            with pytest.raises(BufferExhaustedError, match=r"max\.block\.ms"):
                futures += [producer.send("t", b"x" * 9000) for _ in range(10)]
            assert 0.25 < time.monotonic() - started < 20
            errors = [future.exception(20) for future in futures]
            assert {type(error) for error in errors} == {KafkaTimeoutError}
            producer.flush()

            def value(name: str) -> float:
                return next(v for key, v in producer.metrics().items() if key.name == name)

            deadline = time.monotonic() + 5
            while value("buffer-available-bytes") != 50_000:
                assert time.monotonic() < deadline, value("buffer-available-bytes")
            assert value("waiting-threads") == 0
