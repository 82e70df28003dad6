"""Lane: the way of a lone record, from the thread that sends it to a connection and back, past the I/O thread."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kclient._accel.locks import holder_test
from kclient._accel.varint import zigzag

if TYPE_CHECKING:
    from kclient._accel.pure_batch import BatchBuilder
    from kclient._accel.pure_future import BatchResult

# A peer that is gone is an error to handle, also in a program that has asked for SIGPIPE to kill it.
NO_SIGNAL = getattr(socket, "MSG_NOSIGNAL", 0)

_CORRELATION_ID_AT = 8  # of a request: behind the length, the API's number and the version
_ANSWERED_AT = 4  # of an answer: behind the length
_NUMBER_BYTES = 8
_LARGEST_ANSWER = 512
_LARGEST_NUMBER = 0x7FFFFFFF
_LOOK_AGAIN_S = 1.0

_SHUT, _OPEN, _SENT, _ANSWERED = range(4)


class Lane:
    """One request at a time over a connection: a batch of one record, whose sender waits for nothing else.

    A `Poller` that is lent the lane opens it for the time in which its poll waits. Then any thread may `send`: it
    writes the request itself, to a connection on which nothing else is under way. Who wants to know what became of it
    waits here (`wait`), and the poll takes the answer from the socket and wakes them without being ended by it. So
    neither of the two has to wait for an I/O thread that does what a request takes in the usual way.

    That is for what nearly always happens. Any answer but the expected one, an answer that nobody waits for, a `wake`
    and everything else that ends a poll shuts the lane. Whoever lent it then settles it: what was answered meanwhile
    has to be counted, and a request without an answer goes on as if it had been sent in the usual way.

    The request is `head`, the length of the batch (`compact`: as an unsigned varint of one more), the batch and `tail`;
    `head` begins with the room for its length. `answer` is the whole frame which says that the batch was written; only
    its correlation id may differ, and the numbers at `places`: first offset, time of appending, start of the log.
    ValueError if there are no such places.

    `prepare`, `settle` and the sums are for the I/O thread while no poll waits; any thread may call the others.
    """

    __slots__ = (
        "_answer",
        "_compact",
        "_correlation_id",
        "_head",
        "_is_held_here",
        "_live",
        "_lock",
        "_numbers",
        "_places",
        "_producer_epoch",
        "_producer_id",
        "_result",
        "_sent_ms",
        "_sequence",
        "_sock",
        "_state",
        "_tail",
        "_unanswered",
        "answered",
        "largest_bytes",
        "latency_ms",
        "longest_ms",
        "partly",
        "patrol_ms",
        "pending",
        "total_bytes",
        "waiting",
    )

    def __init__(
        self, head: bytes, tail: bytes, compact: bool, answer: bytes, places: tuple[int, int, int]
    ) -> None:
        size = len(answer)
        last = size - _NUMBER_BYTES
        if not _NUMBER_BYTES <= size <= _LARGEST_ANSWER or any(
            not _NUMBER_BYTES <= at <= last for at in places
        ):
            raise ValueError("the answer has no such place, or is too long")
        if len(head) < _CORRELATION_ID_AT + 4:
            raise ValueError("the request has no place for its number")
        self._head = head
        self._tail = tail
        self._compact = compact
        self._answer = answer
        self._places = places
        # Reentrant: a signal handler may end a poll of which the same thread uses the lane.
        self._lock = threading.RLock()
        self._is_held_here = holder_test(self._lock)
        self._state = _SHUT
        # Whether the poll that it was lent to goes on, and nobody wants it to end.
        self._live = False
        self.waiting = 0
        """How many threads wait for the answer."""
        self._unanswered = threading.Lock()
        self._result: BatchResult | None = None
        self._numbers = (-1, -1)
        self._sock: socket.socket | None = None
        self._correlation_id = 0
        self._sent_ms = 0
        self._producer_id, self._producer_epoch, self._sequence = -1, -1, -1
        self.patrol_ms = 0
        """For the Poller: how long a poll goes on before its owner sees what was sent."""
        self.pending: BatchBuilder | None = None
        """The batch that was sent last, until it is `taken` or the lane is prepared again."""
        self.answered = 0
        """How many answers polls have taken since the lane was prepared."""
        self.latency_ms = 0
        """How long these took together."""
        self.longest_ms = 0
        """How long the slowest one took."""
        self.total_bytes = 0
        """The bytes of all batches that were sent since."""
        self.largest_bytes = 0
        """Those of the largest one."""
        self.partly = False
        """Whether the last one was not written to its end: the connection is then of no use."""

    @property
    def open(self) -> bool:
        """Whether `send` is worth trying."""
        return self._state == _OPEN

    @property
    def entered(self) -> bool:
        """True if the calling thread is in a step here that others wait for: a signal handler has interrupted it."""
        return self._is_held_here()

    def prepare(self, producer_id: int, producer_epoch: int, sequence: int) -> None:
        """Give the next batch `sequence`, and those after it the ones that follow; a negative one stays what it is.

        All sums begin again.

        ValueError unless the lane is shut and settled.
        """
        if self._state != _SHUT:
            raise ValueError("the lane is in use")
        self._producer_id, self._producer_epoch, self._sequence = producer_id, producer_epoch, sequence
        self.pending = None
        self.answered = self.total_bytes = self.largest_bytes = self.latency_ms = self.longest_ms = 0
        self.partly = False

    def send(self, builder: BatchBuilder) -> bool:
        """Close `builder`, which has one record, and write it; False if that could not be, and nothing was written.

        The builder is then of no use any more.
        """
        if self.entered:
            return False
        with self._lock:
            if self._state != _OPEN or self.waiting:
                return False
            sequence = self._sequence
            if sequence >= 0:
                sequence = (sequence + self.answered) & _LARGEST_NUMBER
            builder.close(self._producer_id, self._producer_epoch, sequence, 0)
            size = builder.size
            request = bytearray(self._head)
            request += _unsigned_varint(size + 1) if self._compact else size.to_bytes(4, "big")
            whole = len(request) + size + len(self._tail)
            correlation_id = (self._correlation_id + 1) & _LARGEST_NUMBER
            request[:4] = (whole - 4).to_bytes(4, "big")
            request[_CORRELATION_ID_AT : _CORRELATION_ID_AT + 4] = correlation_id.to_bytes(4, "big")
            self._sent_ms = _now_ms()
            self._correlation_id, before = correlation_id, self._correlation_id
            self._unanswered = unanswered = threading.Lock()
            unanswered.acquire()
            self.pending, self._result = builder, builder.result
            # A Ctrl-C may come behind the writing and before the next step; then nobody knows how much was written.
            self.partly = True
            self._state = _SENT
            count = self._write((request, *builder.views(), self._tail))
            if not count:
                self.pending = self._result = None
                self.partly = False
                self._correlation_id = before
                self._state = _OPEN if self._live else _SHUT
                return False
            self.partly = count < whole
            self.total_bytes += size
            self.largest_bytes = max(self.largest_bytes, size)
            return True

    def _write(self, buffers: Sequence[bytes | bytearray | memoryview]) -> int:
        assert self._sock is not None
        try:
            return self._sock.sendmsg(buffers, (), NO_SIGNAL)
        except OSError:
            return 0  # who uses the connection next will see what is wrong with it

    def wait(self, result: BatchResult, timeout_s: float | None = None) -> tuple[int, int] | None:
        """Wait for the answer to the batch with this `result`: its first offset and the time of appending.

        None if the time is over, and if the answer does not come by this way, or came and was `taken`.
        """
        if result is not self._result:
            return None
        unanswered = self._unanswered
        if self._state == _SENT:
            counted = False
            try:
                with self._lock:
                    self.waiting += 1
                    counted = True
                _await(unanswered, timeout_s)
            finally:
                with self._lock:
                    self.waiting -= counted
        with self._lock:
            return self._numbers if result is self._result and self._state == _ANSWERED else None

    def taken(self, result: BatchResult) -> None:
        """Everybody who wants to know has heard of the answer to the batch with this `result`."""
        with self._lock:
            if result is self._result and self._state == _ANSWERED:
                self.pending = self._result = None
                self._state = _OPEN if self._live else _SHUT

    def settle(self) -> tuple[BatchBuilder | None, tuple[int, int] | None]:
        """What was sent and not `taken`, with its answer if it has one. From then on nobody waits here for another."""
        with self._lock:
            state, self._state = self._state, _SHUT
            self._live = False
            self._result = None
            if state == _SENT:
                self._unanswered.release()
            return self.pending, self._numbers if state == _ANSWERED else None

    # For the Poller.

    @property
    def fd(self) -> int:
        """The descriptor of the socket."""
        return -1 if self._sock is None else self._sock.fileno()

    def lend(self, sock: socket.socket, correlation_id: int, patrol_ms: int) -> None:
        """Be ready for a poll; see `Poller.lend`."""
        if self._state != _SHUT:
            raise ValueError("the lane is in use")
        self._sock = sock
        self._correlation_id = correlation_id
        self.patrol_ms = patrol_ms
        self._live = True

    def begin(self) -> None:
        """The poll begins to wait; nothing happens if it was to end before that."""
        with self._lock:
            if self._state == _SHUT and self._live:
                self._state = _OPEN

    def end(self) -> None:
        """It no longer waits, or is about to. What was sent stays to be settled."""
        with self._lock:
            self._live = False
            if self._state == _OPEN:
                self._state = _SHUT

    def receive(self) -> bool:
        """Take the answer from the socket, if it is all there, as expected, and waited for; else leave all there."""
        with self._lock:
            if self._state != _SENT or not self.waiting:
                return False
            assert self._sock is not None
            try:
                data = self._sock.recv(len(self._answer) + 1, socket.MSG_PEEK)
                if not self._is_answer(data):
                    return False
                self._sock.recv(len(data))
            except OSError:
                return False
            offset_at, time_at, _ = self._places
            self._numbers = _number(data, offset_at), _number(data, time_at)
            self.answered += 1
            took_ms = _now_ms() - self._sent_ms
            self.latency_ms += took_ms
            self.longest_ms = max(self.longest_ms, took_ms)
            self._state = _ANSWERED
            self._unanswered.release()
            return True

    def _is_answer(self, data: bytes) -> bool:
        if len(data) != len(self._answer):
            return False
        expected = bytearray(self._answer)
        expected[_ANSWERED_AT : _ANSWERED_AT + 4] = self._correlation_id.to_bytes(4, "big")
        for at in self._places:
            expected[at : at + _NUMBER_BYTES] = data[at : at + _NUMBER_BYTES]
        return expected == data and _number(data, self._places[0]) >= 0


def _await(unanswered: threading.Lock, timeout_s: float | None) -> None:
    deadline_s = None if timeout_s is None else time.monotonic() + timeout_s
    while True:
        left_s = _LOOK_AGAIN_S if deadline_s is None else min(deadline_s - time.monotonic(), _LOOK_AGAIN_S)
        if unanswered.acquire(timeout=max(left_s, 0)):
            unanswered.release()  # it is passed on from one waiter to the next
            return
        if left_s < _LOOK_AGAIN_S:
            return


def _unsigned_varint(number: int) -> bytes:
    # Of the signed number that zigzag makes this one of.
    return zigzag((number >> 1) ^ -(number & 1))


def _number(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + _NUMBER_BYTES], "big", signed=True)


def _now_ms() -> int:
    return time.monotonic_ns() // 1_000_000
