"""Processed offsets, told to a consumer group, so that tools that watch groups see where a query is."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import ExitStack

from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import KafkaError
from kclient.spark import clients
from kclient.spark.client_settings import committer_settings
from kclient.spark.clients import BytesConsumer
from kclient.spark.topic_ids import noted
from kclient.utils.time import SYSTEM_TIME, Time

_log = logging.getLogger(__name__)

_TIMEOUT_MS = 5000
_DAY_MS = 24 * 60 * 60_000
"""The time after which all is committed again: brokers forget what is not, offsets.retention.minutes later."""


class GroupCommitter:
    """Commits for `group_id`, of which it is no member. Used by one thread.

    With the offsets go notes of the topics' ids (`topic_ids.noted`), all of them on partition 0 of `marker_topic` too.
    Spark's checkpoint is what counts; that a commit fails is a warning, and the next one makes it good.
    """

    def __init__(
        self,
        settings: Mapping[str, str],
        group_id: str,
        marker_topic: str | None = None,
        time: Time = SYSTEM_TIME,
    ) -> None:
        self._settings = committer_settings(settings, group_id)
        self._group_id = group_id
        self._marker = None if marker_topic is None else TopicPartition(marker_topic, 0)
        self._time = time
        self._lease = ExitStack()
        self._consumer: BytesConsumer | None = None
        self._committed: dict[TopicPartition, OffsetAndMetadata] = {}
        self._all_ms = time.monotonic_ms()

    def commit(self, offsets: Mapping[TopicPartition, int], topic_ids: Mapping[str, Uuid]) -> None:
        """Commit those that were not committed yet. Never raises."""
        now_ms = self._time.monotonic_ms()
        if now_ms - self._all_ms >= _DAY_MS:
            self._committed.clear()
            self._all_ms = now_ms
        wanted = noted(offsets, topic_ids, self._marker)
        new = {tp: each for tp, each in wanted.items() if self._committed.get(tp) != each}
        if not new:
            return
        try:
            if self._consumer is None:
                self._consumer = self._lease.enter_context(clients.leased_consumer(self._settings))
            self._consumer.commit_sync(new, timeout_ms=_TIMEOUT_MS)
        except KafkaError as error:
            _log.warning("Group %s: the processed offsets could not be committed: %s", self._group_id, error)
        else:
            self._committed.update(new)
