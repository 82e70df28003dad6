"""A consumer that is called at random while a proxy spoils its requests and answers, and that must miss nothing."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from harness.network.proxy import FaultProxy
from harness.topics import new_topic
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import KafkaConsumer
from kclient.errors import IllegalStateError, KafkaError
from kclient.producer import KafkaProducer
from kclient.protocol.api_keys import ApiKeys

_TOPICS = 3
_PARTITIONS = 2
_SPOILT = (
    ApiKeys.METADATA,
    ApiKeys.FIND_COORDINATOR,
    ApiKeys.JOIN_GROUP,
    ApiKeys.SYNC_GROUP,
    ApiKeys.HEARTBEAT,
    ApiKeys.CONSUMER_GROUP_HEARTBEAT,
    ApiKeys.LEAVE_GROUP,
    ApiKeys.OFFSET_FETCH,
    ApiKeys.OFFSET_COMMIT,
    ApiKeys.LIST_OFFSETS,
    ApiKeys.FETCH,
)
# Their answers may take as long as a rebalance may, so one that does not come is waited for that long.
_PATIENT = (ApiKeys.JOIN_GROUP, ApiKeys.SYNC_GROUP)
_DEADLINE_S = 30.0
"""Longer than a session, which a member may leave behind that has no id yet as it goes."""


class RandomCalls:
    """Rounds of random calls. Each ends with a subscription or an assignment, of which every new record has to come.

    `round` raises AssertionError with the calls of the round if one does not, or if records of other topics come.
    `missed` says which of all records that were sent never came, whatever was read and committed how.
    """

    def __init__(self, direct: str, proxy: FaultProxy, protocol: str, rng: random.Random) -> None:
        self.rounds = 0
        self._proxy = proxy
        self._rng = rng
        self._topics = [new_topic(direct, _PARTITIONS) for _ in range(_TOPICS)]
        self._producer: KafkaProducer[bytes, bytes] = KafkaProducer(bootstrap_servers=direct)
        self._settings: dict[str, object] = {
            "bootstrap.servers": proxy.bootstrap,
            "group.id": f"g-{self._topics[0]}",
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "request.timeout.ms": 1500,
            "retry.backoff.ms": 20,
            "reconnect.backoff.ms": 10,
            "fetch.max.wait.ms": 100,
        }
        if protocol == "classic":
            self._settings |= {"heartbeat.interval.ms": 200, "session.timeout.ms": 6000}
        self._consumer: KafkaConsumer[bytes, bytes] = KafkaConsumer(self._settings)
        self._mode: Callable[[], set[TopicPartition]] | None = None
        self._calls: list[str] = []
        self._sent: set[bytes] = set()
        self._seen: set[bytes] = set()

    def missed(self) -> set[bytes]:
        """Read all topics up to their ends; returns what was skipped."""
        self._unsubscribe()
        self._mode = self._subscribe
        self._consumer.subscribe(self._topics)
        self._read(self._of(self._topics))  # they are behind all others
        return self._sent - self._seen

    def round(self) -> None:
        """Spoil something, call the consumer, and read what comes after the last subscription."""
        rng = self._rng
        self.rounds += 1
        self._calls = [f"round {self.rounds}"]
        if rng.random() < 0.3:
            self._consumer.close()
            self._consumer, self._mode = KafkaConsumer(self._settings), None
        if rng.random() < 0.7:
            for _ in range(rng.randrange(1, 4)):
                self._spoil()
        for _ in range(rng.randrange(1, 9)):
            if rng.random() < 0.3:
                self._send(TopicPartition(rng.choice(self._topics), rng.randrange(_PARTITIONS)))
            self._tolerate(self._call)
        wanted: list[set[TopicPartition]] = []
        while not wanted:
            self._tolerate(lambda: wanted.append(self._change()))
        for _ in range(rng.randrange(3)):
            self._tolerate(self._poll)
        self._proxy.clear()
        self._read(wanted[0])

    def _spoil(self) -> None:
        rng, proxy = self._rng, self._proxy
        api, on_response = rng.choice(_SPOILT), rng.random() < 0.7
        fault = rng.choice(("delay", "delay", "delay", "cut", "reset", "swallow"))
        if fault == "swallow" and api not in _PATIENT:
            proxy.swallow(api, on_response=on_response)
        elif fault == "cut":
            proxy.cut(api, rng.randrange(60), on_response=on_response)
        elif fault == "reset":
            proxy.reset(api, rng.randrange(60), on_response=on_response)
        else:
            proxy.delay(api, rng.randrange(5, 300), times=rng.randrange(1, 3), on_response=on_response)
        self._calls.append(f"{fault} {api.name} {'answer' if on_response else 'request'}")

    def _tolerate(self, call: Callable[[], object]) -> None:
        """Make a call that may fail because of a fault."""
        try:
            call()
        except IllegalStateError as error:
            raise AssertionError(f"{error!r} after\n{self._told()}") from error
        except KafkaError as error:
            self._calls.append(f"  {error!r}")

    def _call(self) -> object:
        """Make one call that an application may make at any time."""
        consumer, chance = self._consumer, self._rng.random()
        first = TopicPartition(self._topics[0], 0)
        if chance < 0.35:
            return self._change()
        if chance < 0.42:
            return self._unsubscribe()
        if chance < 0.75:
            return self._poll()
        named: tuple[str, Callable[[], object]] = self._rng.choice(
            (
                ("wakeup", consumer.wakeup),
                ("commit_sync", lambda: consumer.commit_sync(timeout_ms=300)),
                ("committed", lambda: consumer.committed([first], timeout_ms=300)),
                ("end_offsets", lambda: consumer.end_offsets([first], timeout_ms=300)),
                ("seek_to_beginning", lambda: consumer.seek_to_beginning(consumer.assignment())),
                ("enforce_rebalance", lambda: self._subscribed() and consumer.enforce_rebalance()),
            )
        )
        self._calls.append(named[0])
        return named[1]()

    def _subscribed(self) -> bool:
        return self._mode in (self._subscribe, self._subscribe_pattern)

    def _poll(self) -> None:
        if self._mode is not None:
            timeout_ms = self._rng.choice((0, 1, 5, 20, 50, 150))
            self._calls.append(f"poll {timeout_ms}")
            self._seen.update(record.value or b"" for record in self._consumer.poll(timeout_ms))

    def _unsubscribe(self) -> None:
        self._calls.append("unsubscribe")
        self._mode = None
        self._consumer.unsubscribe()

    def _change(self) -> set[TopicPartition]:
        """Subscribe to something else, or assign it; returns the partitions."""
        mode = self._rng.choice(
            (self._subscribe, self._subscribe, self._subscribe_pattern, self._subscribe_pattern, self._assign)
        )
        if self._mode not in (None, mode):
            self._unsubscribe()
        self._mode = mode
        return mode()

    def _chosen(self) -> list[str]:
        return self._rng.sample(self._topics, self._rng.randrange(1, _TOPICS + 1))

    def _subscribe(self) -> set[TopicPartition]:
        topics = self._chosen()
        self._calls.append(f"subscribe {topics}")
        self._consumer.subscribe(topics)
        return self._of(topics)

    def _subscribe_pattern(self) -> set[TopicPartition]:
        topics = self._chosen()
        self._calls.append(f"subscribe to the pattern of {topics}")
        self._consumer.subscribe(re.compile("|".join(topics)))
        return self._of(topics)

    def _assign(self) -> set[TopicPartition]:
        partitions = self._of(self._topics)
        chosen = self._rng.sample(sorted(partitions), self._rng.randrange(1, len(partitions)))
        self._calls.append(f"assign {chosen}")
        self._consumer.assign(chosen)
        return set(chosen)

    def _of(self, topics: list[str]) -> set[TopicPartition]:
        return {TopicPartition(topic, number) for topic in topics for number in range(_PARTITIONS)}

    def _read(self, wanted: set[TopicPartition]) -> None:
        """Send a record to each of these partitions, and read until all have come."""
        left = {self._send(tp) for tp in sorted(wanted)}
        self._producer.flush()
        deadline = time.monotonic() + _DEADLINE_S
        while left:
            self._tolerate(lambda: self._take(left, wanted))
            if time.monotonic() > deadline:
                raise AssertionError(
                    f"{sorted(left)} did not come in {_DEADLINE_S} s, assigned are "
                    f"{sorted(self._consumer.assignment())}, after\n{self._told()}"
                )

    def _send(self, tp: TopicPartition) -> bytes:
        value = b"%d" % len(self._sent)
        self._sent.add(value)
        self._producer.send(tp.topic, value, partition=tp.partition)
        return value

    def _take(self, left: set[bytes], wanted: set[TopicPartition]) -> None:
        for record in self._consumer.poll(200):
            left.discard(record.value or b"")
            self._seen.add(record.value or b"")
            # A new pattern is matched when all topics are known; until then the old partitions go on.
            if record.topic_partition not in wanted and self._mode != self._subscribe_pattern:
                raise AssertionError(f"{record} came after\n{self._told()}")

    def _told(self) -> str:
        return "\n".join(self._calls)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._proxy.clear()
        self._producer.close()
        self._consumer.close()
