"""NetworkClient when the network or the broker does what it should not."""

from __future__ import annotations

import resource
import socket
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from harness.mock_time import MockTime
from harness.network.client_parts import network_metrics
from harness.network.driven_client import DrivenClient, Settings
from harness.network.listener import hang_up, read_frame
from harness.network.proxy import FaultProxy
from harness.network.scripted_broker import Reply, ScriptedBroker, cluster_of
from harness.waiting import wait_until
from kclient.client import assembly
from kclient.client.metadata import Metadata
from kclient.client.metadata_schedule import MetadataSchedule
from kclient.common.node import Node
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.header import response_buffers
from kclient.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kclient.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.time import SYSTEM_TIME

BEAT = HeartbeatRequest(group_id="g", member_id="m")
BEAT_RESPONSE_BYTES = 4 + 4 + 1 + 4 + 2 + 1


def now() -> int:
    return SYSTEM_TIME.monotonic_ms()


def echo(header: Any, message: Any) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=message.generation_id)


def raw(header: Any, correlation_id: int, number: int = 0) -> bytes:
    message = HeartbeatResponse(error_code=number)
    return b"".join(response_buffers(message, ApiKeys.HEARTBEAT, header.api_version, correlation_id))


class Behind:
    """A broker behind a proxy, and a client that knows only the proxy."""

    def __init__(self) -> None:
        self.broker = ScriptedBroker()
        self.broker.on(ApiKeys.HEARTBEAT, echo)
        self.broker.start()
        self.proxy = FaultProxy(self.broker.address)
        self.proxy.start()
        # Metadata must lead through the proxy, too.
        answer = self.broker.metadata

        def metadata() -> Any:
            response = answer()
            response.brokers[0].port = self.proxy.port
            return response

        self.broker.metadata = metadata  # type: ignore[method-assign]

    def client(self, **settings: Any) -> DrivenClient:
        return DrivenClient(self.proxy.bootstrap, **settings)

    def stop(self) -> None:
        self.proxy.stop()
        self.broker.stop()


@pytest.fixture
def behind() -> Iterator[Behind]:
    made = Behind()
    yield made
    made.stop()


def test_an_answer_cut_anywhere_is_a_disconnection_and_the_next_connection_is_clean(behind: Behind) -> None:
    with behind.client() as driven:
        assert driven.call(BEAT).error is None
        for after in range(BEAT_RESPONSE_BYTES):
            behind.proxy.cut(ApiKeys.HEARTBEAT, after)
            response = driven.call(HeartbeatRequest(group_id="g", generation_id=after))
            assert response.disconnected, after
            assert response.message is None
            again = driven.call(HeartbeatRequest(group_id="g", generation_id=100 + after))
            assert again.message == HeartbeatResponse(error_code=100 + after)


@pytest.mark.parametrize("on_response", [True, False])
def test_a_reset_anywhere_in_an_exchange_is_a_disconnection(behind: Behind, on_response: bool) -> None:
    with behind.client() as driven:
        for after in (0, 1, 3, 4, 5, 8, BEAT_RESPONSE_BYTES - 1):
            behind.proxy.reset(ApiKeys.HEARTBEAT, after, on_response=on_response)
            assert driven.call(BEAT).disconnected, after
            assert driven.call(BEAT).error is None
        assert behind.broker.errors == []


def test_a_connection_that_breaks_while_versions_are_asked_for_is_made_again(behind: Behind) -> None:
    for after in range(0, 12, 2):
        behind.proxy.clear()
        behind.proxy.reset(ApiKeys.API_VERSIONS, after)
        with behind.client() as driven:
            driven.update_metadata()


def test_a_silent_broker_is_left_after_the_request_timeout(behind: Behind) -> None:
    with behind.client() as driven:
        driven.call(BEAT)
        rule = behind.proxy.blackhole(ApiKeys.HEARTBEAT)
        started = now()
        response = driven.call(BEAT, timeout_ms=150)
        assert response.timed_out
        assert response.disconnected
        assert 150 <= now() - started < 10_000
        assert rule.hits == 1
        assert driven.call(BEAT).error is None


def test_an_answer_that_comes_too_late_is_never_taken_for_that_of_another_request(behind: Behind) -> None:
    with behind.client() as driven:
        driven.call(BEAT)
        behind.proxy.delay(ApiKeys.HEARTBEAT, 300)
        assert driven.call(HeartbeatRequest(group_id="g", generation_id=1), timeout_ms=100).timed_out
        for number in range(2, 30):
            response = driven.call(HeartbeatRequest(group_id="g", generation_id=number))
            assert response.message == HeartbeatResponse(error_code=number)


def test_only_the_late_requests_of_a_closed_connection_are_called_late(behind: Behind) -> None:
    with behind.client() as driven:
        behind.proxy.blackhole(ApiKeys.HEARTBEAT)
        driven.send(BEAT, timeout_ms=100)
        driven.send(BEAT, timeout_ms=60_000)
        driven.poll_until(lambda: len(driven.responses) == 2)
        assert [r.timed_out for r in driven.responses] == [True, False]
        assert all(r.disconnected for r in driven.responses)


def test_a_dripping_broker_is_bounded_by_the_timeout_and_holds_up_no_other_broker() -> None:
    brokers = cluster_of(2)
    for broker in brokers:
        broker.on(ApiKeys.HEARTBEAT, echo)
    with brokers[0], brokers[1], FaultProxy(brokers[1].address) as proxy:
        answer = brokers[0].metadata

        def through_proxy(header: Any, message: Any) -> Any:
            response = answer()
            response.brokers[1].port = proxy.port
            return response

        brokers[0].on(ApiKeys.METADATA, through_proxy)
        with DrivenClient(brokers[0].bootstrap) as driven:
            driven.call(BEAT, node_id=1)
            driven.call(BEAT, node_id=0)
            proxy.drip(ApiKeys.HEARTBEAT, 2)
            driven.send(BEAT, node_id=1, timeout_ms=1500)
            for _ in range(20):
                assert driven.call(BEAT, node_id=0).request.node_id == 0
            slow = driven.take()
            assert slow.request.node_id == 1
            assert slow.timed_out


def test_a_request_that_the_broker_does_not_read_times_out_and_ends_its_connection() -> None:
    stop = threading.Event()
    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap, request_timeout_ms=20_000) as driven:
        broker.on(ApiKeys.HEARTBEAT, lambda header, message: stop.wait(30) and echo(header, message))
        driven.send(BEAT)
        driven.poll_until(lambda: broker.received(ApiKeys.HEARTBEAT))
        # The broker is busy and reads nothing, so this fills the buffers of both sockets and stays half written.
        records = memoryview(bytes(32 << 20))
        partition = PartitionProduceData(index=0, records=records)
        request = ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=[partition])])
        driven.send(request, timeout_ms=150, max_version=9)
        driven.poll_until(lambda: len(driven.responses) == 2)
        assert [r.request.api_key for r in driven.responses] == [ApiKeys.HEARTBEAT, ApiKeys.PRODUCE]
        assert driven.responses[1].timed_out
        driven.responses.clear()
        stop.set()
        assert driven.call(BEAT).error is None
        assert not broker.received(ApiKeys.PRODUCE)


@pytest.mark.parametrize("size", [-1, 0, 2**31 - 1, 104_857_601])
def test_an_impossible_length_ends_the_connection_and_costs_no_memory(size: int) -> None:
    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap) as driven:
        broker.on(ApiKeys.HEARTBEAT, echo)
        driven.call(BEAT)
        before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        broker.answer(ApiKeys.HEARTBEAT, size.to_bytes(4, "big", signed=True) + b"xxxx")
        assert driven.call(BEAT).failed
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 20_000
        assert driven.call(BEAT).error is None


def test_an_answer_to_another_request_is_delivered_to_nobody() -> None:
    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap) as driven:
        broker.on(ApiKeys.HEARTBEAT, echo)
        broker.once(ApiKeys.HEARTBEAT, lambda header, message: raw(header, header.correlation_id + 1))
        response = driven.call(BEAT)
        assert response.disconnected
        assert response.message is None
        failure = response.failure()
        assert failure is not None
        assert failure.retriable
        assert driven.call(BEAT).error is None


def test_answers_in_the_wrong_order_are_delivered_to_nobody() -> None:
    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap) as driven:
        broker.on(ApiKeys.HEARTBEAT, echo)
        driven.call(BEAT)
        broker.answer(ApiKeys.HEARTBEAT, Reply.NOTHING)
        broker.once(
            ApiKeys.HEARTBEAT,
            lambda header, message: (
                raw(header, header.correlation_id) + raw(header, header.correlation_id - 1)
            ),
        )
        driven.send(BEAT)
        driven.send(BEAT)
        driven.poll_until(lambda: len(driven.responses) == 2)
        assert all(r.disconnected and r.message is None for r in driven.responses)


def test_an_answer_given_twice_ends_the_connection(behind: Behind) -> None:
    with behind.client() as driven:
        driven.call(BEAT)
        accepted = behind.broker.accepted
        behind.proxy.duplicate(ApiKeys.HEARTBEAT)
        assert driven.call(BEAT).error is None
        node = driven.metadata.fetch().nodes[0]
        driven.poll_until(lambda: driven.client.connections.is_disconnected(node.id))
        assert driven.call(BEAT).error is None
        assert behind.broker.accepted == accepted + 1


def test_a_swallowed_answer_times_out_and_is_not_replaced_by_the_next_one(behind: Behind) -> None:
    with behind.client() as driven:
        behind.proxy.swallow(ApiKeys.HEARTBEAT)
        driven.send(HeartbeatRequest(group_id="g", generation_id=1))
        driven.send(HeartbeatRequest(group_id="g", generation_id=2))
        driven.poll_until(lambda: len(driven.responses) == 2)
        assert all(r.disconnected for r in driven.responses)


def test_a_broker_that_restarts_is_found_again() -> None:
    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap) as driven:
        broker.on(ApiKeys.HEARTBEAT, echo)
        for _ in range(3):
            assert driven.call(BEAT).error is None
            broker.stop()
            broker.start()
            driven.poll_until(lambda: driven.client.connections.is_disconnected(0))


def test_a_connection_that_cannot_be_set_up_in_time_is_given_up() -> None:
    # A listener whose backlog is full drops the first packet of every further handshake.
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        fillers = []
        try:
            for _ in range(4):
                filler = socket.socket()
                filler.setblocking(False)
                filler.connect_ex(full.getsockname())
                fillers.append(filler)
            address = f"127.0.0.1:{full.getsockname()[1]}"
            settings = {
                "socket_connection_setup_timeout_ms": 100,
                "socket_connection_setup_timeout_max_ms": 100,
            }
            with DrivenClient(address, **settings) as driven:
                started = now()
                driven.poll_until(lambda: driven.metadata.last_error is not None)
                assert 80 <= now() - started < 5000
                assert "socket.connection.setup.timeout.ms" in str(driven.metadata.last_error)
        finally:
            for filler in fillers:
                filler.close()


def test_every_address_of_a_name_is_tried_until_one_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedBroker(topics={"t": 1}) as broker:
        monkeypatch.setattr(assembly, "resolve_host", lambda host: ["127.0.0.2", "127.0.0.3", "127.0.0.1"])
        with DrivenClient(f"localhost:{broker.port}") as driven:
            driven.update_metadata()
            assert driven.metadata.fetch().partition_count("t") == 1


def test_a_broker_whose_name_does_not_resolve_does_not_keep_the_others_from_working(
    caplog: pytest.LogCaptureFixture,
) -> None:
    waits = {"reconnect_backoff_ms": 60_000, "reconnect_backoff_max_ms": 60_000}
    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap, **waits) as driven:
        broker.on(ApiKeys.HEARTBEAT, echo)
        answer = broker.metadata

        def with_a_stranger(header: Any, message: Any) -> Any:
            response = answer()
            stranger = type(response.brokers[0])(node_id=1, host="no-such-host.invalid", port=9092)
            response.brokers.append(stranger)
            return response

        broker.on(ApiKeys.METADATA, with_a_stranger)
        driven.update_metadata()
        unknown = driven.metadata.fetch().node_by_id(1)
        assert unknown is not None
        assert not driven.client.ready(unknown, now())
        assert driven.client.connections.is_disconnected(unknown.id)
        assert driven.client.connections.connection_delay_ms(unknown.id, now()) > 0
        assert driven.call(BEAT).error is None
    assert "no-such-host.invalid" in caplog.text


def test_a_slow_resolver_does_not_use_up_the_wait_before_the_next_attempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    time = MockTime()

    def resolve(host: str) -> list[str]:
        time.advance(5000)
        raise OSError("the name server does not answer")

    monkeypatch.setattr(assembly, "resolve_host", resolve)
    client = assembly.build_network_client(
        Settings(["localhost:1"], reconnect_backoff_ms=100, reconnect_backoff_max_ms=100),
        metadata=Metadata(MetadataSchedule(ExponentialBackoff(5, 50), 1000), time=time),
        max_in_flight=1,
        metrics=network_metrics(time),
        time=time,
    )
    node = Node(7, "nowhere", 9092)
    assert not client.ready(node, time.monotonic_ms())
    assert client.connections.connection_delay_ms(node.id, time.monotonic_ms()) >= 80
    client.close()


def test_idle_connections_are_closed_and_made_again_when_they_are_needed() -> None:
    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap, connections_max_idle_ms=500) as driven:
        broker.on(ApiKeys.HEARTBEAT, echo)
        driven.call(BEAT)
        driven.poll_until(lambda: driven.client.connections.is_disconnected(0))
        assert driven.call(BEAT).error is None


def test_the_proxy_and_the_broker_leave_no_thread_behind() -> None:
    before = set(threading.enumerate())
    with ScriptedBroker() as broker, FaultProxy(broker.address) as proxy:
        with socket.create_connection(proxy.address) as sock:
            frame = b"\0\x12\0\0\0\0\0\7\xff\xff"
            sock.sendall(len(frame).to_bytes(4, "big") + frame)
            assert read_frame(sock)[:4] == b"\0\0\0\7"
        idle = socket.create_connection(proxy.address)
        wait_until(lambda: proxy.accepted == 2)
    hang_up(idle)
    assert set(threading.enumerate()) == before
