"""Processed offsets, told to a consumer group, so that tools that watch groups see where a query is."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import ExitStack

from kclient.common.topic_partition import TopicPartition
from kclient.errors import KafkaError
from kclient.spark import clients
from kclient.spark.client_settings import committer_settings
from kclient.spark.clients import BytesConsumer

_log = logging.getLogger(__name__)

_TIMEOUT_MS = 5000


class GroupCommitter:
    """Commits for `group_id`, of which it is no member. Used by one thread.

    Spark's checkpoint is what counts; that a commit fails is a warning, and the next one makes it good.
    """

    def __init__(self, settings: Mapping[str, str], group_id: str) -> None:
        self._settings = committer_settings(settings, group_id)
        self._group_id = group_id
        self._lease = ExitStack()
        self._consumer: BytesConsumer | None = None
        self._committed: dict[TopicPartition, int] = {}

    def commit(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Commit those that were not committed yet. Never raises."""
        new = {tp: offset for tp, offset in offsets.items() if self._committed.get(tp) != offset}
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
