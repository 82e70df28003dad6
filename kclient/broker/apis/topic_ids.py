"""Topics that requests name by their ids (KIP-516)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kclient.broker.apis.call import ApiCall


def name_topics(call: ApiCall, topics: Sequence[Any]) -> set[str]:
    """Write the names of topics, which came with their ids, into a request.

    Returns stand-ins for the names of those that do not exist. No topic can be called like one of them.
    """
    cache = call.broker.controller.cache
    unknown = set()
    for topic in topics:
        found = cache.topic_by_id(topic.topic_id)
        if found is None:
            unknown.add(f"(id {topic.topic_id})")
        topic.name = f"(id {topic.topic_id})" if found is None else found.name
    return unknown
