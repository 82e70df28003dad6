"""Fetch sessions of users whose rights come and go, on the embedded broker and a real one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from harness.broker.requests import try_produce
from harness.broker.wire import Wire, batch
from harness.scenarios.access import SESSIONS, log_in
from harness.waiting import wait_until
from kclient.admin import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    KafkaAdminClient,
    ResourcePattern,
    ResourceType,
)
from kclient.common.uuid import Uuid
from kclient.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from kclient.record import iter_batches

OK, REFUSED, UNKNOWN_ID = 0, 29, 100
_TOPIC_IDS_FROM = 13


class SessionReader:
    """A fetch session, by names of topics or, from version 13 on, by their ids; one partition of each."""

    def __init__(self, wire: Wire, version: int, topics: Mapping[str, Uuid]) -> None:
        self.throttled = 0
        """Answers that told the client to wait."""
        self.values: list[bytes] = []
        """The values of all records so far."""
        self._wire = wire
        self._version = version
        self._topics = topics
        self._names = {topic_id: name for name, topic_id in topics.items()}
        self._offsets = dict.fromkeys(topics, 0)
        self._news = set(topics)
        self._session = self._epoch = 0

    def read(self) -> Mapping[str, int]:
        """Ask for what is new of all topics; the codes of those that the answer has."""
        request = FetchRequest(
            max_wait_ms=0,
            max_bytes=1 << 20,
            session_id=self._session,
            session_epoch=self._epoch,
            topics=[self._wanted(name) for name in sorted(self._news)],
        )
        answer = self._wire.ask(request, self._version)
        assert answer.error_code == OK
        self._session, self._epoch, self._news = answer.session_id, self._epoch + 1, set()
        self.throttled += answer.throttle_time_ms > 0
        return {self._name(topic): self._part(topic) for topic in answer.responses}

    def _by_id(self) -> bool:
        return self._version >= _TOPIC_IDS_FROM

    def _wanted(self, name: str) -> FetchTopic:
        part = FetchPartition(partition=0, fetch_offset=self._offsets[name], partition_max_bytes=2000)
        if self._by_id():
            return FetchTopic(topic_id=self._topics[name], partitions=[part])
        return FetchTopic(topic=name, partitions=[part])

    def _name(self, topic: Any) -> str:
        name = self._names[topic.topic_id] if self._by_id() else topic.topic
        assert isinstance(name, str)
        return name

    def _part(self, topic: Any) -> int:
        (part,) = topic.partitions
        for found in iter_batches(part.records or b""):
            for record in found.records():
                self.values.append(record.value or b"")
                self._offsets[self._name(topic)] = record.offset + 1
                self._news.add(self._name(topic))
        code = part.error_code
        assert isinstance(code, int)
        return code


def reading(topic: str, user: str) -> AclBinding:
    """The right to read a topic."""
    pattern = ResourcePattern(ResourceType.TOPIC, topic)
    return AclBinding(pattern, AccessControlEntry(f"User:{user}", AclOperation.READ))


def _is_written(wire: Wire, name: str) -> bool:
    return try_produce(wire, name, batch(name.encode())).error_code == OK


def check_sessions(admin: KafkaAdminClient, plain: str, address: str, version: int) -> None:
    """Open a session without any right, give one, and take it away again."""
    one, other = f"session-{version}-one", f"session-{version}-other"
    admin.create_topics([one, other])
    wait_until(lambda: {one, other} <= admin.list_topics().keys(), 30, "the topics")
    known = admin.list_topics()
    topics = {name: known[name].topic_id for name in (one, other)}
    denied = {one: REFUSED, other: REFUSED}
    if version >= _TOPIC_IDS_FROM:
        topics["nobody's"] = Uuid.random()
        denied["nobody's"] = UNKNOWN_ID
    with Wire(plain) as wire:
        for name in (one, other):
            # A real broker tells of topics before it leads their partitions.
            wait_until(partial(_is_written, wire, name), 30, "the record")
    with Wire(address) as wire:
        log_in(wire, SESSIONS)
        reader = SessionReader(wire, version, topics)
        assert reader.read() == denied
        assert reader.read() == denied
        rule = reading(one, SESSIONS)
        admin.create_acls([rule])
        wait_until(lambda: reader.read() == {**denied, one: OK}, 10, "the right")
        assert reader.values == [one.encode()]
        # Without news a partition is not told of, while errors are told each time.
        assert {name: code for name, code in reader.read().items() if code} == {
            name: code for name, code in denied.items() if name != one
        }
        admin.delete_acls([rule.to_filter()])
        wait_until(lambda: reader.read() == denied, 10, "the end of the right")
        assert reader.values == [one.encode()]
