"""A change of the metadata that takes long: other changes wait for it, and nothing else does."""

from __future__ import annotations

import select
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from harness.broker.requests import create, fetch, produce
from harness.broker.wire import Wire, batch
from harness.waiting import wait_until
from kclient.broker import EmbeddedKafka
from kclient.broker.metadata.image.metadata_delta import MetadataDelta
from kclient.broker.metadata.image.metadata_image import MetadataImage
from kclient.broker.replica.metadata_publisher import ReplicaMetadataPublisher
from kclient.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from kclient.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from kclient.protocol.messages.find_coordinator import FindCoordinatorRequest
from kclient.protocol.messages.init_producer_id import InitProducerIdRequest
from kclient.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from kclient.protocol.schema import Message

IO_THREADS = 2


class Gate:
    """Holds the first change that comes to it, once it is in the metadata log and before its partitions are made."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.reached, self._opened = threading.Event(), threading.Event()
        make = ReplicaMetadataPublisher.on_metadata_update

        def held(publisher: ReplicaMetadataPublisher, delta: MetadataDelta, image: MetadataImage) -> None:
            self.reached.set()
            assert self._opened.wait(60)
            make(publisher, delta, image)

        monkeypatch.setattr(ReplicaMetadataPublisher, "on_metadata_update", held)

    def open(self) -> None:
        self._opened.set()


@pytest.fixture
def kafka() -> Iterator[EmbeddedKafka]:
    with EmbeddedKafka({"num.io.threads": str(IO_THREADS), "offsets.topic.num.partitions": "1"}) as running:
        yield running


def grow(count: int) -> CreatePartitionsRequest:
    topic = CreatePartitionsTopic(name="t", count=count, assignments=None)
    return CreatePartitionsRequest(topics=[topic], timeout_ms=1000)


def new_topic(name: str) -> CreateTopicsRequest:
    return CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1)], timeout_ms=1000
    )


def metadata_of(name: str) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequestTopic(name=name)], allow_auto_topic_creation=True)


def is_answered(wire: Wire) -> bool:
    return bool(select.select([wire.sock], [], [], 0)[0])


WAITING: dict[str, tuple[Message, int]] = {
    "topics": (new_topic("other"), 7),
    "partitions": (grow(6), 3),
    "topics by mere asking": (metadata_of("asked-for"), 9),
    "the topic of offsets": (FindCoordinatorRequest(key="g"), 3),
    "producer ids": (InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), 1),
}


@pytest.mark.parametrize("kind", WAITING)
def test_metadata_produce_and_fetch_are_answered_while_more_changes_wait_than_there_are_handlers(
    kafka: EmbeddedKafka, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    with ExitStack() as stack:

        def connect() -> Wire:
            return stack.enter_context(Wire(kafka.bootstrap_servers))

        client, first, waiting = connect(), connect(), [connect() for _ in range(3 * IO_THREADS)]
        create(client, "t", 2)
        gate = Gate(monkeypatch)
        stack.callback(gate.open)
        first.send(grow(4), 3)
        assert gate.reached.wait(30)
        for wire in waiting:
            wire.send(*WAITING[kind])
        for offset in range(20):
            assert client.ask(metadata_of("t"), 9).topics[0].error_code == 0
            assert produce(client, "t", batch(b"x")) == offset
            assert fetch(client, "t").high_watermark == offset + 1
        assert not any(map(is_answered, [first, *waiting]))
        gate.open()
        assert first.receive().results[0].error_code == 0
        for wire in waiting:
            assert wire.receive() is not None


def test_a_broker_that_stops_finishes_and_answers_the_change_that_is_under_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    others = set(threading.enumerate())  # of other tests' brokers
    with EmbeddedKafka() as kafka, Wire(kafka.bootstrap_servers) as wire, ExitStack() as stack:
        own = set(threading.enumerate()) - others
        handlers = [each for each in own if each.name.startswith("request-handler-")]
        assert handlers
        create(wire, "t", 2)
        gate = Gate(monkeypatch)
        stack.callback(gate.open)
        wire.send(grow(4), 3)
        assert gate.reached.wait(30)
        stopping = threading.Thread(target=kafka.close)
        stopping.start()
        wait_until(lambda: not any(each.is_alive() for each in handlers), 30)
        assert stopping.is_alive()
        gate.open()
        assert wire.receive().results[0].error_code == 0
        stopping.join(30)
        assert not stopping.is_alive()
