"""A fetch of a whole session as bytes, in which offsets and numbers can be filled in."""

from __future__ import annotations

from collections.abc import Mapping

from kclient._accel import PreparedFetch
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.fetch_session import FIRST_VERSION_WITH_TOPIC_IDS, WantedPartition
from kclient.protocol.codec import Buffer

MAX_PARTITIONS = 64
"""A session with more of them is fetched in the usual way; its fetches would say everything again each time."""

_CLIENT_ID_AT = 12
_LAST_VERSION_WITH_REPLICA_ID = 14
# Longest wait, fewest and most bytes, isolation level; session id.
_BEFORE_EPOCH_BYTES = 4 + 4 + 4 + 1 + 4
_TOPIC_ID_BYTES = 16
# Partition and leader epoch; the offset; last fetched epoch, start of the log, most bytes, no tagged field.
_BEFORE_OFFSET_BYTES = 4 + 4
_PARTITION_BYTES = _BEFORE_OFFSET_BYTES + 8 + 4 + 8 + 4 + 1


class FetchTemplate:
    """What fetches of the same partitions of a session have in common. Belongs to the I/O thread.

    `frame` is such a fetch, of one of the `VERSIONS`, with its length. See `PreparedFetch` for `occupied`.
    """

    VERSIONS = range(FIRST_VERSION_WITH_TOPIC_IDS, 19)
    """Of these the fetches, and their answers, are known in every byte."""

    __slots__ = ("_asked", "_partitions", "_session_id", "prepared")

    def __init__(
        self,
        frame: Buffer,
        version: int,
        session_id: int,
        wanted: Mapping[TopicPartition, WantedPartition],
        occupied: bytearray,
    ) -> None:
        epoch_at, offsets_at, numbers = _places(bytes(frame), version)
        by_number = {(want.topic_id.bytes, tp.partition): tp for tp, want in wanted.items()}
        self._session_id = session_id
        self._asked = {tp: want[1:] for tp, want in wanted.items()}
        self._partitions = [by_number[number] for number in numbers]  # in the order of the frame
        self.prepared = PreparedFetch(frame, epoch_at, offsets_at, numbers, occupied)

    def suits(self, session_id: int, wanted: Mapping[TopicPartition, WantedPartition]) -> bool:
        """Whether a fetch of `wanted` in that session differs by epoch and offsets alone."""
        if session_id != self._session_id:
            return False
        asked = self._asked
        for tp, want in wanted.items():
            if asked.get(tp) != want[1:]:
                return False
        return len(wanted) == len(asked)

    def arm(
        self,
        answered: int,
        asked: Mapping[TopicPartition, WantedPartition],
        correlation_id: int,
        epoch: int,
    ) -> None:
        """Follow the fetch with the correlation id `answered`, which has `asked` for the same partitions.

        The follower has these `correlation_id` and `epoch`.
        """
        offsets = [asked[tp].fetch_offset for tp in self._partitions]
        self.prepared.arm(answered, self._session_id, correlation_id, epoch, offsets)

    def filled_in(
        self, wanted: Mapping[TopicPartition, WantedPartition]
    ) -> dict[TopicPartition, WantedPartition]:
        """`wanted` with the offsets of the follower."""
        filled = {}
        for tp, offset in zip(self._partitions, self.prepared.offsets(), strict=True):
            filled[tp] = WantedPartition(offset, *wanted[tp][1:])
        return filled


def _places(frame: bytes, version: int) -> tuple[int, list[int], list[tuple[bytes, int]]]:
    """Where the session's epoch stands, where the offsets do, and topic id and number of the partition of each."""
    client_id_bytes = int.from_bytes(frame[_CLIENT_ID_AT : _CLIENT_ID_AT + 2], "big", signed=True)
    body_at = _CLIENT_ID_AT + 2 + max(client_id_bytes, 0) + 1  # and no tagged field
    epoch_at = body_at + _BEFORE_EPOCH_BYTES + (4 if version <= _LAST_VERSION_WITH_REPLICA_ID else 0)
    offsets_at: list[int] = []
    numbers: list[tuple[bytes, int]] = []
    # Compact arrays announce one element more than they have, here in one byte: MAX_PARTITIONS is below 127.
    pos = epoch_at + 4
    topics, pos = frame[pos] - 1, pos + 1
    for _ in range(topics):
        topic_id, pos = frame[pos : pos + _TOPIC_ID_BYTES], pos + _TOPIC_ID_BYTES
        partitions, pos = frame[pos] - 1, pos + 1
        for _ in range(partitions):
            numbers.append((topic_id, int.from_bytes(frame[pos : pos + 4], "big")))
            offsets_at.append(pos + _BEFORE_OFFSET_BYTES)
            pos += _PARTITION_BYTES
        pos += 1  # no tagged field
    return epoch_at, offsets_at, numbers
