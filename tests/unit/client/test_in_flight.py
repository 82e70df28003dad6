from __future__ import annotations

import pytest

from kclient.client.in_flight import InFlightRequest, InFlightRequests
from kclient.client.requests import ClientRequest
from kclient.errors import DisconnectError, IllegalStateError
from kclient.network.send import NetworkSend
from kclient.protocol.api_keys import ApiKeys


def request(
    number: int, *, node_id: int = 1, written: bool = True, deadline_ms: int = 100
) -> InFlightRequest:
    sent = ClientRequest(node_id, ApiKeys.HEARTBEAT, lambda version: version, number, 100)
    return InFlightRequest(sent, 4, NetworkSend([] if written else [b"x"]), 10, deadline_ms)


def numbers(taken: list[InFlightRequest]) -> list[int]:
    return [in_flight.request.correlation_id for in_flight in taken]


def test_answers_complete_the_oldest_request_first() -> None:
    queue = InFlightRequests(5)
    for number in (1, 2, 3):
        queue.add(request(number))
    assert numbers([queue.complete_next(1), queue.complete_next(1)]) == [1, 2]
    assert queue.count(1) == queue.count() == 1


def test_a_request_without_an_answer_leaves_from_the_head_as_soon_as_it_is_written() -> None:
    queue = InFlightRequests(5)
    queue.add(request(1))
    queue.add(request(2))
    assert queue.last_sent(1).request.correlation_id == 2
    assert queue.complete_last_sent(1).request.correlation_id == 2
    assert queue.complete_next(1).request.correlation_id == 1


def test_more_can_be_sent_only_after_the_newest_request_is_written_completely() -> None:
    queue = InFlightRequests(5)
    assert queue.can_send_more(1)
    queue.add(request(1, written=False))
    assert not queue.can_send_more(1)
    assert queue.can_send_more(2)


def test_no_more_than_max_in_flight_are_sent_to_a_node() -> None:
    queue = InFlightRequests(2)
    queue.add(request(1))
    assert queue.can_send_more(1)
    queue.add(request(2))
    assert not queue.can_send_more(1)
    queue.complete_next(1)
    assert queue.can_send_more(1)


def test_clearing_a_node_gives_its_requests_oldest_first_and_leaves_the_others() -> None:
    queue = InFlightRequests(5)
    for number in (1, 2, 3):
        queue.add(request(number))
    queue.add(request(4, node_id=2))
    assert numbers(queue.clear(1)) == [1, 2, 3]
    assert queue.clear(1) == []
    assert queue.count() == queue.count(2) == 1


def test_a_node_is_late_when_any_of_its_requests_is() -> None:
    queue = InFlightRequests(5)
    queue.add(request(1, deadline_ms=200))
    queue.add(request(2, deadline_ms=100))
    queue.add(request(3, node_id=2, deadline_ms=300))
    assert queue.next_deadline_ms() == 100
    assert queue.nodes_with_timed_out(99) == []
    assert queue.nodes_with_timed_out(100) == [1]
    queue.extend_deadlines(1, 50)
    assert queue.nodes_with_timed_out(149) == []


def test_an_empty_queue_refuses_to_complete_anything() -> None:
    queue = InFlightRequests(5)
    assert queue.next_deadline_ms() is None
    with pytest.raises(IllegalStateError):
        queue.complete_next(1)


def test_a_response_says_why_there_is_no_answer() -> None:
    late = request(1).failed(25, timed_out=True)
    with pytest.raises(DisconnectError, match="within 100 ms"):
        late.raise_if_failed()
    assert late.latency_ms == 15
    assert isinstance(request(1).failed(25).failure(), DisconnectError)
    answered = request(1).completed("message", 25)
    answered.raise_if_failed()
    assert not answered.failed
    assert answered.failure() is None
