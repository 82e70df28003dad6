"""PreparedFetch: the fetch that follows the one under way, made before the answer to that is there."""

from __future__ import annotations

import struct
from collections.abc import Sequence

from kclient._accel.pure_ends import end_of_batches
from kclient._accel.pure_hash import Buffer

_CORRELATION_ID_AT = 8  # behind the length, the API's number and the version
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_ID_BYTES = 16
# Correlation id, tagged fields; throttle time, error, session.
_HEAD = struct.Struct(">ibihi")
# Partition, error, high watermark, last stable offset, log start offset.
_PARTITION = struct.Struct(">ihqqq")
_ABORTED_BYTES = 16
_MAX_VARINT_BITS = 28
_LARGEST_OFFSET = 2**62


class _UnexpectedError(Exception):
    """The answer is for others to read."""


class _Answer:
    """The bytes of an answer, taken from the front; whatever is not there is unexpected."""

    __slots__ = ("data", "pos")

    def __init__(self, data: memoryview) -> None:
        self.data = data
        self.pos = 0

    def take(self, form: struct.Struct) -> tuple[int, ...]:
        pos = self.pos
        self.skip(form.size)
        return form.unpack_from(self.data, pos)

    def skip(self, size: int) -> memoryview:
        pos = self.pos
        if size > len(self.data) - pos:
            raise _UnexpectedError
        self.pos = pos + size
        return self.data[pos : pos + size]

    def number(self) -> int:
        """An unsigned varint."""
        found = 0
        for shift in range(0, _MAX_VARINT_BITS + 1, 7):
            byte = self.skip(1)[0]
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return found
        raise _UnexpectedError

    def count(self) -> int:
        """The number of elements, or bytes, of what is not null; null counts as nothing."""
        return max(self.number() - 1, 0)

    def no_tags(self) -> None:
        if self.number():
            raise _UnexpectedError


class PreparedFetch:
    """A fetch of everything in a fetch session (KIP-227), in which only numbers and offsets are still open.

    An answer by which it is `follow`ed is one for the session it is armed for, of which nothing has to be looked at
    but where the batches of each partition end: no error, no throttling, no tagged field (versions 13 to 18). The
    offsets are then those ends; partitions without data stay where they are. Anything else is left to others, and so
    is an answer that comes while something is `occupied`, that is while its first byte is not 0: whoever has data to
    read can wait for the fetch to be made in the usual way.

    Belongs to one thread. The native body's Poller follows by itself, as soon as the frame is there, and without the
    interpreter lock.
    """

    __slots__ = (
        "_answered",
        "_armed",
        "_epoch_at",
        "_frame",
        "_occupied",
        "_offsets_at",
        "_partitions",
        "_session_id",
        "followed",
        "written",
    )

    def __init__(
        self,
        frame: Buffer,
        epoch_at: int,
        offsets_at: Sequence[int],
        partitions: Sequence[tuple[bytes, int]],
        occupied: bytearray,
    ) -> None:
        """`frame` is the request with its length; in it the session's epoch and the offsets stand at these places.

        `partitions` are topic id and number of each. ValueError for a place that is not in the frame, or an id that is
        none.
        """
        self._frame = bytearray(frame)
        last = len(self._frame) - _LONG.size
        if (
            not 0 <= epoch_at <= last
            or any(not 0 <= at <= last for at in offsets_at)
            or last < _CORRELATION_ID_AT
        ):
            raise ValueError("the frame has no such place")
        if len(partitions) != len(offsets_at) or any(
            len(topic_id) != _ID_BYTES for topic_id, _ in partitions
        ):
            raise ValueError("every partition has a topic id of 16 bytes and one place")
        if not occupied:
            raise ValueError("there is no byte that says what is occupied")
        self._epoch_at = epoch_at
        self._offsets_at = list(offsets_at)
        self._partitions = {(bytes(topic_id), number): at for at, (topic_id, number) in enumerate(partitions)}
        self._occupied = occupied
        self._armed = False
        self._answered = self._session_id = 0
        self.followed = False
        """Whether the answer came for which it was armed last, so that the frame is being written."""
        self.written = 0
        """How many bytes of it are written already."""

    def arm(
        self, answered: int, session_id: int, correlation_id: int, epoch: int, offsets: Sequence[int]
    ) -> None:
        """Follow the answer with the correlation id `answered`; `offsets` are those which that fetch has asked for."""
        if len(offsets) != len(self._offsets_at):
            raise ValueError("every partition has an offset")
        _INT.pack_into(self._frame, _CORRELATION_ID_AT, correlation_id)
        _INT.pack_into(self._frame, self._epoch_at, epoch)
        for at, offset in zip(self._offsets_at, offsets, strict=True):
            _LONG.pack_into(self._frame, at, offset)
        self._answered = answered
        self._session_id = session_id
        self.followed = False
        self.written = 0
        self._armed = True

    def disarm(self) -> None:
        """Follow nothing until it is armed again."""
        self._armed = False

    def follow(self, answer: Buffer) -> bool:
        """Whether `answer`, a frame without its length, is as expected; then the offsets are put in.

        Once it is, it is `followed`, until it is armed again.
        """
        if not self._armed or self._occupied[0]:
            return False
        try:
            ends = self._ends(_Answer(memoryview(answer)))
        except _UnexpectedError:
            return False
        for at, end in ends.items():
            _LONG.pack_into(self._frame, self._offsets_at[at], end)
        self._armed = False
        self.followed = True
        return True

    def offsets(self) -> list[int]:
        """The offsets in the frame, in the order of the partitions."""
        return [_LONG.unpack_from(self._frame, at)[0] for at in self._offsets_at]

    def unwritten(self) -> bytes:
        """A copy of what is still to be written."""
        return bytes(self._frame[self.written :])

    def _ends(self, answer: _Answer) -> dict[int, int]:
        """Where the batches of each partition end that has some, by its number here."""
        correlation_id, tags, throttle_ms, error, session_id = answer.take(_HEAD)
        if correlation_id != self._answered or tags or throttle_ms or error or session_id != self._session_id:
            raise _UnexpectedError
        ends: dict[int, int] = {}
        for _ in range(answer.count()):
            topic_id = bytes(answer.skip(_ID_BYTES))
            for _ in range(answer.count()):
                number, error, *_ = answer.take(_PARTITION)
                at = self._partitions.get((topic_id, number))
                if error or at is None or at in ends:
                    raise _UnexpectedError
                for _ in range(answer.count()):
                    answer.skip(_ABORTED_BYTES)
                    answer.no_tags()
                if answer.take(_INT) != (-1,):  # another replica is preferred
                    raise _UnexpectedError
                records = answer.skip(answer.count())
                answer.no_tags()
                if records:
                    end = end_of_batches(records)
                    asked = _LONG.unpack_from(self._frame, self._offsets_at[at])[0]
                    if end is None or not max(asked, -1) < end <= _LARGEST_OFFSET:
                        raise _UnexpectedError
                    ends[at] = end
            answer.no_tags()
        answer.no_tags()
        if answer.pos != len(answer.data) or not ends:
            raise _UnexpectedError
        return ends
