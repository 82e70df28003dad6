"""What topics there are when a broker starts, from its journal and from the directories it finds."""

from __future__ import annotations

import logging

from kclient.broker.log.log_manager import LogManager
from kclient.broker.log.unified_log import UnifiedLog
from kclient.broker.metadata.cache import TopicImage
from kclient.broker.metadata.topics import TopicStore
from kclient.common.uuid import Uuid

log = logging.getLogger(__name__)


def recover_topics(store: TopicStore, logs: LogManager) -> list[TopicImage]:
    """The topics of the journal, and those of which there are only directories: copied here from another
    broker.

    What a crash left of deleted topics is removed. Raises KafkaStorageError.
    """
    topics = dict(store.topics)
    strangers: dict[str, list[UnifiedLog]] = {}
    for found in logs.all_logs():
        tp = found.topic_partition
        if found.topic_id in store.deleted_ids:
            log.info("Removing %s, whose topic was deleted", tp)
            logs.delete_log(tp)
        elif tp.topic not in topics:
            strangers.setdefault(tp.topic, []).append(found)
    for name, parts in strangers.items():
        topic_id = next((part.topic_id for part in parts if part.topic_id is not None), None)
        count = 1 + max(part.topic_partition.partition for part in parts)
        log.info("Adopting topic %s with %d partitions, found on disk", name, count)
        topics[name] = TopicImage(name, topic_id or Uuid.random(), count)
    return list(topics.values())
