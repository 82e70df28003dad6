"""Both Lanes with their Pollers, and a connection whose other end is in the test's hands."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from helpers import wait_until
from kclient._accel import BatchBuilder, BatchResult, pure_lane, pure_poller
from kclient._accel.readiness import EVENT_READ
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.producer.internals import lane_template
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.header import parse_request, request_buffers, response_buffers
from kclient.protocol.messages.produce import PartitionProduceResponse, ProduceResponse, TopicProduceResponse
from poller_bed import LONG_MS, native

BODIES: dict[str, tuple[Any, Any]] = {
    "python": (pure_lane.Lane, pure_poller.Poller),
    "c": (native.Lane, native.Poller),
}
TOPIC_ID = Uuid(b"i" * 16)
TP = TopicPartition("topic", 3)
CORRELATION_ID = 41  # of the request before


def new_lane(body: str, version: int = 13, tp: TopicPartition = TP, topic_id: Uuid | None = TOPIC_ID) -> Any:
    """As a producer makes it, of the class of that body."""

    def frame_of(message: Any) -> bytes:
        return b"".join(request_buffers(message, version, 0, "client"))

    before = lane_template.Lane
    lane_template.Lane = BODIES[body][0]  # type: ignore[misc]  # for a moment it is the other body's
    try:
        return lane_template.lane_of(tp, topic_id, version, frame_of, acks=-1, timeout_ms=1234)
    finally:
        lane_template.Lane = before  # type: ignore[misc]


def batch_of(value: bytes | None = b"value", result: Any = None) -> BatchBuilder:
    """An open batch with one record."""
    result = result or BatchResult(TP.topic, TP.partition)
    builder = BatchBuilder(TP.topic, TP.partition, 0, result, 0)
    builder.append(1000, None, value, None)
    return builder


def answer(
    version: int = 13,
    correlation_id: int = CORRELATION_ID + 1,
    *,
    tp: TopicPartition = TP,
    topic_id: Uuid | None = TOPIC_ID,
    throttle_time_ms: int = 0,
    **fields: Any,
) -> bytes:
    """The frame which says that the batch was written, but for `fields`."""
    known: dict[str, Any] = {"index": tp.partition, "base_offset": 77, "log_start_offset": 5, **fields}
    topic = TopicProduceResponse(
        name=tp.topic if version < 13 else "",
        topic_id=topic_id or Uuid.ZERO,
        partition_responses=[PartitionProduceResponse(**known)],
    )
    response = ProduceResponse(responses=[topic], throttle_time_ms=throttle_time_ms)
    return b"".join(response_buffers(response, ApiKeys.PRODUCE, version, correlation_id))


class LaneBed:
    """A lane that was lent to a Poller; `polling` makes it wait on a thread of its own."""

    def __init__(self, body: str, lane: Any = None) -> None:
        self.lane = new_lane(body) if lane is None else lane
        self.poller = BODIES[body][1]()
        self.ours, self.theirs = socket.socketpair()
        self.ours.setblocking(False)
        self.theirs.settimeout(20)
        self.poller.register(self.ours, EVENT_READ, "data")
        self.events: list[Any] | None = None
        self._thread: threading.Thread | None = None

    def start(
        self,
        timeout_ms: int = LONG_MS,
        *,
        patrol_ms: int = LONG_MS,
        producer: tuple[int, int, int] = (9, 2, 100),
    ) -> None:
        """Lend the lane and poll, until it is open."""
        self.lane.prepare(*producer)
        self.poller.lend(self.ours, self.lane, CORRELATION_ID, patrol_ms)
        self.events = None
        self._thread = threading.Thread(target=self._poll, args=(timeout_ms,))
        self._thread.start()
        wait_until(lambda: self.lane.open or self.events is not None, what="a lane that is open")

    def _poll(self, timeout_ms: int) -> None:
        self.events = self.poller.poll(timeout_ms)

    @property
    def waits(self) -> bool:
        """Whether the poll goes on."""
        return self._thread is not None and self._thread.is_alive()

    @property
    def ident(self) -> int:
        """The thread that polls."""
        assert self._thread is not None
        assert self._thread.ident is not None
        return self._thread.ident

    def ended(self) -> list[Any]:
        """What the poll returns, once it does."""
        assert self._thread is not None
        self._thread.join(20)
        assert self.events is not None
        return self.events

    def take(self) -> bytes:
        """One frame from the other end, length and all."""
        head = self._exactly(4)
        return head + self._exactly(int.from_bytes(head, "big"))

    def request(self) -> tuple[Any, Any]:
        """Header and message of the next request."""
        return parse_request(self.take()[4:])

    def _exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            more = self.theirs.recv(size - len(data))
            assert more
            data += more
        return data

    def in_background(self, function: Callable[..., Any], *arguments: Any) -> Waiter:
        return Waiter(function, *arguments)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.poller.wake()
        if self._thread is not None:
            self._thread.join(20)
        self.poller.close()
        self.ours.close()
        self.theirs.close()


class Waiter(threading.Thread):
    """Calls a function on a thread of its own."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        super().__init__(daemon=True)
        self._function = function
        self._arguments = arguments
        self._outcome: Any = None
        self.start()

    def run(self) -> None:
        self._outcome = self._function(*self._arguments)

    def outcome(self) -> Any:
        """What it returned, once it has."""
        self.join(20)
        assert not self.is_alive()
        return self._outcome
