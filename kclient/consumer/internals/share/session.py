"""ShareSession: what a broker keeps of a share consumer from request to request (KIP-932)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeVar

import attrs

from kclient.common.topic_id_partition import TopicIdPartition
from kclient.common.uuid import Uuid
from kclient.consumer.internals.share.acknowledgements import Run
from kclient.protocol.messages import share_acknowledge, share_fetch

_NEW: Final = 0
FINAL: Final = -1
"""The epoch of the last request of a session: whatever it holds is released."""
_LARGEST: Final = 2**31 - 1

T = TypeVar("T")


@attrs.define(eq=False)
class ShareSession:
    """The session with one broker: the partitions that it is to fetch from, and the number of the next request.

    Belongs to the I/O thread; at most one request of a session is under way.
    """

    node_id: int
    epoch: int = attrs.field(default=_NEW, init=False)
    """That of the next request, or, while one is under way, of that one."""
    _partitions: frozenset[TopicIdPartition] = attrs.field(default=frozenset(), init=False)

    @property
    def is_open(self) -> bool:
        """True if the broker has the session, as far as is known."""
        return self.epoch != _NEW

    def start_over(self) -> None:
        """Begin a new session with the next fetch, as the broker has this one no more, or it is not known what it has.

        With its first request a broker drops the one before, and releases what that had acquired.
        """
        self.epoch = _NEW
        self._partitions = frozenset()

    def answered(self) -> None:
        """The broker has taken a request."""
        self.epoch = 1 if self.epoch == _LARGEST else self.epoch + 1

    def fill_fetch(
        self,
        request: share_fetch.ShareFetchRequest,
        wanted: frozenset[TopicIdPartition],
        runs: Mapping[TopicIdPartition, Sequence[Run]],
    ) -> None:
        """Have the session fetch from exactly `wanted`, and bring acknowledgements along, which a new one cannot."""
        request.share_session_epoch = self.epoch
        added = wanted - self._partitions
        topics: dict[Uuid, share_fetch.FetchTopic] = {}
        for partition in sorted(added | runs.keys()):
            topic = topics.setdefault(partition.topic_id, share_fetch.FetchTopic(topic_id=partition.topic_id))
            topic.partitions.append(
                share_fetch.FetchPartition(
                    partition_index=partition.partition,
                    acknowledgement_batches=[
                        run.on_wire(share_fetch.AcknowledgementBatch) for run in runs.get(partition, ())
                    ],
                )
            )
        request.topics = list(topics.values())
        forgotten: dict[Uuid, share_fetch.ForgottenTopic] = {}
        for partition in sorted(self._partitions - wanted):
            topic_id = partition.topic_id
            gone = forgotten.setdefault(topic_id, share_fetch.ForgottenTopic(topic_id=topic_id))
            gone.partitions.append(partition.partition)
        request.forgotten_topics_data = list(forgotten.values())

    def fetched(self, wanted: frozenset[TopicIdPartition]) -> None:
        """The broker has taken a fetch for `wanted`."""
        self._partitions = wanted
        self.answered()

    def fill_acknowledge(
        self,
        request: share_acknowledge.ShareAcknowledgeRequest,
        runs: Mapping[TopicIdPartition, Sequence[Run]],
        *,
        final: bool = False,
    ) -> None:
        """Send acknowledgements alone; the `final` request ends the session."""
        request.share_session_epoch = FINAL if final else self.epoch
        topics: dict[Uuid, share_acknowledge.AcknowledgeTopic] = {}
        for partition, said in sorted(runs.items()):
            topic_id = partition.topic_id
            topic = topics.setdefault(topic_id, share_acknowledge.AcknowledgeTopic(topic_id=topic_id))
            topic.partitions.append(
                share_acknowledge.AcknowledgePartition(
                    partition_index=partition.partition,
                    acknowledgement_batches=[
                        run.on_wire(share_acknowledge.AcknowledgementBatch) for run in said
                    ],
                )
            )
        request.topics = list(topics.values())


def by_partition(
    topics: Iterable[tuple[Uuid, Iterable[T]]], known: Iterable[TopicIdPartition]
) -> dict[TopicIdPartition, T]:
    """The partitions of an answer under the names that they were asked for with; others are left out."""
    asked = {(each.topic_id, each.partition): each for each in known}
    found: dict[TopicIdPartition, T] = {}
    for topic_id, partitions in topics:
        for partition in partitions:
            index: int = partition.partition_index  # type: ignore[attr-defined]
            which = asked.get((topic_id, index))
            if which is not None:
                found[which] = partition
    return found
