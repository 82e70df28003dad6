"""The driver's own look at a stream's records: whether there are any, and how large they are."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import ExitStack

from kclient.common.topic_partition import TopicPartition
from kclient.errors import KafkaError
from kclient.spark import clients
from kclient.spark.client_settings import PROBE_WAIT_MS, probe_settings, sample_settings
from kclient.spark.clients import BytesConsumer
from kclient.spark.column_sizes import columns_bytes
from kclient.utils.time import SYSTEM_TIME, Time

_log = logging.getLogger(__name__)

_SAMPLE_MS = 2000
_POLL_MS = 50
_USUAL_BYTES = 1024.0


class RecordWatcher:
    """Waits for records with one fetch that the broker holds, and samples sizes. Used by one thread."""

    def __init__(self, settings: Mapping[str, str], time: Time = SYSTEM_TIME) -> None:
        self._settings = settings
        self._time = time
        self._lease = ExitStack()
        self._consumer: BytesConsumer | None = None

    def wait(self, positions: Mapping[TopicPartition, int]) -> bool:
        """Wait for a quarter of a second for a record at `positions`; whether one came."""
        if not positions:
            self._time.sleep_ms(PROBE_WAIT_MS)
            return True  # there may be a first topic now
        try:
            return self._poll(positions)
        except KafkaError as error:
            _log.debug("Waiting for records failed: %s", error)
            self._drop()
            self._time.sleep_ms(PROBE_WAIT_MS)
            return True

    def offset_bytes(
        self, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, float]:
        """The size of the first records of each partition divided by the offsets they take.

        A partition whose records did not come in time is taken to be like the others.
        """
        wanted = {tp: start for tp, start in starts.items() if ends[tp] > start}
        found: dict[TopicPartition, float] = {}
        with clients.leased_consumer(sample_settings(self._settings)) as consumer:
            consumer.assign(wanted)
            for tp, start in wanted.items():
                consumer.seek(tp, start)
            timer = self._time.timer(_SAMPLE_MS)
            while len(found) < len(wanted) and not timer.is_expired():
                for tp, columns in consumer.poll_columns(timeout_ms=_POLL_MS).items():
                    offsets = columns.offsets[columns.count - 1] + 1 - starts[tp]
                    found.setdefault(tp, columns_bytes(columns) / max(offsets, 1))
                consumer.pause(tp for tp in found if tp not in consumer.paused())
        usual = sum(found.values()) / len(found) if found else _USUAL_BYTES
        return {tp: max(found.get(tp, usual), 1.0) for tp in wanted}

    def _poll(self, positions: Mapping[TopicPartition, int]) -> bool:
        if self._consumer is None:
            self._consumer = self._lease.enter_context(
                clients.leased_consumer(probe_settings(self._settings))
            )
        consumer = self._consumer
        new = consumer.assignment() != set(positions)
        if new:
            consumer.assign(positions)
        for tp, offset in positions.items():
            # A seek makes the fetch that is under way useless, so that the next record would not be seen at once.
            if new or consumer.position(tp) != offset:
                consumer.seek(tp, offset)
        return bool(consumer.poll_columns(timeout_ms=PROBE_WAIT_MS))

    def _drop(self) -> None:
        self._lease.close()
        self._consumer = None
