"""Groups of neighbouring segments that fit into one, so that cleaned segments do not become ever smaller."""

from __future__ import annotations

from collections.abc import Sequence

from kclient.broker.log.config import LogConfig
from kclient.broker.log.segment import LogSegment

_INT_MAX = 2**31 - 1


def group_segments(
    segments: Sequence[LogSegment], config: LogConfig, end_offset: int
) -> list[list[LogSegment]]:
    """Return `segments`, which follow each other and end before `end_offset`, in groups that are to become one each.

    A group has at most segment.bytes of batches and segment.index.bytes of each index, and offsets that fit into the
    indexes.
    """
    ends = [segment.base_offset for segment in segments[1:]] + [end_offset]
    groups: list[list[LogSegment]] = []
    size = offset_index = time_index = 0
    for segment, end in zip(segments, ends, strict=False):
        size += segment.size
        offset_index += segment.offset_index.size_in_bytes
        time_index += segment.time_index.size_in_bytes
        if (
            groups
            and size <= config.segment_bytes
            and offset_index <= config.segment_index_bytes
            and time_index <= config.segment_index_bytes
            # An empty one has no offsets; else there would be one left of it for ever every 2^31 offsets.
            and (segment.size == 0 or end - 1 - groups[-1][0].base_offset <= _INT_MAX)
        ):
            groups[-1].append(segment)
        else:
            groups.append([segment])
            size, offset_index, time_index = (
                segment.size,
                segment.offset_index.size_in_bytes,
                segment.time_index.size_in_bytes,
            )
    return groups
