"""Acknowledgements: the words that a share consumer and its brokers have for them."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import TypeAlias

from kclient.common.topic_id_partition import TopicIdPartition
from kclient.errors import KafkaError


class AcknowledgeType(IntEnum):
    """The fate of a record that a share group delivered (KIP-932), by its number on the wire."""

    ACCEPT = 1
    """It was processed."""
    RELEASE = 2
    """It was not, and is to be delivered again, unless that has been tried as often as the group allows."""
    REJECT = 3
    """It cannot be processed by anybody, and is not to be delivered again."""
    RENEW = 4
    """It is still being processed: its lock begins anew (KIP-1222)."""


AcknowledgementCommitCallback: TypeAlias = Callable[
    [dict[TopicIdPartition, frozenset[int]], KafkaError | None], object
]
"""Called with the offsets of a partition whose acknowledgements were answered, and the error if they failed."""
