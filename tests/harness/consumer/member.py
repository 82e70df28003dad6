"""Members of a group, each on a thread of its own."""

from __future__ import annotations

import threading

from harness.topics import DEADLINE_S
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRebalanceListener, ConsumerRecord, KafkaConsumer, SubscriptionPattern


class Member(threading.Thread):
    """One consumer of a group that reads until told to stop, committing what it read."""

    def __init__(
        self,
        servers: str,
        topic: str | SubscriptionPattern,
        group: str,
        *,
        listener: ConsumerRebalanceListener | None = None,
        **settings: object,
    ) -> None:
        super().__init__(daemon=True)
        self.records: list[ConsumerRecord[bytes, bytes]] = []
        self.assignment: set[TopicPartition] = set()
        self.error: BaseException | None = None
        self._topic = topic
        self._stopping = threading.Event()
        self._listener = listener
        # With the consumer protocol these are the broker's.
        classic = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 300}
        self._settings = {
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            **({} if settings.get("group.protocol") == "consumer" else classic),
            **settings,
        }
        self.start()

    def run(self) -> None:
        try:
            with KafkaConsumer(self._settings) as consumer:
                topic = self._topic
                consumer.subscribe([topic] if isinstance(topic, str) else topic, self._listener)
                idle = False
                # The last poll finds nothing, so that everything there was has been read.
                while not (idle and self._stopping.is_set()):
                    records = consumer.poll(100)
                    idle = not records
                    self.records.extend(records)
                    self.assignment = set(consumer.assignment())
            self.assignment = set()
        except BaseException as error:
            self.error = error

    def stop(self) -> None:
        """Leave the group cleanly."""
        self._stopping.set()
        self.join(DEADLINE_S)
        assert not self.is_alive(), "a consumer did not close in time"
        if self.error is not None:
            raise self.error
