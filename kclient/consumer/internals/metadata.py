"""The metadata of the topics that a consumer wants to know of."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, Protocol

from kclient.client.metadata import Metadata
from kclient.client.metadata_schedule import MetadataSchedule
from kclient.common.cluster import Cluster
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.consumer.config import ConsumerConfig
from kclient.consumer.internals.subscription_state import SubscriptionState
from kclient.utils.time import Time

_CREATION_MS: Final = 1000
"""The time for which a topic that is created because somebody asked for it may be missing."""


class Assigned(Protocol):
    """A part that knows the partitions that are assigned."""

    @property
    def by_partition(self) -> Collection[TopicPartition]:
        """The partitions."""


class ConsumerMetadata(Metadata):
    """Metadata of the subscribed and assigned topics, or of all of them for a pattern. Thread-safe."""

    def __init__(
        self,
        config: ConsumerConfig,
        subscription: SubscriptionState,
        assigned: Assigned,
        time: Time,
    ) -> None:
        super().__init__(
            MetadataSchedule.from_config(config),
            allow_auto_topic_creation=config.allow_auto_create_topics,
            time=time,
            log_context=config.log_context(),
        )
        self._subscription = subscription
        self._assigned = assigned
        self.exclude_internal_topics = config.exclude_internal_topics
        self._may_create_topics = config.allow_auto_create_topics
        self._transient: dict[str, int] = {}
        self._asked_for: frozenset[str] | None = frozenset()
        """The topics of the last request, which may be on its way; None for all of them."""
        self._all_topics_version: int | None = None
        """The version from which on answers tell of all topics, which a subscribed pattern is matched with."""
        self._missing_since_ms: dict[str, int] = {}
        self._missing_warned_of: set[str] = set()

    def add_transient_topics(self, topics: Collection[str]) -> None:
        """Know these too until `remove_transient_topics`, for a query about partitions that are not assigned."""
        with self._lock:
            new = [topic for topic in topics if topic not in self._transient]
            for topic in topics:
                self._transient[topic] = self._transient.get(topic, 0) + 1
            if not self._wanted_topics().issuperset(new):
                self.request_update_for_new_topics()

    def remove_transient_topics(self, topics: Collection[str]) -> None:
        """Undo `add_transient_topics`."""
        with self._lock:
            for topic in topics:
                self._transient[topic] -= 1
                if not self._transient[topic]:
                    del self._transient[topic]

    def subscription_changed(self) -> None:
        """Ask for what is not known of the topics that are subscribed to or assigned now."""
        # Nobody named the topics that a broker's pattern matches: one that is deleted must not come back.
        broker_pattern = self._subscription.broker_pattern
        self.allow_auto_topic_creation = self._may_create_topics and broker_pattern is None
        self._all_topics_version = None
        if self._subscription.pattern is not None:
            with self._lock:
                self.request_update(reset_backoff=True)
                self._all_topics_version = self._schedule.request_version
            return
        with self._lock:
            wanted = self._wanted_topics()
            # The next picture has only what was asked for, whatever this one has.
            will_tell = self._asked_for is None or self._asked_for >= wanted
            if not (will_tell and self.fetch().topics >= wanted):
                self.request_update_for_new_topics()

    def match_pattern(self, cluster: Cluster) -> None:
        """Subscribe to the topics that match the subscribed pattern, if there is one and all topics are known."""
        all_topics_version = self._all_topics_version
        if all_topics_version is not None and self._schedule.answered_version >= all_topics_version:
            hidden = cluster.internal_topics if self.exclude_internal_topics else frozenset()
            self._subscription.subscribe_from_pattern(
                topic for topic in cluster.topics - hidden if self._subscription.matches(topic)
            )

    def _wanted_topics(self) -> frozenset[str]:
        return self._subscription.metadata_topics(self._assigned.by_partition)

    def topics_to_request(self) -> list[str] | None:
        if self._subscription.pattern is not None:
            self._asked_for = None
            return None
        self._asked_for = self._wanted_topics().union(self._transient)
        return sorted(self._asked_for)

    def retain_topic(self, topic: str, is_internal: bool, now_ms: int) -> bool:  # noqa: ARG002
        if topic in self._transient or topic in self._wanted_topics():
            return True
        if is_internal and self.exclude_internal_topics:
            return False
        return self._subscription.matches(topic)

    def is_gone(self, topic: str, topic_id: Uuid | None) -> bool:
        """True if the brokers say that the topic with this id, None if unknown, does not exist any more."""
        known = self.topic_id(topic)
        if known is not None:
            return topic_id is not None and known != topic_id
        if self._subscription.pattern is not None:
            return topic not in self.fetch().topics
        return topic in self.snapshot.missing_topics

    def on_missing_topics(self, topics: frozenset[str], now_ms: int) -> None:
        """Warn of each topic that is subscribed to or assigned, once until it exists."""
        wanted = topics & self._wanted_topics()
        self._missing_warned_of &= wanted
        since_ms = {topic: self._missing_since_ms.get(topic, now_ms) for topic in wanted}
        self._missing_since_ms = since_ms
        patience_ms = _CREATION_MS if self.allow_auto_topic_creation else 0
        for topic in sorted(wanted - self._missing_warned_of):
            if now_ms - since_ms[topic] >= patience_ms:
                self._missing_warned_of.add(topic)
                self._log.warning("Topic %r does not exist; it will be read once it is created", topic)
