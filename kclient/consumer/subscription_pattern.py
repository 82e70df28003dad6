"""SubscriptionPattern: a regular expression that the group's coordinator matches topics with."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias

import attrs


@attrs.frozen
class SubscriptionPattern:
    """A regular expression in RE2J's syntax, which the broker evaluates; for `KafkaConsumer.subscribe`. Immutable.

    It has to match a topic's whole name. It needs `group.protocol=consumer` and brokers of 4.0 or newer, which find new
    topics sooner than a client does, and tell it only of those that it gets partitions of. Raises TypeError for what is
    no str, ValueError if it is empty.
    """

    pattern: str = attrs.field()

    @pattern.validator
    def _check(self, _attribute: object, value: object) -> None:
        if not isinstance(value, str):
            raise TypeError(f"pattern: a SubscriptionPattern is made of a str, not of {type(value).__name__}")
        if not value:
            raise ValueError("pattern: it must not be empty")

    def __str__(self) -> str:
        return self.pattern


TopicsLike: TypeAlias = Iterable[str] | re.Pattern[str] | SubscriptionPattern
"""All that can be subscribed to."""
