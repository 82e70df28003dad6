"""Rules for the names of topics, and the names that are the broker's own."""

from __future__ import annotations

import re
from collections.abc import Iterable

from kclient.errors import InvalidTopicError

OFFSETS_TOPIC = "__consumer_offsets"
TRANSACTION_STATE_TOPIC = "__transaction_state"
SHARE_GROUP_STATE_TOPIC = "__share_group_state"
INTERNAL_TOPICS = frozenset({OFFSETS_TOPIC, TRANSACTION_STATE_TOPIC, SHARE_GROUP_STATE_TOPIC})
"""The topics in which the broker keeps its own state."""

CLUSTER_METADATA_TOPIC = "__cluster_metadata"
OWN_METADATA_TOPIC = "__kclient_metadata"
METADATA_TOPICS = (CLUSTER_METADATA_TOPIC, OWN_METADATA_TOPIC)
"""The partitions in which controllers keep their logs, which are no topics for clients. Kafka's is the first one;
this broker takes the second where the first is a Kafka's."""

_LEGAL = re.compile(r"[a-zA-Z0-9._-]{1,249}")


def validate_topic_name(name: str) -> None:
    """Raise InvalidTopicError if no topic can have this name. Names become directories, so this is a safeguard too."""
    if name in {"", ".", ".."} or not _LEGAL.fullmatch(name):
        raise InvalidTopicError(
            "A topic's name has 1 to 249 characters out of a-z, A-Z, 0-9, '.', '_' and '-', and is not '.' or '..'"
        )


def colliding_topic(name: str, existing: Iterable[str]) -> str | None:
    """The topic that metrics could not tell from `name` because they write '.' as '_'; None if there is none."""
    if "." not in name and "_" not in name:
        return None
    seen_as = name.replace(".", "_")
    return next((other for other in existing if other != name and other.replace(".", "_") == seen_as), None)
