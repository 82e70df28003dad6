"""Checks of partitions and offsets that applications pass in: what is wrong is refused at once, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_name import check_topic
from kclient.common.topic_partition import TopicPartition

OffsetLike: TypeAlias = int | OffsetAndMetadata

_MAX_PARTITION = 2**31 - 1
_MAX_INT64 = 2**63 - 1


def checked_partition(tp: Any, argument: str = "tp") -> TopicPartition:
    """`tp`, if it can exist."""
    if not isinstance(tp, TopicPartition):
        raise TypeError(f"{argument}: a TopicPartition is needed, not {tp!r}")
    check_topic(tp.topic, argument)
    number: Any = tp.partition
    if not isinstance(number, int) or isinstance(number, bool) or not 0 <= number <= _MAX_PARTITION:
        raise ValueError(f"{argument}: {tp!r} cannot be a partition")
    return tp


def checked_offset(offset: Any, argument: str = "offset") -> OffsetAndMetadata:
    """An offset given as a number or with metadata."""
    if isinstance(offset, OffsetAndMetadata):
        made = offset
    else:
        if not isinstance(offset, int) or isinstance(offset, bool):
            raise TypeError(f"{argument}: an int or an OffsetAndMetadata is needed, not {offset!r}")
        if offset < 0:
            raise ValueError(f"{argument}: an offset must not be negative, not {offset}")
        made = OffsetAndMetadata(offset)
    if made.offset > _MAX_INT64:
        raise ValueError(f"{argument}: no offset is as large as {made.offset}")
    return made


def checked_offsets(offsets: Any) -> dict[TopicPartition, OffsetAndMetadata]:
    """Offsets to commit."""
    if not isinstance(offsets, Mapping):
        raise TypeError(f"offsets must map each TopicPartition to its offset, not be {offsets!r}")
    return {
        checked_partition(tp, "offsets"): checked_offset(offset, f"offsets: {tp}")
        for tp, offset in offsets.items()
    }
