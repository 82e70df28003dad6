"""A cluster of one broker that checks what producers promise, whatever happened on the way."""

from __future__ import annotations

import itertools
import threading
from typing import Any

from harness.network.listener import Listener
from harness.network.proxy import FaultProxy
from harness.network.scripted_broker import Reply, ScriptedBroker
from harness.producer.model import FakeBroker
from kclient.errors import KafkaError
from kclient.producer import KafkaProducer
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.init_producer_id import InitProducerIdResponse
from kclient.utils.futures import KafkaFuture


class Cluster:
    """A broker with logs, reached through `front`, and the bookkeeping of its producers: one at a time."""

    def __init__(self, broker: ScriptedBroker, front: Listener | None = None) -> None:
        self.broker = broker
        self._front = front or broker
        self.logs = FakeBroker()
        self.lock = threading.Lock()
        ids = itertools.count(1)
        broker.on(
            ApiKeys.INIT_PRODUCER_ID,
            lambda h, m: InitProducerIdResponse(producer_id=next(ids), producer_epoch=0),
        )
        broker.on(ApiKeys.PRODUCE, lambda h, m: self.produce(m))
        broker.on(ApiKeys.METADATA, self.metadata)
        self.sent: list[tuple[bytes, KafkaFuture[Any]]] = []
        self.told: dict[bytes, int] = {}

    def produce(self, message: Any) -> Any:
        # A connection that broke and the one after it may be served at the same time, as in a real broker.
        with self.lock:
            return (
                self.logs.produce(message) if message.acks else (self.logs.produce(message), Reply.NOTHING)[1]
            )

    def metadata(self, header: Any, message: Any) -> Any:
        answer = self.broker._answer_metadata(header, message)
        for broker in answer.brokers:
            broker.port = self._front.port
        return answer

    def producer(self, **settings: Any) -> KafkaProducer[bytes, bytes]:
        defaults: dict[str, Any] = {
            "bootstrap_servers": self._front.bootstrap,
            "linger_ms": 0,
            "retry_backoff_ms": 5,
            "retry_backoff_max_ms": 20,
            "reconnect_backoff_ms": 5,
            "reconnect_backoff_max_ms": 20,
            "request_timeout_ms": 500,
            "delivery_timeout_ms": 20_000,
        }
        return KafkaProducer(**{**defaults, **settings})

    def send(self, producer: KafkaProducer[bytes, bytes], count: int = 1, size: int = 0) -> None:
        for _ in range(count):
            value = b"%06d" % len(self.sent) + b"." * size
            future = producer.send("t", value, partition=0, on_delivery=self.callback(value))
            self.sent.append((value, future))

    def callback(self, value: bytes) -> Any:
        def told(metadata: Any, error: Any) -> None:
            self.told[value] = self.told.get(value, 0) + 1

        return told

    def check(self, *, all_delivered: bool = True, once: bool = True) -> None:
        """The standing invariants."""
        values = self.logs.log("t").values
        for value, future in self.sent:
            assert future.done()
            assert self.told[value] == 1
            error = future.exception(0)
            if all_delivered:
                assert error is None, error
            if error is None and future.result(0).offset >= 0:
                assert values[future.result(0).offset] == value
            elif error is not None:
                assert isinstance(error, KafkaError)
        if once:
            assert values == sorted(set(values), key=lambda value: value or b"")
        assert self.broker.errors == []


class ProxiedCluster(Cluster):
    """The broker's only address is that of a proxy."""

    def __init__(self, broker: ScriptedBroker, proxy: FaultProxy) -> None:
        super().__init__(broker, proxy)
        self.proxy = proxy
