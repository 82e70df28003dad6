"""Replay: dead letters of a topic are sent back to where their records came from.

Each at most once for a group: its committed offset is the first letter that was not sent back, and the metadata of that
offset has the letters behind it that were. A letter that is left out is therefore there for the next run, with another
choice. Both go into one transaction, so that a run that dies and is started again sends nothing twice.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import attrs

from kclient.common.topic_partition import TopicPartition
from kclient.consumer import ConsumerRecords, KafkaConsumer
from kclient.errors import ConfigError, KafkaTimeoutError, UnknownTopicOrPartitionError
from kclient.processing.done_offsets import DoneOffsets
from kclient.processing.letters import Letter, Record, read_letter
from kclient.producer import KafkaProducer

_POLL_MS = 500
_READ_TIMEOUT_MS = 30_000
PER_TRANSACTION = 500
_LOG_APPEND_TIME = 1

NOT_CHOSEN = "not chosen"
NO_SOURCE = "no source in its headers"
TOO_OFTEN = "sent back too often"
NO_ROOM = "no room to remember it"

Settings = Mapping[str, object]


@attrs.frozen(kw_only=True)
class Choice:
    """The letters to be sent back: those for which everything holds that is given.

    `reason` is searched for in what the letter says of its error. Times are those of records, in ms since the epoch,
    from `start_ms` on and before `end_ms`. `offsets` has ranges by partition, the first and the last offset of each.
    A record that was sent back `max_attempts` times already stays.
    """

    reason: re.Pattern[str] | None = None
    source_topics: frozenset[str] = frozenset()
    start_ms: int | None = None
    end_ms: int | None = None
    offsets: Mapping[int, tuple[tuple[int, int], ...]] = attrs.field(factory=dict)
    limit: int | None = None
    max_attempts: int = 3

    def __attrs_post_init__(self) -> None:
        if self.start_ms is not None and self.end_ms is not None and self.end_ms <= self.start_ms:
            raise ConfigError("end_ms has to be after start_ms.", name="end_ms")

    def holds(self, letter: Letter) -> bool:
        """Return True if it is one of them, however often it was sent back."""
        record = letter.record
        if self.reason is not None and self.reason.search(letter.reason) is None:
            return False
        if self.source_topics and (letter.source is None or letter.source.topic not in self.source_topics):
            return False
        if self.start_ms is not None and record.timestamp_ms < self.start_ms:
            return False
        if self.end_ms is not None and record.timestamp_ms >= self.end_ms:
            return False
        if not self.offsets:
            return True
        ranges = self.offsets.get(record.partition, ())
        return any(first <= record.offset <= last for first, last in ranges)


@attrs.define
class Report:
    """The letters of a run, counted: by target and kind of error if they were sent, by cause and kind if they stay."""

    sent: Counter[tuple[str, str]] = attrs.field(factory=Counter)
    left: Counter[tuple[str, str]] = attrs.field(factory=Counter)
    transactions: int = 0
    limited: bool = False
    """True if the limit ended the run: there may be more."""


class Replay:
    """One run over the dead letters of `topic`. Without `execute` it only counts, and writes nothing anywhere.

    `to` is the topic to send to, None for that of each letter's source. A letter goes into the partition that its
    record came from; with `to`, into the one that its key belongs to. It has the record's key, value, time and headers,
    and `kclient.replay.attempt`. What lies beyond the end of the topic at the beginning is left to the next run: what
    is sent back, and comes to grief again, makes no circle.

    With `exactly_once` False, for brokers without transactions, a run that dies may send its last letters again.
    """

    def __init__(
        self,
        topic: str,
        consumer_settings: Settings,
        producer_settings: Settings,
        *,
        group_id: str,
        choice: Choice,
        to: str | None = None,
        execute: bool = False,
        exactly_once: bool = True,
    ) -> None:
        if to == topic:
            raise ConfigError("Dead letters cannot be sent to their own topic.", name="to")
        self.report = Report()
        self._topic = topic
        self._to = to
        self._choice = choice
        self._execute = execute
        self._group_id = group_id
        self._exactly_once = exactly_once
        self._reads: dict[str, object] = {
            "isolation.level": "read_committed",
            **consumer_settings,
            "group.id": group_id,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "allow.auto.create.topics": False,
        }
        self._writes = dict(producer_settings)
        if exactly_once:
            self._writes["transactional.id"] = group_id
        self._done: dict[TopicPartition, DoneOffsets] = {}
        self._pending: list[tuple[Letter, str]] = []
        self._sizes: dict[str, int] = {}

    def run(self) -> Report:
        """Read all letters, and send those that are chosen. Raises KafkaError; what was told as sent is sent."""
        with KafkaConsumer[Any, Any](self._reads) as consumer:
            if not self._execute:
                self._scan(consumer, None)
                return self.report
            with KafkaProducer[Any, Any](self._writes) as producer:
                if self._exactly_once:
                    # Ends what a run that died has left open, before its offsets are asked for.
                    producer.init_transactions()
                self._scan(consumer, producer)
        return self.report

    def _scan(self, consumer: KafkaConsumer[Any, Any], producer: KafkaProducer[Any, Any] | None) -> None:
        partitions = [
            TopicPartition(self._topic, number) for number in range(self._size(consumer, self._topic))
        ]
        begins, ends = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
        committed = consumer.committed(partitions)
        self._done = {tp: DoneOffsets(begins[tp], committed[tp]) for tp in partitions}
        open_ends = {tp: end for tp, end in ends.items() if self._done[tp].position < end}
        consumer.assign(open_ends)
        for tp in open_ends:
            consumer.seek(tp, self._done[tp].position)
        idle_ms = 0
        while any(consumer.position(tp) < end for tp, end in open_ends.items()):
            records = consumer.poll(_POLL_MS)
            idle_ms = 0 if records else idle_ms + _POLL_MS
            if idle_ms >= _READ_TIMEOUT_MS:
                raise KafkaTimeoutError(f"nothing more of {self._topic} came in {_READ_TIMEOUT_MS} ms")
            self._look_at(records, open_ends, consumer)
            if len(self._pending) >= PER_TRANSACTION:
                self._send(consumer, producer)
            if self.report.limited:
                break
        else:
            for tp, end in open_ends.items():
                self._done[tp].finish(end)
        self._send(consumer, producer)

    def _look_at(
        self,
        records: ConsumerRecords[Any, Any],
        ends: Mapping[TopicPartition, int],
        consumer: KafkaConsumer[Any, Any],
    ) -> None:
        for tp, of_partition in records.by_partition().items():
            for record in of_partition:
                if record.offset >= ends[tp]:
                    break
                if record.offset in self._done[tp]:
                    self._done[tp].passed(record.offset)
                    continue
                if not self._judge(record, self._done[tp], consumer):
                    return

    def _judge(self, record: Record, done: DoneOffsets, consumer: KafkaConsumer[Any, Any]) -> bool:
        """Put a letter among those to be sent, or leave it; False if the limit is reached before it."""
        letter = read_letter(record)
        target = self._to or (letter.source and letter.source.topic)
        why = None
        if not self._choice.holds(letter):
            why = NOT_CHOSEN
        elif target is None:
            why = NO_SOURCE
        elif letter.attempt >= self._choice.max_attempts:
            why = TOO_OFTEN
        limit = self._choice.limit
        if why is None and limit is not None and self.report.sent.total() + len(self._pending) >= limit:
            self.report.limited = True
            return False
        if why is None and not done.take(record.offset):
            why = NO_ROOM
        if why is not None:
            self.report.left[why, letter.kind] += 1
            done.leave()
            return True
        assert target is not None
        self._size(consumer, target)
        self._pending.append((letter, target))
        return True

    def _size(self, consumer: KafkaConsumer[Any, Any], topic: str) -> int:
        if topic not in self._sizes:
            try:
                self._sizes[topic] = len(consumer.partitions_for(topic))
            except UnknownTopicOrPartitionError:
                self._sizes[topic] = 0
            if not self._sizes[topic]:
                said = f"There is no topic {topic}"
                if topic not in (self._topic, self._to):
                    said += f", which letters of {self._topic} come from; another is given by 'to'"
                raise UnknownTopicOrPartitionError(said)
        return self._sizes[topic]

    def _send(self, consumer: KafkaConsumer[Any, Any], producer: KafkaProducer[Any, Any] | None) -> None:
        pending, self._pending = self._pending, []
        if not pending:
            return
        if producer is not None:
            changed = {letter.record.topic_partition for letter, _ in pending}
            offsets = {tp: self._done[tp].committed for tp in changed}
            if self._exactly_once:
                with producer.transaction():
                    for letter, target in pending:
                        self._send_one(producer, letter, target)
                    producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
            else:
                futures = [self._send_one(producer, letter, target) for letter, target in pending]
                producer.flush()
                for future in futures:
                    future.result()
                consumer.commit_sync(offsets)
            self.report.transactions += 1
        for letter, target in pending:
            self.report.sent[target, letter.kind] += 1

    def _send_one(self, producer: KafkaProducer[Any, Any], letter: Letter, target: str) -> Any:
        record, source = letter.record, letter.source
        same = source is not None and source.topic == target and source.partition < self._sizes[target]
        # A time that the topic of dead letters has given is not the record's.
        timed = record.timestamp_type != _LOG_APPEND_TIME and record.timestamp_ms >= 0
        return producer.send(
            target,
            record.value,
            key=record.key,
            partition=source.partition if source is not None and same else None,
            timestamp_ms=record.timestamp_ms if timed else None,
            headers=letter.again,
        )
