"""What is sent through a lane is in flight, once the poll that it was lent to has ended, like every other request."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from clients import DrivenClient
from faults import Reply, ScriptedBroker
from helpers import wait_until
from kclient.client.requests import ClientRequest, ClientResponse
from kclient.common.topic_partition import TopicPartition
from kclient.network import selector
from kclient.producer.internals.lane_template import lane_of
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kclient.protocol.messages.produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from kclient.record import BatchBuilder, BatchResult
from kclient.utils.time import SYSTEM_TIME

TP = TopicPartition("t", 0)
VERSION = 12


def written(offset: int = 7, **fields: Any) -> ProduceResponse:
    partition = PartitionProduceResponse(**{"index": 0, "base_offset": offset, **fields})
    return ProduceResponse(responses=[TopicProduceResponse(name="t", partition_responses=[partition])])


@pytest.fixture(autouse=True)
def patient_lanes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A lane is not shut because the machine was slow."""
    monkeypatch.setattr(selector, "_PATROL_MS", 60_000)


class Bed:
    """A client that is polled by another thread while a lane is lent, and what came of it."""

    def __init__(self, stack: ExitStack, **settings: Any) -> None:
        self.broker = stack.enter_context(ScriptedBroker())
        self.driven = stack.enter_context(DrivenClient(self.broker.bootstrap, **settings))
        self.client = self.driven.client
        self.node_id = self.driven.node().id
        self.settled: list[tuple[Any, Any]] = []
        self.done: list[ClientResponse] = []

        def frame_of(message: ProduceRequest) -> bytes:
            return self.client.frame_of(self.client.new_request(self.node_id, message, 0), VERSION)

        self.lane = lane_of(TP, None, VERSION, frame_of, acks=-1, timeout_ms=1)

    def settle(self, builder: Any, answer: Any, now_ms: int) -> ClientRequest | None:
        self.settled.append((builder, answer))
        if builder is None or answer is not None:
            return None
        request = ProduceRequest(topic_data=[])
        return self.client.new_request(self.node_id, request, now_ms, on_complete=self.done.append)

    def lend(self) -> None:
        self.lane.prepare(-1, -1, -1)
        self.client.lend(self.node_id, VERSION, self.lane, self.settle)

    def while_polling(self, act: Callable[[], None]) -> None:
        """Lend the lane, and `act` while a poll waits."""
        failed: list[BaseException] = []
        acted = threading.Event()

        def run() -> None:
            try:
                wait_until(lambda: self.lane.open, what="a lane that is open")
                act()
            except BaseException as error:
                failed.append(error)
            finally:
                acted.set()
                self.client.wakeup()

        thread = threading.Thread(target=run)
        thread.start()
        while not acted.is_set():
            # Not the first time perhaps: something that came late may end a poll before it waits.
            self.lend()
            self.driven.responses += self.client.poll(60_000, SYSTEM_TIME.monotonic_ms())
        thread.join(20)
        if failed:
            raise failed[0]

    def answer_who_waits(self, *offsets: int) -> None:
        """Answer the next requests, each when somebody waits for it; an answer before that goes the usual way."""

        def reply(offset: int) -> Callable[[Any, Any], ProduceResponse]:
            def once_waited_for(header: Any, message: Any) -> ProduceResponse:
                wait_until(lambda: self.lane.waiting, what="somebody who waits")
                return written(offset)

            return once_waited_for

        for offset in offsets:
            self.broker.once(ApiKeys.PRODUCE, reply(offset))

    def send(self) -> BatchResult:
        result = BatchResult("t", 0)
        builder = BatchBuilder("t", 0, 0, result, 0)
        builder.append(1, None, b"v", None)
        assert self.lane.send(builder)
        return result


@pytest.fixture
def bed() -> Iterator[Bed]:
    with ExitStack() as stack:
        yield Bed(stack)


def test_what_was_answered_is_told_and_the_next_request_has_the_next_number(bed: Bed) -> None:
    bed.answer_who_waits(7, 8)
    answers = []

    def send_two() -> None:
        for _ in range(2):
            result = bed.send()
            answers.append(bed.lane.wait(result, 20))
            bed.lane.taken(result)

    bed.while_polling(send_two)
    assert answers == [(7, -1), (8, -1)]
    assert bed.settled == [(None, None)]
    assert not bed.client.has_in_flight()
    bed.broker.on(ApiKeys.HEARTBEAT, lambda header, message: HeartbeatResponse())
    bed.driven.call(HeartbeatRequest(group_id="g"))
    numbers = [header.correlation_id for header, _ in bed.broker.requests]
    assert numbers[-1] == numbers[-2] + 1 == numbers[-3] + 2


def test_a_request_without_an_answer_is_in_flight_and_completes_as_itself(bed: Bed) -> None:
    go = threading.Event()

    def later(header: Any, message: Any) -> ProduceResponse:
        assert go.wait(20)
        return written(error_code=6, base_offset=-1)

    bed.broker.once(ApiKeys.PRODUCE, later)
    bed.while_polling(lambda: bed.send() and None)
    ((builder, answer),) = bed.settled
    assert builder.count == 1
    assert answer is None
    assert bed.client.in_flight_count(bed.node_id) == 1
    go.set()
    response = bed.driven.take()
    assert bed.done == [response]
    assert response.message.responses[0].partition_responses[0].error_code == 6
    assert response.version == VERSION


def test_an_answer_that_ends_the_poll_is_that_of_the_request(bed: Bed) -> None:
    bed.broker.answer(ApiKeys.PRODUCE, written(error_code=6, base_offset=-1))

    def send_and_wait() -> None:
        result = bed.send()
        assert bed.lane.wait(result, 20) is None

    bed.while_polling(send_and_wait)
    assert bed.driven.take().message.responses[0].partition_responses[0].error_code == 6
    assert not bed.client.has_in_flight()


def test_requests_that_follow_it_are_answered_after_it(bed: Bed) -> None:
    go = threading.Event()

    def later(header: Any, message: Any) -> ProduceResponse:
        assert go.wait(20)
        return written()

    bed.broker.once(ApiKeys.PRODUCE, later)
    bed.broker.on(ApiKeys.HEARTBEAT, lambda header, message: HeartbeatResponse())
    bed.while_polling(lambda: bed.send() and None)
    bed.driven.send(HeartbeatRequest(group_id="g"))
    go.set()
    assert [bed.driven.take().message for _ in range(2)] == [written(), HeartbeatResponse()]


@pytest.mark.parametrize("how", [Reply.CLOSE, Reply.RESET])
def test_it_fails_with_its_connection(bed: Bed, how: Reply) -> None:
    bed.broker.answer(ApiKeys.PRODUCE, how)

    def send_and_wait() -> None:
        assert bed.lane.wait(bed.send(), 20) is None

    bed.while_polling(send_and_wait)
    (response,) = [bed.driven.take()]
    assert response.disconnected
    assert bed.done == [response]


def test_it_times_out_like_every_request() -> None:
    with ExitStack() as stack:
        bed = Bed(stack, request_timeout_ms=200)
        bed.broker.answer(ApiKeys.PRODUCE, Reply.NOTHING)
        bed.while_polling(lambda: bed.send() and None)
        response = bed.driven.take()
        assert response.timed_out
        assert bed.done == [response]


def test_a_connection_on_which_a_request_was_written_in_part_is_closed(bed: Bed) -> None:
    channel = bed.client._selector.channel(str(bed.node_id))  # type: ignore[attr-defined]  # its socket is made small
    sock = channel.transport.sock
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    builder = BatchBuilder("t", 0, 0, BatchResult("t", 0), 0)
    builder.append(1, None, bytes(10_000_000), None)

    def send_much() -> None:
        assert bed.lane.send(builder)
        assert bed.lane.partly

    bed.while_polling(send_much)
    response = bed.driven.take()
    assert response.disconnected
    assert not response.timed_out
    assert bed.done == [response]


def test_it_is_not_opened_beside_a_request_in_flight(bed: Bed) -> None:
    bed.driven.send(HeartbeatRequest(group_id="g"))
    bed.lend()
    bed.client.poll(20, SYSTEM_TIME.monotonic_ms())
    assert not bed.lane.open
    bed.lane.prepare(1, 1, 1)  # it was never lent
    assert bed.settled == []


def test_it_is_not_opened_when_the_poll_begins_with_a_request_for_metadata(bed: Bed) -> None:
    bed.driven.metadata.request_update()
    bed.lend()
    asked = len(bed.broker.received(ApiKeys.METADATA))
    bed.driven.poll_until(lambda: len(bed.broker.received(ApiKeys.METADATA)) > asked)
    assert bed.settled == []
    assert bed.lane.answered == 0


def test_it_is_not_opened_without_a_connection(bed: Bed) -> None:
    bed.client.disconnect(bed.node_id)
    bed.client.poll(0, SYSTEM_TIME.monotonic_ms())
    bed.lend()
    bed.client.poll(0, SYSTEM_TIME.monotonic_ms())
    assert not bed.lane.open
    assert bed.settled == []


def test_a_lane_that_nobody_used_is_settled_without_a_word(bed: Bed) -> None:
    bed.while_polling(lambda: None)
    assert bed.settled == []
    bed.lane.prepare(1, 1, 1)


def test_an_idle_connection_that_is_used_through_a_lane_is_not_closed() -> None:
    with ExitStack() as stack:
        bed = Bed(stack, connections_max_idle_ms=1500)
        until_ms = SYSTEM_TIME.monotonic_ms() + 3000

        def send_and_wait() -> None:
            bed.answer_who_waits(1)
            result = bed.send()
            assert bed.lane.wait(result, 20) is not None
            bed.lane.taken(result)

        connections = len(bed.broker.received(ApiKeys.API_VERSIONS))
        while SYSTEM_TIME.monotonic_ms() < until_ms:
            bed.while_polling(send_and_wait)
        assert len(bed.broker.received(ApiKeys.API_VERSIONS)) == connections
