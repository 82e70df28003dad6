"""The topics, by their ids, that a query's offsets are of: a name may be another topic's by now.

A checkpoint has names alone, in the JSON of Spark's own connector. So the ids are kept as long as the query runs, and
from one run to the next as notes beside the offsets that are committed for its group. Brokers delete what is committed
for a topic together with the topic: each topic's note has the others' ids as well, and the note on the partition of
`kclient.marker.topic` has all of them.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping

import attrs

from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.spark.data_loss import created_again, report_data_loss
from kclient.spark.offsets import Offsets
from kclient.spark.options import SourceOptions
from kclient.spark.resolver import OffsetResolver

_log = logging.getLogger(__name__)

_NOTE = "kclient.topicIds"
_LONGEST = 4000
"""Characters of a note. Brokers take 4096 bytes (offset.metadata.max.bytes)."""


@attrs.define(eq=False)
class TopicIds:
    """Knows which topics the offsets are of that a streaming query has reached. Used by one thread."""

    _options: SourceOptions
    _resolver: OffsetResolver
    _ids: dict[str, Uuid] | None = attrs.field(default=None, init=False)

    @property
    def known(self) -> Mapping[str, Uuid]:
        """The ids of the topics, as far as they are known."""
        return self._ids or {}

    def begin_anew(self, ids: Mapping[str, Uuid]) -> None:
        """Take these for a query that begins."""
        if self._ids is None:
            self._resolver.check_marker_topic()
            self._ids = dict(ids)

    def recall(self, reached: Offsets) -> None:
        """Look up what was noted of the topics by the run before, of a query that goes on. Raises KafkaError."""
        if self._ids is not None:
            return
        self._resolver.check_marker_topic()
        self._ids = {}
        group_id = self._options.commit_group_id
        if group_id is None:
            return
        committed = self._resolver.all_committed(group_id)
        self._ids = noted_ids(committed)
        read = {tp.topic for tp, offset in reached.items() if offset > 0}
        unknown = sorted(read - self._ids.keys() - {tp.topic for tp in committed})
        if unknown:
            _log.warning(
                "Group %s has no offset of %s, of which this query has read: either this is its first run with that "
                "commitGroupId, or what was committed has expired, or the topic was deleted. If it was created again "
                "since, that is not seen, and its first records are not read. Ids of topics outlast them with "
                "kclient.marker.topic.",
                group_id,
                ", ".join(unknown),
            )

    def changed(self) -> dict[str, Uuid]:
        """Return the topics that are others than before, as the resolver has found them last, with their new ids.

        Reports each as data loss, and raises DataLossError if that is to end the query.
        """
        now = self._resolver.topic_ids
        again = {
            topic: now[topic] for topic, before in self.known.items() if now.get(topic, before) != before
        }
        for topic, topic_id in sorted(again.items()):
            report_data_loss(
                self._options.fail_on_data_loss,
                f"{created_again(topic, self.known[topic], topic_id)} What was not read of the old one is gone, and "
                "the new one is to be read from its beginning.",
            )
        return again

    def take_over(self, *, but: Iterable[str] = ()) -> None:
        """From now on offsets are of the topics that the resolver has found last, `but` of these as before."""
        now = dict(self._resolver.topic_ids)
        for topic in but:
            now.pop(topic, None)
        self._ids = {**self.known, **now}


def noted(
    offsets: Mapping[TopicPartition, int], topic_ids: Mapping[str, Uuid], marker: TopicPartition | None
) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return what is to be committed: the offsets, with notes of the topics' ids on one partition of each topic.

    A note begins with the id of its own topic, and has as many others as fit. That on `marker` begins with the first.
    """
    found = {tp: OffsetAndMetadata(offset) for tp, offset in offsets.items()}
    carriers = {tp.topic: tp for tp in sorted(offsets, reverse=True)}
    for topic, tp in carriers.items():
        found[tp] = OffsetAndMetadata(offsets[tp], metadata=_note(topic, topic_ids))
    if marker is not None and marker not in offsets:
        found[marker] = OffsetAndMetadata(0, metadata=_note("", topic_ids))
    return found


def _note(own: str, topic_ids: Mapping[str, Uuid]) -> str:
    names = sorted(topic_ids)
    chosen: dict[str, str] = {}
    length = len(_NOTE) + 8
    for name in [*(each for each in names if each >= own), *(each for each in names if each < own)]:
        length += len(json.dumps(name)) + len(str(topic_ids[name])) + 6
        if length > _LONGEST:
            break
        chosen[name] = str(topic_ids[name])
    return json.dumps({_NOTE: chosen}) if chosen else ""


def noted_ids(committed: Mapping[TopicPartition, OffsetAndMetadata]) -> dict[str, Uuid]:
    """Return the ids in the notes of what is committed. What a topic's own partition says counts most."""
    own: dict[str, Uuid] = {}
    others: dict[str, Uuid] = {}
    for tp, each in sorted(committed.items()):
        for topic, topic_id in _read_note(each.metadata).items():
            (own if topic == tp.topic else others)[topic] = topic_id
    return {**others, **own}


def _read_note(metadata: str) -> dict[str, Uuid]:
    try:
        return {topic: Uuid.from_base64(text) for topic, text in json.loads(metadata)[_NOTE].items()}
    except (ValueError, TypeError, KeyError, AttributeError):
        return {}  # somebody else's, or none
