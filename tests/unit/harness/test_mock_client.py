from __future__ import annotations

import pytest

from harness.mock_client import MockClient
from harness.mock_time import MockTime
from kclient.client.api_versions import NodeApiVersions
from kclient.client.kafka_client import KafkaClient
from kclient.client.metadata import Metadata
from kclient.client.metadata_schedule import MetadataSchedule
from kclient.client.requests import ClientRequest, ClientResponse
from kclient.common.node import Node
from kclient.errors import AuthenticationError, IllegalStateError, UnsupportedVersionError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kclient.protocol.messages.metadata import MetadataResponse, MetadataResponseBroker
from kclient.utils.backoff import ExponentialBackoff

NODE = Node(1, "host", 9092)
BEAT = HeartbeatRequest(group_id="g")


@pytest.fixture
def time() -> MockTime:
    return MockTime()


@pytest.fixture
def client(time: MockTime) -> MockClient:
    return MockClient(time)


def send(
    client: MockClient, time: MockTime, message: object = BEAT, **options: object
) -> list[ClientResponse]:
    done: list[ClientResponse] = []
    assert client.ready(NODE, time.monotonic_ms())
    request: ClientRequest = client.new_request(
        NODE.id,
        message,
        on_complete=done.append,
        **options,  # type: ignore[arg-type]
    )
    client.send(request, time.monotonic_ms())
    return done


def poll(client: MockClient, time: MockTime) -> None:
    client.poll(0, time.monotonic_ms())


def test_it_can_stand_wherever_a_kafka_client_does(client: MockClient) -> None:
    stands_in: KafkaClient = client
    stands_in.wakeup()
    assert client.wakeups == 1


def test_prepared_answers_are_given_in_order(client: MockClient, time: MockTime) -> None:
    client.prepare_response(HeartbeatResponse(error_code=1), matcher=lambda m: m.group_id == "g", node_id=1)
    client.prepare_response(HeartbeatResponse(error_code=2))
    first, second = send(client, time), send(client, time)
    poll(client, time)
    assert [r.message.error_code for r in first + second] == [1, 2]
    assert len(client.sent) == 2


def test_an_answer_prepared_for_something_else_fails_the_test(client: MockClient, time: MockTime) -> None:
    client.prepare_response(HeartbeatResponse(), matcher=lambda m: m.group_id == "other")
    with pytest.raises(AssertionError, match="refuses"):
        send(client, time)
    client.prepare_response(HeartbeatResponse(), node_id=9)
    with pytest.raises(AssertionError, match="node 9"):
        send(client, time)
    with pytest.raises(AssertionError, match="No waiting request"):
        client.respond(HeartbeatResponse())


def test_waiting_requests_are_answered_by_hand(client: MockClient, time: MockTime) -> None:
    done = send(client, time)
    poll(client, time)
    assert done == []
    assert client.in_flight_count(1) == 1
    time.advance(5)
    client.respond(HeartbeatResponse(), matcher=lambda m: True)
    poll(client, time)
    assert done[0].latency_ms == 5
    assert client.in_flight_count() == 0


def test_a_disconnection_fails_every_waiting_request_of_the_node(client: MockClient, time: MockTime) -> None:
    first, second = send(client, time), send(client, time)
    client.prepare_response(None, disconnected=True)
    poll(client, time)
    assert first[0].disconnected
    assert second[0].disconnected
    assert client.connections.is_disconnected(NODE.id)
    assert not client.is_ready(NODE, time.monotonic_ms())


def test_requests_time_out_on_the_mock_clock(client: MockClient, time: MockTime) -> None:
    done = send(client, time, timeout_ms=100)
    time.advance(99)
    poll(client, time)
    assert done == []
    time.advance(1)
    poll(client, time)
    assert done[0].timed_out


def test_brokers_can_be_unreachable_throttled_slow_or_hostile(client: MockClient, time: MockTime) -> None:
    client.set_unreachable(NODE, 100)
    assert not client.ready(NODE, time.monotonic_ms())
    assert client.connections.is_disconnected(NODE.id)
    time.advance(100)
    assert client.ready(NODE, time.monotonic_ms())
    client.throttle(NODE, 50)
    assert client.connections.poll_delay_ms(NODE.id, time.monotonic_ms()) == 50
    assert not client.ready(NODE, time.monotonic_ms())
    other = Node(2, "other", 9092)
    client.backoff(other, 30)
    assert client.connections.poll_delay_ms(other.id, time.monotonic_ms()) == 30
    assert not client.ready(other, time.monotonic_ms())
    slow = Node(3, "slow", 9092)
    client.delay_ready(slow, 10)
    assert not client.ready(slow, time.monotonic_ms())
    time.advance(50)
    assert client.ready(other, time.monotonic_ms())
    assert client.ready(slow, time.monotonic_ms())
    error = AuthenticationError("no")
    client.refuse_authentication(other, error)
    assert client.connections.authentication_error(other.id) is error
    assert not client.ready(other, time.monotonic_ms())


def test_what_no_broker_could_be_sent_fails_the_request(client: MockClient, time: MockTime) -> None:
    client.set_api_versions(NodeApiVersions({ApiKeys.HEARTBEAT: (0, 2)}))
    done = send(client, time, HeartbeatRequest(group_id="g", group_instance_id="static"))
    poll(client, time)
    assert isinstance(done[0].error, UnsupportedVersionError)


def test_sending_to_a_node_that_is_not_ready_is_refused(client: MockClient) -> None:
    with pytest.raises(IllegalStateError):
        client.send(client.new_request(1, BEAT), 0)


def test_a_request_without_answer_is_complete_at_once(client: MockClient, time: MockTime) -> None:
    done = send(client, time, expect_response=False)
    poll(client, time)
    assert done[0].message is None
    assert not done[0].failed


def test_requested_metadata_updates_take_the_prepared_answers(time: MockTime) -> None:
    metadata = Metadata(MetadataSchedule(ExponentialBackoff(1, 1), 1), time=time)
    client = MockClient(time, metadata)
    brokers = [MetadataResponseBroker(node_id=1, host="host", port=9092)]
    client.prepare_metadata_update(MetadataResponse(brokers=brokers))
    poll(client, time)
    assert metadata.fetch().nodes == ()
    metadata.request_update()
    poll(client, time)
    assert metadata.fetch().nodes == (NODE,)
    assert client.least_loaded_node(time.monotonic_ms()) == NODE
    client.close()
    assert client.closed
