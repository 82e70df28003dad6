"""The topics that a consumer wants, and the way it said so."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from enum import Enum

from kclient.common.topic_partition import TopicPartition
from kclient.consumer.subscription_pattern import SubscriptionPattern
from kclient.errors import IllegalStateError


class SubscriptionType(Enum):
    """The way that partitions come to the consumer."""

    NONE = "none"
    AUTO_TOPICS = "topics"
    AUTO_PATTERN = "pattern"
    AUTO_BROKER_PATTERN = "a pattern for the broker"
    USER_ASSIGNED = "assignment"


class SubscriptionState:
    """Topics, pattern, and what the other members of the group are subscribed to. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._type = SubscriptionType.NONE
        self._subscription: frozenset[str] = frozenset()
        self.pattern: re.Pattern[str] | None = None
        """The subscribed pattern, None without one; to be read, changed by the methods."""
        self.awaits_match = False
        """True until the subscribed pattern is matched with the topics of the cluster."""
        self.broker_pattern: SubscriptionPattern | None = None
        """The same of a pattern that the coordinator matches."""
        self._group_subscription: frozenset[str] = frozenset()

    def has_auto_assigned_partitions(self) -> bool:
        """Return True if a group assigns the partitions."""
        return self._type not in (SubscriptionType.NONE, SubscriptionType.USER_ASSIGNED)

    def has_nothing(self) -> bool:
        """Return True if there is neither a subscription nor an assignment to poll."""
        return self._type is SubscriptionType.NONE

    def subscribe(self, topics: Iterable[str]) -> bool:
        """Subscribe to `topics`; returns whether they differ from before."""
        with self._lock:
            self._set_type(SubscriptionType.AUTO_TOPICS)
            return self._change_subscription(frozenset(topics))

    def subscribe_pattern(self, pattern: re.Pattern[str]) -> None:
        """Subscribe to all topics that match `pattern`, now and later."""
        with self._lock:
            self._set_type(SubscriptionType.AUTO_PATTERN)
            self.pattern = pattern
            self.awaits_match = True

    def subscribe_broker_pattern(self, pattern: SubscriptionPattern) -> None:
        """Subscribe to all topics that the coordinator finds to match `pattern`, now and later."""
        with self._lock:
            self._set_type(SubscriptionType.AUTO_BROKER_PATTERN)
            self.broker_pattern = pattern

    def assign(self) -> None:
        """The application assigns partitions by itself."""
        with self._lock:
            self._set_type(SubscriptionType.USER_ASSIGNED)

    def unsubscribe(self) -> None:
        """Forget it all."""
        with self._lock:
            self._subscription = self._group_subscription = frozenset()
            self.pattern = self.broker_pattern = None
            self.awaits_match = False
            self._type = SubscriptionType.NONE

    def subscribe_from_pattern(self, topics: Iterable[str]) -> bool:
        """The topics that match the pattern now; returns whether they differ from before."""
        with self._lock:
            if self._type is not SubscriptionType.AUTO_PATTERN:
                return False  # the subscription changed while the metadata was on its way
            self.awaits_match = False
            return self._change_subscription(frozenset(topics))

    def subscribe_from_broker(self, topics: Iterable[str], watched: Iterable[str] = ()) -> None:
        """Of the topics that match the coordinator's pattern, those with partitions, and those to know of besides."""
        with self._lock:
            if self._type is SubscriptionType.AUTO_BROKER_PATTERN:
                self._subscription = frozenset(topics)
                self._group_subscription = self._subscription.union(watched)

    def subscription(self) -> frozenset[str]:
        """The topics subscribed to; empty for a user's own assignment."""
        return self._subscription if self.has_auto_assigned_partitions() else frozenset()

    def group_subscribe(self, topics: Iterable[str]) -> bool:
        """The topics of all members, which the leader watches; returns whether there are new ones."""
        with self._lock:
            wider = frozenset(topics) | self._subscription
            grew = not wider <= self._group_subscription
            self._group_subscription = wider
            return grew

    def reset_group_subscription(self) -> None:
        """Watch only the own topics again."""
        with self._lock:
            self._group_subscription = self._subscription

    def metadata_topics(self, assigned: Iterable[TopicPartition]) -> frozenset[str]:
        """The topics whose metadata has to be known, with these partitions assigned."""
        with self._lock:
            if self._type is SubscriptionType.USER_ASSIGNED:
                return frozenset(tp.topic for tp in assigned)
            return self._subscription | self._group_subscription

    def covers(self, partitions: Iterable[TopicPartition]) -> bool:
        """Return True if the group assigned only what is subscribed to now."""
        with self._lock:
            if self._type is SubscriptionType.AUTO_PATTERN:
                return all(self.matches(tp.topic) for tp in partitions)
            return all(tp.topic in self._subscription for tp in partitions)

    def matches(self, topic: str) -> bool:
        """Return True if the subscribed pattern matches all of `topic`'s name."""
        pattern = self.pattern
        return pattern is not None and pattern.fullmatch(topic) is not None

    def _change_subscription(self, topics: frozenset[str]) -> bool:
        changed = topics != self._subscription
        self._subscription = topics
        if changed:
            self._group_subscription = topics
        return changed

    def _set_type(self, wanted: SubscriptionType) -> None:
        if self._type not in (SubscriptionType.NONE, wanted):
            raise IllegalStateError(
                "subscribe() to topics, subscribe() to a pattern and assign() exclude each other: "
                f"the consumer has a subscription by {self._type.value}; call unsubscribe() first"
            )
        self._type = wanted
