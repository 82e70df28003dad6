"""Answers that are larger than the client may take: which partition's record is to blame, and what is said of it."""

from __future__ import annotations

from collections.abc import Mapping

from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.completed_fetch import CompletedFetch
from kclient.consumer.internals.fetch_session import WantedPartition
from kclient.errors import InvalidReceiveError, RecordTooLargeError


class TooLargeAnswers:
    """The partitions that such an answer was asked for with, until each of them was fetched alone. For the I/O thread.

    A broker returns at most what a fetch allows, which is less than the client may take, but for the first batch that
    it finds: that is returned whatever its size. So the one to blame is found by asking for each alone, and the others
    can be read on.
    """

    def __init__(self) -> None:
        self._suspects: dict[TopicPartition, None] = {}  # the one in front is fetched first
        self._blamed: TopicPartition | None = None

    def choose(
        self, wanted: dict[TopicPartition, WantedPartition]
    ) -> tuple[dict[TopicPartition, WantedPartition], bool]:
        """Return the part of `wanted` to fetch now, and True if others wait: then it must not wait for records."""
        if not self._suspects:
            return wanted, False
        blamed, self._blamed = self._blamed, None
        for tp in self._suspects:
            if tp in wanted and tp != blamed:
                return {tp: wanted[tp]}, True
        # Whoever asks for it again and again must not keep the others from being read.
        rest = {tp: want for tp, want in wanted.items() if tp != blamed}
        return rest or wanted, len(rest) != len(wanted)

    def cleared(self, fetched: Mapping[TopicPartition, WantedPartition]) -> None:
        """An answer came for these."""
        if self._suspects:
            for tp in fetched:
                self._suspects.pop(tp, None)

    def refused(
        self, fetched: Mapping[TopicPartition, WantedPartition], reason: InvalidReceiveError
    ) -> CompletedFetch | None:
        """The answer for these was too large; returns what the application has to hear if it is clear why."""
        self._suspects.update(dict.fromkeys(fetched))
        if len(fetched) > 1:
            return None
        ((tp, want),) = fetched.items()
        self._blamed = tp
        error = RecordTooLargeError(
            f"{tp}: what comes next at offset {want.fetch_offset} makes an answer of {reason.size} bytes, more than "
            f"kclient.receive.max.bytes ({reason.limit}) allows; raise that, or seek() past it",
            sizes={tp: reason.size},
        )
        return CompletedFetch.failed(tp, want.fetch_offset, error)
