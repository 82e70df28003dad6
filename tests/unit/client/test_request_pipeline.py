from __future__ import annotations

import pytest

from harness.network.client_parts import BEAT, ClientParts
from kclient.client.requests import ClientResponse
from kclient.errors import (
    AuthenticationError,
    DisconnectError,
    SchemaError,
    UnsupportedVersionError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kclient.protocol.messages.metadata import MetadataRequest, MetadataResponse
from kclient.protocol.messages.produce import ProduceRequest

HEARTBEAT = ApiKeys.HEARTBEAT


def test_a_node_takes_requests_while_it_is_ready_and_there_is_room(parts: ClientParts) -> None:
    pipeline = parts.pipeline
    assert not pipeline.can_send(1, 0)
    parts.make_ready()
    assert pipeline.can_send(1, 0)
    request = parts.new_request(1, BEAT)
    pipeline.transmit(request, BEAT, 4, 0)
    assert not pipeline.can_send(1, 0)  # it is not written yet
    parts.selector.write()
    assert pipeline.can_send(1, 0)
    for _ in range(4):
        parts.transmit()
    assert not pipeline.can_send(1, 0)


def test_an_answer_completes_the_oldest_request_and_its_callback_runs_when_it_is_handed_out(
    parts: ClientParts,
) -> None:
    first, second = parts.transmit(), parts.transmit()
    assert parts.answer(HeartbeatResponse(error_code=3), number=1, api_key=HEARTBEAT) is None
    assert not first
    responses = parts.pipeline.complete()
    assert first == responses
    assert responses[0].message == HeartbeatResponse(error_code=3)
    assert responses[0].latency_ms == 10
    assert not second
    assert parts.pipeline.complete() == []


def test_a_request_without_an_answer_is_over_when_it_is_written(parts: ClientParts) -> None:
    done = parts.transmit(ProduceRequest(acks=0, timeout_ms=1), version=9, expect_response=False)
    parts.pipeline.sends_completed(5)
    parts.pipeline.complete()
    assert done[0].message is None
    assert not done[0].failed
    assert parts.pipeline.in_flight.count() == 0


def test_a_frame_that_nobody_asked_for_is_a_reason_to_close(parts: ClientParts) -> None:
    error = parts.answer(HeartbeatResponse(), number=1, api_key=HEARTBEAT)
    assert isinstance(error, SchemaError)


def test_an_answer_to_another_request_fails_the_oldest_as_disconnected(parts: ClientParts) -> None:
    done = parts.transmit()
    assert isinstance(parts.answer(HeartbeatResponse(), number=9, api_key=HEARTBEAT), DisconnectError)
    parts.pipeline.complete()
    assert done[0].disconnected
    assert done[0].error is None


def test_an_answer_that_cannot_be_read_fails_its_request_for_good(parts: ClientParts) -> None:
    done = parts.transmit()
    error = parts.pipeline.answered(1, memoryview(b"\0\0\0\1"), 10)
    assert isinstance(error, SchemaError)
    parts.pipeline.complete()
    assert done[0].error is error
    assert not done[0].disconnected


def test_an_answer_that_asks_for_silence_throttles_its_node_and_extends_what_is_in_flight(
    parts: ClientParts,
) -> None:
    parts.make_ready()
    parts.transmit(timeout_ms=100)
    parts.transmit(timeout_ms=100)
    parts.answer(HeartbeatResponse(throttle_time_ms=60), number=1, api_key=HEARTBEAT)
    assert parts.states.throttle_delay_ms(1, 10) == 60
    assert not parts.pipeline.can_send(1, 10)
    assert parts.pipeline.late_nodes(159) == []
    assert parts.pipeline.late_nodes(160) == [1]


def test_the_end_of_a_connection_names_its_cause_to_the_oldest_request_alone(parts: ClientParts) -> None:
    first, second = parts.transmit(timeout_ms=50), parts.transmit(timeout_ms=500)
    other = parts.transmit(node_id=2)
    error = DisconnectError("reset")
    parts.pipeline.connection_ended(1, 100, error, timed_out=True)
    parts.pipeline.complete()
    assert [done[0].timed_out for done in (first, second)] == [True, False]
    assert [done[0].cause for done in (first, second)] == [error, None]
    assert not other
    assert parts.pipeline.in_flight.count() == 1


def test_a_refused_peer_is_the_error_of_every_request(parts: ClientParts) -> None:
    first, second = parts.transmit(), parts.transmit()
    error = AuthenticationError("no")
    parts.pipeline.connection_ended(1, 100, error, timed_out=False)
    parts.pipeline.complete()
    assert [done[0].error for done in (first, second)] == [error, error]


def test_late_requests_are_looked_for_no_earlier_than_they_can_be_late(parts: ClientParts) -> None:
    parts.transmit(timeout_ms=50)
    parts.transmit(node_id=2, timeout_ms=20)
    assert parts.pipeline.next_check_ms == 20
    assert parts.pipeline.late_nodes(20) == [2]
    parts.pipeline.connection_ended(2, 20, None, timed_out=True)
    assert parts.pipeline.next_check_ms == 50
    parts.answer(HeartbeatResponse(), number=1, api_key=HEARTBEAT)
    assert parts.pipeline.late_nodes(50) == []
    assert parts.pipeline.next_check_ms > 1 << 60


def test_the_clients_own_requests_are_completed_at_once_and_told_to_nobody_else(parts: ClientParts) -> None:
    done = parts.transmit(MetadataRequest(), version=9, internal=True)
    parts.answer(MetadataResponse(), number=1, api_key=ApiKeys.METADATA, version=9)
    assert isinstance(done[0].message, MetadataResponse)
    assert not parts.pipeline.responses


def test_forgetting_a_node_drops_its_requests_but_tells_the_client_of_its_own(parts: ClientParts) -> None:
    dropped, own = parts.transmit(), parts.transmit(MetadataRequest(), version=9, internal=True)
    parts.pipeline.forget(1, 10)
    assert parts.pipeline.complete() == []
    assert not dropped
    assert own[0].disconnected


def test_what_cannot_be_written_raises_and_a_refusal_is_a_response(parts: ClientParts) -> None:
    request = parts.new_request(1, HeartbeatRequest(group_id="\ud800"))
    with pytest.raises(SchemaError):
        parts.pipeline.transmit(request, request.build(4), 4, 0)
    assert parts.pipeline.in_flight.count() == 0
    error = UnsupportedVersionError("too old")
    parts.pipeline.refuse(request, -1, error, 5)
    assert [response.error for response in parts.pipeline.complete()] == [error]


def test_what_a_callback_begins_waits_for_the_next_turn(
    parts: ClientParts, caplog: pytest.LogCaptureFixture
) -> None:
    done: list[ClientResponse] = []
    again = parts.new_request(1, BEAT, on_complete=done.append)

    def fail(response: ClientResponse) -> None:
        parts.pipeline.refuse(again, -1, DisconnectError("second"), 0)
        raise ValueError("broken callback")

    parts.pipeline.refuse(parts.new_request(1, BEAT, on_complete=fail), -1, DisconnectError("first"), 0)
    assert len(parts.pipeline.complete()) == 1
    assert "broken callback" in caplog.text
    assert not done
    assert parts.pipeline.complete() == done
    assert str(done[0].error) == "second"
