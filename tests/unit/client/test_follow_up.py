"""A request that follows the answer to another one is in flight like every other, from when that answer came."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from clients import DrivenClient
from faults import ScriptedBroker
from fetched_batches import batch
from kclient.client.requests import ClientRequest, ClientResponse
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.consumer.internals.fetch_session import SessionFetch, WantedPartition
from kclient.consumer.internals.fetch_template import FetchTemplate
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.header import response_buffers
from kclient.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from kclient.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kclient.utils.time import SYSTEM_TIME

SESSION = 7
TOPIC_ID = Uuid(b"t" * 16)
WANTED = {TopicPartition("t", 0): WantedPartition(0, TOPIC_ID, 1000, 5)}


def fetch_of(epoch: int) -> FetchRequest:
    return SessionFetch(SESSION, epoch, WANTED, (), True).fill(FetchRequest(max_wait_ms=1), 18)


def records(base: int, count: int) -> FetchResponse:
    data = PartitionData(partition_index=0, records=batch(base, count))
    topic = FetchableTopicResponse(topic_id=TOPIC_ID, partitions=[data])
    return FetchResponse(session_id=SESSION, responses=[topic])


def send_with_follower(driven: DrivenClient, **options: Any) -> tuple[ClientRequest, FetchTemplate]:
    """A fetch, and one that follows it."""
    node, now_ms = driven.node(), SYSTEM_TIME.monotonic_ms()
    request = driven.client.new_request(node.id, fetch_of(1), now_ms)
    follower = driven.client.new_request(node.id, fetch_of(2), now_ms, **options)
    template = FetchTemplate(driven.client.frame_of(follower, 18), 18, SESSION, WANTED, bytearray(1))
    template.arm(request.correlation_id, WANTED, follower.correlation_id, 2)
    driven.client.send(request, now_ms)
    driven.client.follow_up(follower, 18, template.prepared)
    return follower, template


@pytest.mark.parametrize("count", [3, 20_000])
def test_it_is_in_flight_when_its_answer_before_is_told_and_answered_as_itself(count: int) -> None:
    in_flight: list[int] = []
    done: list[ClientResponse] = []
    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap) as driven:
        broker.answer(ApiKeys.FETCH, records(0, count), records(count, 2))
        follower, template = send_with_follower(driven, on_complete=done.append)
        assert driven.take().message == records(0, count)
        in_flight.append(driven.client.in_flight_count())
        response = driven.take()
        assert response.message == records(count, 2)
        assert response.request is follower
        assert done == [response]
        assert in_flight == [1]
        assert not driven.client.has_in_flight()
        asked = broker.received(ApiKeys.FETCH)[1]
        assert asked.session_epoch == 2
        assert asked.topics[0].partitions[0].fetch_offset == count
        assert template.filled_in(WANTED) == {
            TopicPartition("t", 0): WantedPartition(count, TOPIC_ID, 1000, 5)
        }


def test_requests_sent_in_between_are_answered_in_the_order_of_the_wire() -> None:
    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap) as driven:
        heartbeat_sent = threading.Event()

        def once_the_heartbeat_is_sent(header: Any, message: Any) -> FetchResponse:
            assert heartbeat_sent.wait(20)
            return records(0, 3)

        broker.once(ApiKeys.FETCH, once_the_heartbeat_is_sent)
        broker.answer(ApiKeys.FETCH, records(3, 2))
        broker.on(
            ApiKeys.HEARTBEAT, lambda header, message: HeartbeatResponse(error_code=message.generation_id)
        )
        send_with_follower(driven)
        driven.poll_until(lambda: driven.client.ready(driven.node(), SYSTEM_TIME.monotonic_ms()))
        driven.send(HeartbeatRequest(group_id="g", generation_id=9))
        driven.client.poll(0, SYSTEM_TIME.monotonic_ms())
        heartbeat_sent.set()
        messages = [driven.take().message for _ in range(3)]
        assert messages == [records(0, 3), HeartbeatResponse(error_code=9), records(3, 2)]


def test_an_answer_out_of_the_ordinary_is_followed_by_nothing() -> None:
    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap) as driven:
        broker.answer(ApiKeys.FETCH, FetchResponse(error_code=70))
        _, template = send_with_follower(driven)
        assert driven.take().message.error_code == 70
        assert not template.prepared.followed
        assert not driven.client.has_in_flight()
        assert len(broker.received(ApiKeys.FETCH)) == 1


def test_nothing_follows_once_the_broker_has_asked_for_silence() -> None:
    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap) as driven:
        fetch_sent = threading.Event()

        def beat(header: Any, message: Any) -> HeartbeatResponse:
            assert fetch_sent.wait(20)
            return HeartbeatResponse(throttle_time_ms=60_000)

        broker.on(ApiKeys.HEARTBEAT, beat)
        broker.answer(ApiKeys.FETCH, records(0, 3))
        driven.node()
        driven.send(HeartbeatRequest(group_id="g"))
        _, template = send_with_follower(driven)
        fetch_sent.set()
        assert driven.take().message == HeartbeatResponse(throttle_time_ms=60_000)
        assert driven.take().message == records(0, 3)
        assert not template.prepared.followed
        assert not driven.client.has_in_flight()


def test_nothing_is_prepared_for_a_broker_that_has_asked_for_silence() -> None:
    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap) as driven:
        broker.on(ApiKeys.HEARTBEAT, lambda header, message: HeartbeatResponse(throttle_time_ms=60_000))
        driven.call(HeartbeatRequest(group_id="g"))
        now_ms = SYSTEM_TIME.monotonic_ms()
        follower = driven.client.new_request(0, fetch_of(2), now_ms)
        template = FetchTemplate(driven.client.frame_of(follower, 18), 18, SESSION, WANTED, bytearray(1))
        template.arm(1, WANTED, follower.correlation_id, 2)
        driven.client.follow_up(follower, 18, template.prepared)
        assert not template.prepared.follow(
            b"".join(response_buffers(records(0, 3), ApiKeys.FETCH, 18, 1))[4:]
        )


def test_it_fails_with_its_connection_and_does_not_outlive_it() -> None:
    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap) as driven:
        broker.answer(ApiKeys.FETCH, records(0, 3))
        follower, _ = send_with_follower(driven)
        assert driven.take().message == records(0, 3)
        driven.poll_until(lambda: len(broker.received(ApiKeys.FETCH)) == 2)
        driven.client.disconnect(0)
        response = driven.take()
        assert response.request is follower
        assert response.disconnected
        # What was prepared for a connection is forgotten with it.
        follower, template = send_with_follower(driven)
        driven.client.disconnect(0)
        assert driven.take().disconnected
        broker.answer(ApiKeys.FETCH, records(0, 3))
        driven.send(fetch_of(1))
        assert driven.take().message == records(0, 3)
        assert not driven.client.has_in_flight()
        assert not template.prepared.followed
