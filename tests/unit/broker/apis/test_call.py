"""ApiCall: its ways to answer, and errors that are told in a result."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.broker.handlers import CLIENT_HOST, Handlers
from kclient.broker.apis.call import ApiCall, error_in
from kclient.broker.network.request_channel import ResponseAction
from kclient.errors import Errors, KafkaError, UnknownTopicOrPartitionError
from kclient.protocol.messages.delete_topics import DeletableTopicResult
from kclient.protocol.messages.heartbeat import HeartbeatResponse
from kclient.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from kclient.protocol.messages.metadata import MetadataResponsePartition, MetadataResponseTopic


def test_a_client_has_a_slash_before_its_address_as_groups_show_it(handlers: Handlers) -> None:
    call, _ = handlers.call(ListGroupsRequest(), 0)
    assert call.client_host == f"/{CLIENT_HOST}"


def test_the_endpoint_is_that_of_the_listener_the_client_came_to(handlers: Handlers) -> None:
    calls = [handlers.call(ListGroupsRequest(), 0, listener=number)[0] for number in (0, 1)]
    assert [(call.endpoint.host, call.endpoint.port) for call in calls] == [
        ("inside", 9092),
        ("outside", 19092),
    ]


def test_a_response_goes_to_the_connection_of_the_request(handlers: Handlers) -> None:
    call, exchange = handlers.call(ListGroupsRequest(), 4)
    call.respond(ListGroupsResponse(error_code=7))
    assert exchange.message == ListGroupsResponse(error_code=7)
    assert exchange.responses[0].connection_id == call.request.connection_id


def test_a_response_can_have_another_version_than_the_request(handlers: Handlers) -> None:
    call, exchange = handlers.call(ListGroupsRequest(), 4)
    call.respond(ListGroupsResponse(), version=0)
    in_version_4 = handlers.call(ListGroupsRequest(), 4)
    in_version_4[0].respond(ListGroupsResponse())
    sizes = [sum(len(part) for part in each.responses[0].buffers) for each in (exchange, in_version_4[1])]
    # The length, the correlation id, the code and the number of groups: the throttle time and tagged fields
    # came later.
    assert sizes == [4 + 4 + 2 + 4, 4 + 5 + 4 + 2 + 1 + 1]


def test_a_response_that_cannot_be_encoded_is_answered_as_an_error_and_raises_nothing(
    handlers: Handlers, caplog: pytest.LogCaptureFixture
) -> None:
    call, exchange = handlers.call(ListGroupsRequest(), 0)
    call.respond(ListGroupsResponse(error_code=1 << 20))
    assert exchange.message.error_code == int(Errors.UNKNOWN_SERVER_ERROR)
    assert "ListGroups request of version 0" in caplog.text
    assert "has a value that cannot be encoded" in caplog.text


def test_an_error_after_the_answer_is_logged_and_answers_nothing_more(
    handlers: Handlers, caplog: pytest.LogCaptureFixture
) -> None:
    call, exchange = handlers.call(ListGroupsRequest(), 0)
    call.respond(ListGroupsResponse())
    call.fail(RuntimeError("too late"))
    assert exchange.message.error_code == 0
    assert "after it was answered" in caplog.text


def test_where_even_the_error_cannot_be_said_the_connection_is_closed(
    handlers: Handlers, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    call, exchange = handlers.call(ListGroupsRequest(), 0)
    unsayable = ListGroupsResponse(error_code=1 << 20)
    monkeypatch.setattr("kclient.broker.apis.call.error_response", lambda *_: unsayable)
    call.fail(RuntimeError("first"))
    assert exchange.action is ResponseAction.CLOSE
    assert "first" in caplog.text


@pytest.mark.parametrize(
    ("way", "action"),
    [(ApiCall.no_response, ResponseAction.NOTHING), (lambda call: call.close({}), ResponseAction.CLOSE)],
)
def test_without_a_response_the_processor_is_told_how_to_go_on(
    handlers: Handlers, way: Callable[[ApiCall], None], action: ResponseAction
) -> None:
    call, exchange = handlers.call(ListGroupsRequest(), 0)
    way(call)
    assert exchange.action is action
    assert list(exchange.responses[0].buffers) == []


class TestErrorIn:
    def test_a_result_with_a_place_for_a_text_gets_the_code_and_the_text(self) -> None:
        result = DeletableTopicResult(name="t")
        with error_in(result):
            raise UnknownTopicOrPartitionError("There is no topic t")
        assert (result.error_code, result.error_message) == (3, "There is no topic t")

    @pytest.mark.parametrize(
        "result", [HeartbeatResponse(), MetadataResponseTopic(), MetadataResponsePartition()]
    )
    def test_a_result_without_one_gets_the_code(self, result: HeartbeatResponse) -> None:
        with error_in(result):
            raise UnknownTopicOrPartitionError("There is no topic t")
        assert result.error_code == 3
        assert not hasattr(result, "error_message")

    def test_an_error_without_a_code_is_one_of_the_server(self) -> None:
        result = HeartbeatResponse()
        with error_in(result):
            raise KafkaError
        assert result.error_code == int(Errors.UNKNOWN_SERVER_ERROR)

    def test_an_error_that_is_not_kafkas_goes_on(self) -> None:
        result = HeartbeatResponse()
        with pytest.raises(ZeroDivisionError), error_in(result):
            raise ZeroDivisionError
        assert result.error_code == 0

    def test_without_an_error_the_result_stays_as_it_is(self) -> None:
        result = HeartbeatResponse(throttle_time_ms=5)
        with error_in(result):
            result.error_code = 9
        assert result == HeartbeatResponse(throttle_time_ms=5, error_code=9)
