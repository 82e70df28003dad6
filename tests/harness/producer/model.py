"""A producer without a thread, to be taken round by round, and a broker's log that checks sequences as Kafka does."""

from __future__ import annotations

from collections import deque
from typing import Any

from harness.mock_client import MockClient, SentRequest
from harness.mock_time import MockTime
from harness.network.scripted_broker import ScriptedBroker
from kclient.common.uuid import Uuid
from kclient.errors import ErrorCode
from kclient.producer import KafkaProducer
from kclient.producer.config import ProducerConfig
from kclient.producer.internals.assembly import build_producer
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from kclient.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from kclient.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from kclient.record import iter_batches
from kclient.utils.steps import run


class PartitionLog:
    """One partition as a broker keeps it: the values, and per producer id the last five batches."""

    def __init__(self) -> None:
        self.values: list[bytes | None] = []
        self._producers: dict[int, tuple[int, deque[tuple[int, int, int]]]] = {}

    def append(self, records: bytes | memoryview) -> tuple[int, int]:
        """Code and base offset, as in the answer to a produce request."""
        (batch,) = list(iter_batches(memoryview(records)))
        batch.ensure_valid()
        pid, epoch, first = batch.producer_id, batch.producer_epoch, batch.base_sequence
        last = batch.last_sequence
        if pid >= 0:
            known_epoch, recent = self._producers.get(pid, (epoch, deque(maxlen=5)))
            if epoch < known_epoch:
                return ErrorCode.INVALID_PRODUCER_EPOCH, -1
            if epoch > known_epoch:
                if first != 0:
                    return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
                recent = deque(maxlen=5)
            for seen_first, seen_last, offset in recent:
                if (seen_first, seen_last) == (first, last):
                    return 0, offset
            if recent and first != (recent[-1][1] + 1) % 2**31:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
            recent.append((first, last, len(self.values)))
            self._producers[pid] = (epoch, recent)
        base = len(self.values)
        self.values += [record.value for record in batch.records()]
        return 0, base

    def restart(self) -> None:
        """As after a clean restart: of each producer id the snapshot keeps the last batch alone."""
        for pid, (epoch, recent) in self._producers.items():
            self._producers[pid] = (epoch, deque(list(recent)[-1:], maxlen=5))

    def forget_producers(self) -> None:
        """As after the retention of everything that a producer wrote."""
        self._producers.clear()


class FakeBroker:
    """Partition logs behind produce requests.

    `errors` answers for a partition instead of its log, in order; with True the log has the batch all the same, as
    that of a leader that is demoted before its followers have it.
    """

    def __init__(self) -> None:
        self.logs: dict[tuple[str, int], PartitionLog] = {}
        self.errors: dict[tuple[str, int], deque[tuple[PartitionProduceResponse, bool]]] = {}
        self.names: dict[Uuid, str] = {}

    def log(self, topic: str, partition: int = 0) -> PartitionLog:
        """The log of a partition."""
        return self.logs.setdefault((topic, partition), PartitionLog())

    def fail(
        self,
        topic: str,
        code: int,
        *,
        partition: int = 0,
        times: int = 1,
        appended: bool = False,
        **fields: Any,
    ) -> None:
        """Answer the next batches for a partition with `code`, `appended` or not."""
        answers = self.errors.setdefault((topic, partition), deque())
        for _ in range(times):
            answer = PartitionProduceResponse(index=partition, error_code=code, base_offset=-1, **fields)
            answers.append((answer, appended))

    def recreate(self, topic: str) -> None:
        """Delete a topic and create it again: its logs are empty and know no producer, and its id is another."""
        for name, partition in list(self.logs):
            if name == topic:
                del self.logs[name, partition]
        self.names = {topic_id: name for topic_id, name in self.names.items() if name != topic}

    def produce(self, request: ProduceRequest) -> ProduceResponse:
        """The answer to a produce request."""
        responses = []
        for topic in request.topic_data:
            name = topic.name or self.names.get(topic.topic_id)
            answers = []
            for data in topic.partition_data:
                if name is None:
                    code = ErrorCode.UNKNOWN_TOPIC_ID
                    answers.append(
                        PartitionProduceResponse(index=data.index, error_code=code, base_offset=-1)
                    )
                    continue
                scripted = self.errors.get((name, data.index))
                assert data.records is not None
                if scripted:
                    answer, appended = scripted.popleft()
                    if appended:
                        self.log(name, data.index).append(data.records)
                    answers.append(answer)
                    continue
                code, base = self.log(name, data.index).append(data.records)
                answers.append(
                    PartitionProduceResponse(
                        index=data.index, error_code=code, base_offset=base, log_start_offset=0
                    )
                )
            responses.append(
                TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)
            )
        return ProduceResponse(responses=responses)


class ProducerModel:
    """A producer on a MockClient and a MockTime; `run` takes the sender one round further."""

    def __init__(self, **settings: object) -> None:
        self.time = MockTime()
        defaults = {"bootstrap_servers": "localhost:9092", "retry_backoff_ms": 10, "retry_backoff_max_ms": 10}
        config = ProducerConfig.parse(None, defaults | settings)
        self.client = MockClient(self.time, request_timeout_ms=config.request_timeout_ms)
        self.core = build_producer(config, time=self.time, client=self.client, start=False)
        self.client._metadata = self.core.metadata
        self.broker = FakeBroker()
        self.accumulator = self.core.accumulator
        self.sender = self.core.sender
        self.topics: dict[str, int] = {}

    def know(
        self,
        topics: dict[str, int],
        *,
        nodes: int = 1,
        leader_epoch: int = 1,
        ids: bool = False,
        incarnation: int = 1,
    ) -> None:
        """Let the metadata know of topics and their numbers of partitions; no node leads a partition of -1.

        With `ids` each has an id, another one for each `incarnation`.
        """
        self.topics = topics
        now_ms = self.time.monotonic_ms()
        for topic in topics:
            self.core.metadata.add_topic(topic, now_ms)
        response = MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=i, host="localhost", port=9092 + i) for i in range(nodes)
            ],
            cluster_id="c",
            topics=[
                MetadataResponseTopic(
                    name=name,
                    topic_id=self._id(name, incarnation) if ids else Uuid.ZERO,
                    partitions=[
                        MetadataResponsePartition(
                            partition_index=i,
                            leader_id=i % nodes if nodes else -1,
                            leader_epoch=leader_epoch,
                            replica_nodes=[0],
                            isr_nodes=[0],
                        )
                        for i in range(count)
                    ],
                )
                for name, count in topics.items()
            ],
        )
        self.core.metadata.update(response, now_ms)
        for topic in topics:
            self.accumulator.topic(topic)
        self.accumulator.update_partition_counts()

    def _id(self, topic: str, incarnation: int) -> Uuid:
        uuid = Uuid(topic.encode().ljust(16, bytes([incarnation]))[:16])
        self.broker.names[uuid] = topic
        return uuid

    def initialized(self, producer_id: int = 7, epoch: int = 0) -> ProducerModel:
        """Go through the request for a producer id."""
        self.sender.run_once()
        self.client.respond(
            InitProducerIdResponse(producer_id=producer_id, producer_epoch=epoch),
            matcher=lambda m: isinstance(m, InitProducerIdRequest),
        )
        self.sender.run_once()
        return self

    def send(
        self, value: bytes | None, topic: str = "t", partition: int | None = 0, callback: Any = None
    ) -> Any:
        """Append a record; returns its future."""
        queues = self.accumulator.topic(topic)
        return run(self.accumulator.append(queues, partition, None, None, value, (), callback), self.time)

    def run(self, rounds: int = 1, advance_ms: int = 0) -> None:
        """Let time pass, then take the sender through `rounds`."""
        if advance_ms:
            self.time.advance(advance_ms)
        for _ in range(rounds):
            self.sender.run_once()

    @property
    def waiting(self) -> list[SentRequest]:
        """The produce requests without an answer, oldest first."""
        return [sent for sent in self.client.requests if isinstance(sent.message, ProduceRequest)]

    def answer(self, at: int = 0) -> None:
        """Let the broker answer one of the waiting requests, and the sender take it in."""
        sent = self.waiting[at]
        self.client.respond(self.broker.produce(sent.message), matcher=lambda m: m is sent.message)
        self.sender.run_once()

    def take_but_lose_answer(self, at: int = 0) -> None:
        """The broker appends, and the connection breaks before the answer comes."""
        sent = self.waiting[at]
        self.broker.produce(sent.message)
        self.client.respond(None, matcher=lambda m: m is sent.message, disconnected=True)
        self.sender.run_once()

    def settle(self, max_rounds: int = 200) -> None:
        """Answer everything until nothing is left."""
        for _ in range(max_rounds):
            if not self.accumulator.queued.incomplete and not self.waiting:
                return
            if self.waiting:
                self.answer()
            else:
                self.run(advance_ms=20)
        raise AssertionError("The producer did not come to rest")


def ready_producer(
    topics: dict[str, int] | None = None, *, nodes: int = 1, ids: bool = False, **settings: object
) -> ProducerModel:
    """One that knows its topics ({"t": 1}) and its producer id, and lingers not at all."""
    settings.setdefault("linger_ms", 0)
    made = ProducerModel(**settings)
    made.know(topics or {"t": 1}, nodes=nodes, ids=ids)
    return made.initialized() if made.core.idempotence is not None else made


def sequences(sent: SentRequest) -> list[tuple[int, int, int]]:
    """Epoch, first and last sequence of each batch in a produce request."""
    return [
        (batch.producer_epoch, batch.base_sequence, batch.last_sequence)
        for topic in sent.message.topic_data
        for data in topic.partition_data
        for batch in iter_batches(memoryview(data.records))
    ]


class Server:
    """A scripted broker that keeps what is produced."""

    def __init__(self, broker: ScriptedBroker) -> None:
        self.broker = broker
        self.logs = FakeBroker()
        broker.on(
            ApiKeys.INIT_PRODUCER_ID, lambda h, m: InitProducerIdResponse(producer_id=1, producer_epoch=0)
        )
        broker.on(ApiKeys.PRODUCE, lambda h, m: self.logs.produce(m))

    def producer(self, **settings: Any) -> KafkaProducer[Any, Any]:
        return KafkaProducer(bootstrap_servers=self.broker.bootstrap, **settings)

    def records(self, topic: str = "t") -> list[Any]:
        """All records of the topic as they came, batch by batch."""
        return [
            record
            for request in self.broker.received(ApiKeys.PRODUCE)
            for data in request.topic_data
            for partition in data.partition_data
            for batch in iter_batches(memoryview(partition.records))
            for record in batch.records()
            if data.name == topic
        ]
