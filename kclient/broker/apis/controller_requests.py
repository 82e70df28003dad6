"""Requests that change the metadata, or may have to, and are left to the controller's thread."""

from __future__ import annotations

from typing import Any

from kclient.broker.broker_context import BrokerContext
from kclient.broker.metadata.topic_names import OFFSETS_TOPIC
from kclient.protocol.api_keys import ApiKeys

_CHANGES = frozenset(
    {
        ApiKeys.ALTER_CLIENT_QUOTAS,
        ApiKeys.ALTER_CONFIGS,
        ApiKeys.ALTER_USER_SCRAM_CREDENTIALS,
        ApiKeys.CREATE_ACLS,
        ApiKeys.CREATE_PARTITIONS,
        ApiKeys.CREATE_TOPICS,
        ApiKeys.DELETE_ACLS,
        ApiKeys.DELETE_TOPICS,
        ApiKeys.INCREMENTAL_ALTER_CONFIGS,
        ApiKeys.UPDATE_FEATURES,
    }
)


def is_for_controller(broker: BrokerContext, key: ApiKeys, request: Any) -> bool:
    """True if the answer may have to wait for changes of the metadata: its own, and those before it."""
    if key is ApiKeys.METADATA:
        known = broker.controller.cache.image.topics.by_name
        return (
            request.topics is not None
            and request.allow_auto_topic_creation
            and broker.config.auto_create_topics_enable
            and any(topic.name is not None and topic.name not in known for topic in request.topics)
        )
    if key is ApiKeys.FIND_COORDINATOR:
        return broker.controller.cache.topic(OFFSETS_TOPIC) is None
    if key is ApiKeys.INIT_PRODUCER_ID:
        return broker.producer_ids.exhausted
    return key in _CHANGES
