"""The topics of a broker that starts, from its metadata log and from the directories it finds.

Only what is in the metadata log is this broker's to expire, to recover and to delete. A directory that is not was
written by another broker, or the log was lost: the topic's settings are not known, and the defaults would delete what
its owner keeps. Such a start is refused before anything is changed, unless the topics are to be adopted; then their
records are kept for ever until somebody says otherwise.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from types import MappingProxyType

import attrs

from kclient.broker.log.config import LogConfig
from kclient.broker.log.log_directory import FoundPartition, LogDirectory
from kclient.broker.log.log_manager import LogManager
from kclient.broker.metadata.controller import OFFSETS_TOPIC_CONFIGS
from kclient.broker.metadata.image.configurations import ResourceType
from kclient.broker.metadata.image.metadata_image import MetadataImage
from kclient.broker.metadata.image.topics import TopicsImage
from kclient.broker.metadata.kafka_metadata import KafkaMetadata, with_kept_records
from kclient.broker.metadata.metadata_directory import find_old_journal
from kclient.broker.metadata.metadata_store import MetadataStore
from kclient.broker.metadata.recovered_topic import RecoveredTopic
from kclient.broker.metadata.topic_names import INTERNAL_TOPICS, METADATA_TOPICS, OFFSETS_TOPIC
from kclient.common.uuid import Uuid
from kclient.errors import KafkaStorageError
from kclient.protocol.schema import Message

log = logging.getLogger(__name__)

_KEEP_ALL = MappingProxyType({"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"})
_COMPACT = MappingProxyType({"cleanup.policy": "compact"})
_SHOWN = 3
_MAX_ADOPTED_PARTITIONS = 100_000


@attrs.frozen
class RecoveredTopics:
    """The topics by name, the partitions to open, and those whose topic was deleted."""

    topics: Mapping[str, RecoveredTopic]
    partitions: Sequence[FoundPartition]
    deleted: Sequence[FoundPartition]
    inherited: Sequence[Message] = ()
    """Records of what else the metadata of a Kafka said."""
    kept: Sequence[str] = ()
    """The topics that were given a retention.ms, as their Kafka's default is not known."""

    def placed(self, logs: LogManager, *, writable: bool = True) -> list[RecoveredTopic]:
        """The topics with the directory of each partition: where it was found, else where it was last. Called when
        the directories are open. Unless they are `writable`, what was not found is nowhere. Raises KafkaStorageError.
        """
        found = {one.topic_partition: one.log_dir.id for one in self.partitions}
        live = logs.directory_places()
        placed = []
        nowhere = {None, Uuid.ZERO}
        for topic in self.topics.values():
            if not writable:
                here = tuple(found.get(tp) or Uuid.ZERO for tp in topic.topic_partitions())
                placed.append(attrs.evolve(topic, directories=here))
                continue
            directories = []
            for tp, remembered in zip_longest(topic.topic_partitions(), topic.directories):
                known = found.get(tp) or remembered
                if tp not in found and known in live:
                    log.warning("%s is not in %s, where it should be, and begins anew", tp, live[known])
                directories.append(known)
            missing = sum(known in nowhere for known in directories)
            chosen = iter(logs.choose_directories(missing) if missing else ())
            directories = [next(chosen) if known in nowhere else known for known in directories]
            placed.append(attrs.evolve(topic, directories=tuple(directories)))
        return placed


def recover_topics(
    store: MetadataStore,
    found: Iterable[FoundPartition],
    log_dirs: Sequence[LogDirectory],
    home: LogDirectory,
    *,
    node_id: int,
    adopt: bool,
    read_only: bool = False,
    defaults: LogConfig | None = None,
    kafka: KafkaMetadata | None = None,
) -> RecoveredTopics:
    """Compare the metadata log, which is or will be in `home`, with what is on disk; changes neither.

    With `adopt`, or `read_only`, the topics are those of `kafka`, if it is given, and a directory that no metadata know
    becomes a topic as well. With `defaults`, the settings of topics that have none, Kafka's topics that have no
    retention.ms are given one. Raises KafkaStorageError for a directory that is nobody's.
    """
    adopt = adopt or read_only
    used = next((log_dir for log_dir in log_dirs if log_dir.meta is not None), None)
    if not store.found and not adopt and used is not None and home.meta is None:
        raise KafkaStorageError(
            f"{used.path} was used before, but there is no metadata log. Is the disk of {home.path} missing? "
            "Start once with kclient.adopt.topics=true to go on without it"
        )
    journal = find_old_journal([log_dir.path for log_dir in log_dirs])
    if not store.found and not adopt and journal is not None:
        raise KafkaStorageError(
            f"{journal} was written by a kclient from before the metadata log, and is not read any more. Nothing was "
            "changed. Start once with kclient.adopt.topics=true to take its topics over, with all their records and "
            "without their settings"
        )
    image = store.image
    dead = image.topics.deleted.keys()
    known_here = known_topics(image, node_id)
    kept: tuple[str, ...] = ()
    if kafka is not None:
        dead, known_here = kafka.image.topics.deleted.keys(), kafka.topics(node_id)
        if defaults is not None and not read_only:
            before = known_here
            known_here = [with_kept_records(one, defaults, kafka.retention_ms()) for one in before]
            changed = (one.name for one, was in zip(known_here, before, strict=True) if one is not was)
            kept = tuple(sorted(changed))
    topics = {topic.name: topic for topic in known_here}
    partitions: list[FoundPartition] = []
    deleted: list[FoundPartition] = []
    strangers: list[FoundPartition] = []
    for one in found:
        name = one.topic_partition.topic
        known = topics.get(name)
        other = read_only and known is not None and one.topic_id not in {None, known.id}
        if one.topic_id in dead or other or (known is None and _never_begun(image.topics, one)):
            deleted.append(one)
        elif name in METADATA_TOPICS:
            # Its own is empty if a crash came between making it and writing to it.
            if not store.found and not adopt and one.path != store.directory:
                strangers.append(one)
        elif known is None or one.topic_id not in {None, known.id}:
            strangers.append(one)
        else:
            partitions.append(one)
    if strangers and not adopt:
        raise KafkaStorageError(_refusal(strangers))
    adopted = _adopted(strangers, topics)
    if adopted:
        log.warning(
            "Adopted topics found on disk: %s. Nothing is deleted from them until retention.ms or retention.bytes "
            "of the topic is set",
            _names(strangers),
        )
    inherited = () if kafka is None else tuple(kafka.records(node_id))
    return RecoveredTopics({**topics, **adopted}, [*partitions, *strangers], deleted, inherited, kept)


def known_topics(image: MetadataImage, node_id: int) -> list[RecoveredTopic]:
    """The topics of an image, with the directories in which broker `node_id` has their partitions."""
    return [
        RecoveredTopic(
            topic.name,
            topic.id,
            topic.partition_count,
            image.configs.of(ResourceType.TOPIC, topic.name),
            tuple(partition.directory_of(node_id) for partition in topic.partitions),
        )
        for topic in image.topics.by_name.values()
    ]


def _never_begun(topics: TopicsImage, one: FoundPartition) -> bool:
    """True for what is left of a topic whose creation failed before its directory was told its id."""
    return (
        one.topic_id is None
        and any(topic.name == one.topic_partition.topic for topic in topics.deleted.values())
        and not any(path.stat().st_size for path in one.path.glob("*.log"))
    )


def _adopted(
    strangers: Iterable[FoundPartition], topics: Mapping[str, RecoveredTopic]
) -> dict[str, RecoveredTopic]:
    by_name: dict[str, list[FoundPartition]] = {}
    for one in strangers:
        by_name.setdefault(one.topic_partition.topic, []).append(one)
    adopted = {}
    for name, parts in by_name.items():
        ids = {part.topic_id for part in parts if part.topic_id is not None}
        if name in topics:
            ids.add(topics[name].id)
        if len(ids) > 1:
            raise KafkaStorageError(
                f"{parts[0].path} belongs to another topic {name} than the rest: ids {', '.join(map(str, ids))}; "
                "move one of them away"
            )
        last = max(parts, key=lambda part: part.topic_partition.partition)
        count = last.topic_partition.partition + 1
        if count > _MAX_ADOPTED_PARTITIONS:
            # Something like backup-20260101: all the partitions below it would be made.
            raise KafkaStorageError(
                f"{last.path} would make a topic of {count} partitions, and is hardly one; move it away"
            )
        configs: Mapping[str, str] = OFFSETS_TOPIC_CONFIGS if name == OFFSETS_TOPIC else _KEEP_ALL
        if name in INTERNAL_TOPICS and name != OFFSETS_TOPIC:
            configs = _COMPACT
        adopted[name] = RecoveredTopic(name, ids.pop() if ids else Uuid.random(), count, configs)
    return adopted


def _refusal(strangers: Sequence[FoundPartition]) -> str:
    places = ", ".join(sorted({str(one.log_dir.path) for one in strangers}))
    return (
        f"{places} has partitions of topics that the metadata log does not know ({_names(strangers)}), written by "
        "another broker such as Apache Kafka, or before the log was lost. Nothing was changed. Start once with "
        "kclient.adopt.topics=true to take them over with all their records, with kclient.read.only=true to read them "
        "and leave them as they are, or choose other log.dirs"
    )


def _names(strangers: Iterable[FoundPartition]) -> str:
    names = sorted({one.topic_partition.topic for one in strangers})
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(names[:_SHOWN]) + more
