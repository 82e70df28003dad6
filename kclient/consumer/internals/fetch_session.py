"""Incremental fetch sessions (KIP-227): a fetch names only what changed since the last one to the same broker.

The broker goes on answering for every partition of the session until told to forget it, so what this side wants no
more must be named in the forget list, or a paused partition would fill every answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import attrs

from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import Errors
from kclient.protocol.messages.fetch import (
    FetchableTopicResponse,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    PartitionData,
)
from kclient.utils.log_context import LogContext, Logger

NO_SESSION: Final = 0
INITIAL_EPOCH: Final = 0
FINAL_EPOCH: Final = -1
_MAX_EPOCH: Final = 2**31 - 1
FIRST_VERSION_WITH_TOPIC_IDS: Final = 13


_NO_ID: Final = Uuid.ZERO.bytes


class WantedPartition(NamedTuple):
    """A partition as it is to be fetched. Immutable; equal means the broker knows it already."""

    fetch_offset: int
    topic_id: Uuid
    max_bytes: int
    leader_epoch: int | None = None


class SessionFetch(NamedTuple):
    """The session's part of one fetch request. Immutable."""

    session_id: int
    epoch: int
    to_send: Mapping[TopicPartition, WantedPartition]
    to_forget: tuple[tuple[TopicPartition, Uuid], ...]
    has_topic_ids: bool

    @property
    def max_version(self) -> int | None:
        """The newest version that can carry it: without an identifier for every topic, names have to be sent."""
        return None if self.has_topic_ids else FIRST_VERSION_WITH_TOPIC_IDS - 1

    def fill(self, request: FetchRequest, version: int) -> FetchRequest:
        """Put session, partitions and forgotten partitions into `request` for `version`."""
        by_id = version >= FIRST_VERSION_WITH_TOPIC_IDS
        request.session_id = self.session_id
        request.session_epoch = self.epoch
        topics: dict[str, FetchTopic] = {}
        for tp, wanted in self.to_send.items():
            topic = topics.get(tp.topic)
            if topic is None:
                topic = topics[tp.topic] = FetchTopic()
                if by_id:
                    topic.topic_id = wanted.topic_id
                else:
                    topic.topic = tp.topic
            topic.partitions.append(
                FetchPartition(
                    partition=tp.partition,
                    current_leader_epoch=-1 if wanted.leader_epoch is None else wanted.leader_epoch,
                    fetch_offset=wanted.fetch_offset,
                    partition_max_bytes=wanted.max_bytes,
                )
            )
        request.topics = list(topics.values())
        forgotten: dict[tuple[str, Uuid], ForgottenTopic] = {}
        for tp, topic_id in self.to_forget:
            entry = forgotten.get((tp.topic, topic_id))
            if entry is None:
                entry = forgotten[tp.topic, topic_id] = ForgottenTopic()
                if by_id:
                    entry.topic_id = topic_id
                else:
                    entry.topic = tp.topic
            entry.partitions.append(tp.partition)
        request.forgotten_topics_data = list(forgotten.values())
        return request


@attrs.define(eq=False, repr=False)
class FetchSession:
    """The fetch session with one broker. Used by the I/O thread; at most one fetch is under way."""

    _node_id: int
    _log_context: LogContext
    _log: Logger = attrs.field(init=False)
    _id: int = attrs.field(default=NO_SESSION, init=False)
    epoch: int = attrs.field(default=INITIAL_EPOCH, init=False)
    """That of the next fetch, or, while one is under way, of that one."""
    _partitions: dict[TopicPartition, WantedPartition] = attrs.field(factory=dict, init=False)
    _topic_names: dict[bytes, str] = attrs.field(factory=dict, init=False)  # by the bytes of the identifier
    _used_topic_ids: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._log = self._log_context.logger(__name__)

    @property
    def is_open(self) -> bool:
        """True if the broker keeps a session for this client."""
        return self._id != NO_SESSION

    def build(self, wanted: Mapping[TopicPartition, WantedPartition]) -> SessionFetch:
        """The part of a fetch request that makes the session hold exactly `wanted`."""
        has_topic_ids = True
        for want in wanted.values():
            if want.topic_id.bytes == _NO_ID:
                has_topic_ids = False
        if self.epoch != INITIAL_EPOCH and wanted and has_topic_ids != self._used_topic_ids:
            self.start_over()  # a session knows its topics either by name or by identifier
        to_forget: list[tuple[TopicPartition, Uuid]] = []
        if self.epoch == INITIAL_EPOCH:
            self._used_topic_ids = has_topic_ids
            to_send = dict(wanted)
        else:
            has_topic_ids = self._used_topic_ids
            to_send = {}
            for tp, want in wanted.items():
                known = self._partitions.get(tp)
                if known != want:
                    to_send[tp] = want
                    # A topic that was deleted and made again is another topic under the old name.
                    if known is not None and has_topic_ids and known.topic_id.bytes != want.topic_id.bytes:
                        to_forget.append((tp, known.topic_id))
            if not self._partitions.keys() <= wanted.keys():
                to_forget += [
                    (tp, self._partitions[tp].topic_id) for tp in self._partitions if tp not in wanted
                ]
        self._partitions = dict(wanted)
        self._topic_names.clear()
        if has_topic_ids:
            for tp, want in wanted.items():
                self._topic_names[want.topic_id.bytes] = tp.topic
        return SessionFetch(self._id, self.epoch, to_send, tuple(to_forget), has_topic_ids)

    def build_close(self) -> SessionFetch:
        """The part of a fetch request that tells the broker that the session is over."""
        return SessionFetch(self._id, FINAL_EPOCH, {}, (), self._used_topic_ids)

    def on_response(
        self, response: FetchResponse, version: int
    ) -> dict[TopicPartition, PartitionData] | None:
        """The partitions in `response`, or None if it is of no use and a new session starts with the next fetch."""
        if response.error_code:
            self._log.info(
                "Broker %d ended fetch session %d with %s; starting a new one",
                self._node_id,
                self._id,
                Errors.name_of(response.error_code),
            )
            if response.error_code == Errors.FETCH_SESSION_ID_NOT_FOUND:
                self._id = NO_SESSION
            self.epoch = INITIAL_EPOCH
            return None
        found = self._resolve(response, version)
        complete = self.epoch != INITIAL_EPOCH or (
            found is not None and found.keys() == self._partitions.keys()
        )
        if found is None or not complete or not found.keys() <= self._partitions.keys():
            self._log.info(
                "Broker %d answered fetch session %d (epoch %d) for other partitions than asked; starting a new one",
                self._node_id,
                self._id,
                self.epoch,
            )
            self.start_over()
            return None
        if self.epoch == INITIAL_EPOCH:
            self._id = response.session_id
            self.epoch = INITIAL_EPOCH if response.session_id == NO_SESSION else 1
        elif response.session_id == NO_SESSION:
            # The broker evicted the session, but answered for what it had.
            self._id, self.epoch = NO_SESSION, INITIAL_EPOCH
        else:
            self.epoch = 1 if self.epoch == _MAX_EPOCH else self.epoch + 1
        return found

    def start_over(self) -> None:
        """Have a new session with the next fetch, as it is not known what the broker did with this one."""
        # Naming the old session with the first epoch lets the broker drop it at once.
        self.epoch = INITIAL_EPOCH

    def _resolve(self, response: FetchResponse, version: int) -> dict[TopicPartition, PartitionData] | None:
        found: dict[TopicPartition, PartitionData] = {}
        for topic in response.responses:
            name = self._name_of(topic, version)
            if name is None:
                return None
            for partition in topic.partitions:
                found[TopicPartition(name, partition.partition_index)] = partition
        return found

    def _name_of(self, topic: FetchableTopicResponse, version: int) -> str | None:
        if version >= FIRST_VERSION_WITH_TOPIC_IDS:
            return self._topic_names.get(topic.topic_id.bytes)
        return topic.topic
