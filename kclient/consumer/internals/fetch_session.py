"""Incremental fetch sessions (KIP-227): a fetch names only what changed since the last one to the same broker.

The broker goes on answering for every partition of the session until told to forget it, so what this side wants no
more must be named in the forget list, or a paused partition would fill every answer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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


def _has_no_id(want: WantedPartition | None) -> bool:
    return want is not None and want.topic_id.bytes == _NO_ID


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
    _without_id: int = attrs.field(default=0, init=False)  # of the partitions

    def __attrs_post_init__(self) -> None:
        self._log = self._log_context.logger(__name__)

    @property
    def is_open(self) -> bool:
        """True if the broker keeps a session for this client."""
        return self._id != NO_SESSION

    @property
    def is_new(self) -> bool:
        """True if the next fetch begins with all partitions anew."""
        return self.epoch == INITIAL_EPOCH

    @property
    def partitions(self) -> Mapping[TopicPartition, WantedPartition]:
        """The partitions of the fetch that was built last, until the next one is."""
        return self._partitions

    def build(
        self,
        wanted: Mapping[TopicPartition, WantedPartition],
        changed: Iterable[TopicPartition] | None = None,
    ) -> SessionFetch:
        """The part of a fetch request that makes the session hold exactly `wanted`.

        `changed` are the partitions that may be wanted otherwise than in the fetch before; None: any.
        """
        known = self._partitions
        if changed is None:
            changed = [*wanted, *(tp for tp in known if tp not in wanted)]
        without_id = self._without_id
        for tp in changed:
            without_id += _has_no_id(wanted.get(tp)) - _has_no_id(known.get(tp))
        self._without_id = without_id
        if self.epoch != INITIAL_EPOCH and wanted and (not without_id) != self._used_topic_ids:
            self.start_over()  # a session knows its topics either by name or by identifier
        if self.epoch == INITIAL_EPOCH:
            self._used_topic_ids = not without_id
            self._partitions = dict(wanted)
            self._learn_names()
            return SessionFetch(self._id, self.epoch, dict(wanted), (), self._used_topic_ids)
        to_send: dict[TopicPartition, WantedPartition] = {}
        to_forget: list[tuple[TopicPartition, Uuid]] = []
        for tp in changed:
            before, want = known.get(tp), wanted.get(tp)
            if before == want:
                continue
            if want is not None:
                known[tp] = to_send[tp] = want
                self._topic_names[want.topic_id.bytes] = tp.topic
            else:
                del known[tp]
            # A topic that was deleted and made again is another topic under the old name.
            if before is not None and (want is None or self._is_other_topic(before, want)):
                to_forget.append((tp, before.topic_id))
        if to_forget:
            self._learn_names()
        return SessionFetch(self._id, self.epoch, to_send, tuple(to_forget), self._used_topic_ids)

    def _is_other_topic(self, before: WantedPartition, want: WantedPartition) -> bool:
        return self._used_topic_ids and before.topic_id.bytes != want.topic_id.bytes

    def _learn_names(self) -> None:
        self._topic_names.clear()
        for tp, want in self._partitions.items():
            self._topic_names[want.topic_id.bytes] = tp.topic

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
