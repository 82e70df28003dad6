"""Questions of the application to the cluster and the group, which the I/O thread asks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import attrs

from kclient.common.topic_partition import PartitionInfo, TopicPartition
from kclient.consumer.internals.network_thread import NetworkThread
from kclient.consumer.internals.offset_fetcher import FoundOffsets, OffsetFetcher
from kclient.consumer.internals.requests import Request
from kclient.consumer.internals.topic_metadata import TopicMetadataManager

if TYPE_CHECKING:
    from kclient.consumer.internals.coordinator.commits import CommitManager, CommittedOffsets


@attrs.frozen
class Questions:
    """Each returns at once, with what the answer will complete. For the application's thread."""

    _network: NetworkThread
    _commits: CommitManager | None
    _offsets: OffsetFetcher
    _topics: TopicMetadataManager

    def committed(self, partitions: Iterable[TopicPartition], deadline_ms: int) -> Request[CommittedOffsets]:
        """The offsets that the group has committed; None where none is."""
        commits, wanted = self._commits, frozenset(partitions)
        assert commits is not None
        request: Request[CommittedOffsets] = Request(deadline_ms)
        self._network.submit(lambda _: commits.fetch(wanted, request), request)
        return request

    def offsets(self, timestamps: Mapping[TopicPartition, int], deadline_ms: int) -> Request[FoundOffsets]:
        """The first records at or after times, or the codes of the log's ends; None where there is none."""
        request = Request[FoundOffsets](deadline_ms)
        self._network.submit(lambda _: self._offsets.search(timestamps, request), request)
        return request

    def topics(
        self, names: tuple[str, ...] | None, deadline_ms: int
    ) -> Request[dict[str, list[PartitionInfo]]]:
        """The partitions of those topics that exist, of all topics for None."""
        request = Request[dict[str, list[PartitionInfo]]](deadline_ms)
        self._network.submit(lambda _: self._topics.fetch(names, request), request)
        return request
