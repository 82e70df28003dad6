"""NetworkClient against scripted brokers: the ordinary course of things, versions, metadata and throttling."""

from __future__ import annotations

import logging
import os
import threading
from typing import Any

import pytest

from harness.network.driven_client import DrivenClient
from harness.network.ports import closed_port
from harness.network.proxy import FaultProxy
from harness.network.scripted_broker import Reply, ScriptedBroker, cluster_of
from kclient.client.requests import ClientResponse
from kclient.errors import (
    BootstrapError,
    ForkedClientError,
    IllegalStateError,
    SchemaError,
    UnsupportedVersionError,
)
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.header import response_buffers
from kclient.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from kclient.protocol.messages.fetch import FetchRequest
from kclient.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from kclient.protocol.messages.metadata import MetadataResponse
from kclient.protocol.messages.produce import ProduceRequest, ProduceResponse
from kclient.utils.time import SYSTEM_TIME

NEWEST = ApiKeys.API_VERSIONS.max_version
BEAT = HeartbeatRequest(group_id="g", member_id="m")


def now() -> int:
    return SYSTEM_TIME.monotonic_ms()


def beats(header: Any, message: Any) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=message.generation_id)


def asked_versions(broker: ScriptedBroker) -> list[int]:
    return [header.api_version for header, _ in broker.requests if header.api_key is ApiKeys.API_VERSIONS]


def test_a_request_is_answered_and_its_callback_runs_once() -> None:
    done: list[ClientResponse] = []
    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap) as driven:
        broker.on(ApiKeys.HEARTBEAT, beats)
        response = driven.call(HeartbeatRequest(group_id="g", generation_id=7), on_complete=done.append)
        assert response.message == HeartbeatResponse(error_code=7)
        assert response.version == ApiKeys.HEARTBEAT.max_version
        assert done == [response]
        assert driven.client.in_flight_count() == 0
        header = broker.requests[-1][0]
        assert header.client_id == "driven"
        assert header.correlation_id == response.request.correlation_id
        response.raise_if_failed()


def test_answers_belong_to_their_requests_in_order() -> None:
    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap) as driven:
        broker.on(ApiKeys.HEARTBEAT, beats)
        for number in range(20):
            driven.send(HeartbeatRequest(group_id="g", generation_id=number))
        driven.poll_until(lambda: len(driven.responses) == 20)
        assert [r.message.error_code for r in driven.responses] == list(range(20))


def test_no_more_requests_are_sent_than_may_be_in_flight() -> None:
    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap, max_in_flight=2) as driven:
        driven.send(BEAT)
        driven.send(BEAT)
        driven.poll_until(lambda: len(broker.received(ApiKeys.HEARTBEAT)) == 2)
        node = driven.metadata.fetch().nodes[0]
        assert not driven.client.ready(node, now())
        assert driven.client.in_flight_count(0) == driven.client.in_flight_count() == 2
        with pytest.raises(IllegalStateError, match="not ready"):
            driven.client.send(driven.client.new_request(0, BEAT), now())


def test_a_request_that_expects_no_answer_is_complete_once_it_is_written() -> None:
    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap) as driven:
        broker.on(ApiKeys.HEARTBEAT, beats)
        broker.answer(ApiKeys.PRODUCE, Reply.NOTHING)
        response = driven.call(ProduceRequest(acks=0, timeout_ms=1), expect_response=False)
        assert response.message is None
        assert not response.failed
        assert driven.call(BEAT).message == HeartbeatResponse()


def test_a_builder_gets_the_version_that_both_sides_have() -> None:
    ranges = {ApiKeys.API_VERSIONS: (0, NEWEST), ApiKeys.METADATA: (4, 9), ApiKeys.HEARTBEAT: (0, 3)}
    versions: list[int] = []

    def build(version: int) -> HeartbeatRequest:
        versions.append(version)
        return BEAT

    with ScriptedBroker(versions=ranges) as broker, DrivenClient(broker.bootstrap) as driven:
        broker.on(ApiKeys.HEARTBEAT, lambda header, message: HeartbeatResponse())
        assert driven.call(build, api_key=ApiKeys.HEARTBEAT).version == 3
        assert driven.call(build, api_key=ApiKeys.HEARTBEAT, max_version=1).version == 1
        assert versions == [3, 1]
        with pytest.raises(TypeError, match="api_key"):
            driven.client.new_request(0, build)


def test_a_request_the_broker_has_no_version_for_fails_alone_and_by_name() -> None:
    ranges = {ApiKeys.API_VERSIONS: (0, NEWEST), ApiKeys.METADATA: (4, 9), ApiKeys.HEARTBEAT: (0, 2)}
    with ScriptedBroker(versions=ranges) as broker, DrivenClient(broker.bootstrap) as driven:
        broker.on(ApiKeys.HEARTBEAT, lambda header, message: HeartbeatResponse())
        response = driven.call(ProduceRequest())
        assert isinstance(response.error, UnsupportedVersionError)
        assert not response.disconnected
        with pytest.raises(UnsupportedVersionError, match="PRODUCE"):
            response.raise_if_failed()
        refused = driven.call(HeartbeatRequest(group_id="g", group_instance_id="static"))
        assert isinstance(refused.error, UnsupportedVersionError)
        assert driven.call(BEAT).error is None
        assert broker.accepted == 2  # by its bootstrap address and by its id: nothing was closed


def test_a_request_with_a_value_that_cannot_be_written_fails_alone() -> None:
    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap) as driven:
        broker.on(ApiKeys.HEARTBEAT, beats)
        response = driven.call(HeartbeatRequest(group_id="\ud800"))
        assert isinstance(response.error, SchemaError)
        assert not response.disconnected
        assert driven.call(BEAT).error is None
        assert broker.accepted == 2  # by its bootstrap address and by its id: nothing was closed


def test_an_error_in_a_callback_is_logged_and_hurts_no_other_one(caplog: pytest.LogCaptureFixture) -> None:
    done: list[ClientResponse] = []

    def fail(response: ClientResponse) -> None:
        raise ValueError("broken callback")

    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap) as driven:
        broker.on(ApiKeys.HEARTBEAT, beats)
        driven.send(BEAT, on_complete=fail)
        driven.send(BEAT, on_complete=done.append)
        driven.poll_until(lambda: done)
    assert "broken callback" in caplog.text


def test_versions_are_asked_for_on_every_connection_anew() -> None:
    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap) as driven:
        broker.on(ApiKeys.HEARTBEAT, lambda header, message: HeartbeatResponse())
        assert driven.call(BEAT).version == 4
        broker.versions[ApiKeys.HEARTBEAT] = (0, 2)
        broker.drop_connections()
        driven.poll_until(lambda: driven.client.connections.is_disconnected(0))
        assert driven.client.api_versions(0) is None
        assert driven.call(BEAT).version == 2


def test_a_broker_that_knows_only_older_versions_is_asked_by_the_range_in_its_answer() -> None:
    ranges = {api: (api.min_version, api.max_version) for api in (ApiKeys.METADATA, ApiKeys.HEARTBEAT)}
    with ScriptedBroker(versions={**ranges, ApiKeys.API_VERSIONS: (0, 2)}) as broker:
        with DrivenClient(broker.bootstrap) as driven:
            driven.update_metadata()
        assert asked_versions(broker) == [NEWEST, 2]
        assert broker.accepted == 1


@pytest.mark.parametrize("reply", [Reply.CLOSE, Reply.RESET, b"\0\0\0\x06\0\0\0\1\xff\xff"])
def test_a_broker_that_closes_or_answers_in_riddles_is_asked_in_version_0(reply: object) -> None:
    def answer(header: Any, message: Any) -> Any:
        if header.api_version > 0:
            if isinstance(reply, bytes):
                return reply[:4] + header.correlation_id.to_bytes(4, "big") + reply[8:]
            return reply
        return ApiVersionsResponse(api_keys=[ApiVersion(api_key=3, min_version=0, max_version=9)])

    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap) as driven:
        broker.on(ApiKeys.API_VERSIONS, answer)
        driven.update_metadata()
        assert asked_versions(broker) == [NEWEST, 0]


@pytest.mark.parametrize("highest", [NEWEST, 0])
def test_a_broker_that_refuses_every_version_is_given_up_with_a_clear_error(highest: int) -> None:
    def refuse(header: Any, message: Any) -> ApiVersionsResponse:
        return ApiVersionsResponse(
            error_code=35, api_keys=[ApiVersion(api_key=18, min_version=0, max_version=highest)]
        )

    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap) as driven:
        broker.on(ApiKeys.API_VERSIONS, refuse)
        driven.poll_until(lambda: driven.metadata.last_error is not None)
        assert isinstance(driven.metadata.last_error, UnsupportedVersionError)
        assert len(asked_versions(broker)) <= 3
        with pytest.raises(UnsupportedVersionError, match="is it a Kafka broker"):
            driven.metadata.raise_any_error()


def test_a_broker_that_never_answers_versions_is_asked_in_a_bounded_way() -> None:
    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap) as driven:
        broker.on(ApiKeys.API_VERSIONS, lambda header, message: Reply.CLOSE)
        driven.poll_until(lambda: len(asked_versions(broker)) == 7)
        assert asked_versions(broker)[:7] == [NEWEST, 0, 0, NEWEST, 0, 0, NEWEST]
        error = driven.metadata.last_error
        assert isinstance(error, BootstrapError)
        assert error.connection is not None
        assert error.connection.step == "api_versions"


def test_metadata_comes_by_whichever_bootstrap_server_is_alive() -> None:
    dead = f"127.0.0.1:{closed_port()}"
    with ScriptedBroker(topics={"t": 3}) as broker, DrivenClient(dead, broker.bootstrap) as driven:
        driven.update_metadata()
        assert driven.metadata.fetch().partition_count("t") == 3


def test_no_server_alive_is_told_by_name_and_once(caplog: pytest.LogCaptureFixture) -> None:
    port = closed_port()
    with DrivenClient(f"127.0.0.1:{port}") as driven, caplog.at_level(logging.INFO):
        failures = 0

        def several() -> bool:
            nonlocal failures
            failures += driven.metadata.last_error is not None
            return failures > 20

        driven.poll_until(several)
        error = driven.metadata.last_error
        assert isinstance(error, BootstrapError)
        where = error.connection
        assert where is not None
        assert (where.host, where.port, where.step) == ("127.0.0.1", port, "tcp")
    warnings = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert warnings[0].getMessage().startswith(f"[driven] Cannot connect to 127.0.0.1:{port}")


def test_connections_are_told_of_and_payloads_are_not(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, logger="kclient")
    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap) as driven:
        broker.on(ApiKeys.HEARTBEAT, beats)
        driven.call(HeartbeatRequest(group_id="secret-group"))
    assert f"[driven] Connected to 127.0.0.1:{broker.port}" in caplog.text
    assert "secret-group" not in caplog.text


def test_when_all_known_brokers_are_gone_the_client_starts_again_from_its_bootstrap_servers() -> None:
    with ScriptedBroker(topics={"t": 1}) as home, ScriptedBroker(node_id=5) as away:
        home.brokers = [away]
        with DrivenClient(home.bootstrap) as driven:
            driven.update_metadata()
            assert [n.id for n in driven.metadata.fetch().nodes] == [5]
            away.stop()
            home.brokers = [home]
            driven.metadata.request_update()
            driven.poll_until(lambda: driven.metadata.fetch().node_by_id(0) is not None)
            assert driven.metadata.fetch().partition_count("t") == 1
        away.start()


def test_a_client_without_recovery_keeps_to_the_brokers_it_knows() -> None:
    with ScriptedBroker() as home, ScriptedBroker(node_id=5) as away:
        home.brokers = [away]
        with DrivenClient(home.bootstrap, metadata_recovery_strategy="none") as driven:
            driven.update_metadata()
            away.stop()
            driven.metadata.request_update()
            driven.poll_until(lambda: driven.client.connections.connection_delay_ms(5, now()))
            for _ in range(10):
                driven.client.poll(5, now())
            assert [n.id for n in driven.metadata.fetch().nodes] == [5]
            away.start()
            driven.update_metadata()


def test_a_broker_may_ask_the_client_to_start_again() -> None:
    with ScriptedBroker(topics={"t": 1}) as broker, DrivenClient(broker.bootstrap) as driven:
        driven.update_metadata()
        asked = len(broker.received(ApiKeys.METADATA))
        broker.answer(ApiKeys.METADATA, MetadataResponse(error_code=129))
        driven.metadata.request_update()
        driven.poll_until(lambda: driven.metadata.is_bootstrapping)
        driven.poll_until(lambda: not driven.metadata.is_bootstrapping)
        assert len(broker.received(ApiKeys.METADATA)) == asked + 2


def test_a_broker_that_is_busy_is_not_taken_for_one_that_is_gone() -> None:
    done = threading.Event()

    def beat(header: Any, message: Any) -> HeartbeatResponse:
        done.wait(20)
        return beats(header, message)

    broker = ScriptedBroker(topics={"t": 1})
    with (
        broker,
        FaultProxy(broker.address) as door,
        DrivenClient(door.bootstrap, max_in_flight=1) as driven,
    ):
        node = driven.node(0)
        door.stop()
        broker.on(ApiKeys.HEARTBEAT, beat)
        driven.send(BEAT)
        version = driven.metadata.request_update()
        for _ in range(5):
            driven.client.poll(5, now())
        assert driven.metadata.fetch().nodes == (node,)
        done.set()
        driven.take()
        # Free again, but the metadata request goes first.
        assert not driven.client.ready(node, now())
        driven.poll_until(lambda: driven.metadata.update_version > version)
        assert driven.client.ready(node, now())


def test_the_least_loaded_node_is_a_connected_one_with_the_fewest_requests() -> None:
    brokers = cluster_of(3)
    with brokers[0], brokers[1], brokers[2], DrivenClient(brokers[0].bootstrap) as driven:
        driven.update_metadata()
        driven.node(1)
        driven.node(2)
        driven.send(BEAT, node_id=1)
        for _ in range(20):
            chosen = driven.client.least_loaded_node(now())
            assert chosen is not None
            assert chosen.id == 2


def test_what_waits_for_nothing_has_a_way_beside_a_fetch() -> None:
    with ScriptedBroker(topics={"t": 1}) as broker, DrivenClient(broker.bootstrap) as driven:
        driven.update_metadata()
        node = driven.node(0)
        assert driven.client.beside_fetches(node) is node
        assert driven.client.least_loaded_node(now()) == node
        driven.send(FetchRequest(max_wait_ms=60_000))
        beside = driven.client.beside_fetches(node)
        assert beside.id != node.id
        assert (beside.host, beside.port) == (node.host, node.port)
        assert driven.client.least_loaded_node(now()) == beside
        driven.update_metadata()
        assert driven.client.in_flight_count(node.id) == 1
        assert driven.client.is_ready(beside, now())


def test_throttling_keeps_one_node_quiet_and_the_others_not() -> None:
    brokers = cluster_of(2)
    for broker in brokers:
        broker.on(ApiKeys.HEARTBEAT, lambda header, message: HeartbeatResponse())
    with brokers[0], brokers[1], DrivenClient(brokers[0].bootstrap) as driven:
        node = driven.node(0)
        brokers[0].answer(ApiKeys.HEARTBEAT, HeartbeatResponse(throttle_time_ms=60_000))
        driven.call(BEAT)
        assert not driven.client.ready(node, now())
        assert 50_000 < driven.client.connections.throttle_delay_ms(node.id, now()) <= 60_000
        assert driven.client.connections.poll_delay_ms(node.id, now()) > 50_000
        assert driven.client.is_ready(node, now() + 60_000)
        assert driven.call(BEAT, node_id=1).error is None


def test_time_spent_throttled_does_not_count_against_requests_in_flight() -> None:
    both_sent = threading.Event()

    def throttle(header: Any, message: Any) -> HeartbeatResponse:
        assert both_sent.wait(20)
        return HeartbeatResponse(throttle_time_ms=60_000)

    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap) as driven:
        broker.once(ApiKeys.HEARTBEAT, throttle)
        broker.answer(ApiKeys.HEARTBEAT, Reply.NOTHING)
        driven.send(BEAT)
        driven.send(BEAT, timeout_ms=2000)
        both_sent.set()
        driven.poll_until(lambda: driven.responses)
        started = now()
        driven.poll_until(lambda: now() - started > 2200)
        assert len(driven.responses) == 1
        assert driven.client.in_flight_count(0) == 1


def test_before_a_version_throttles_the_client_its_brokers_have_waited_already() -> None:
    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap) as driven:
        broker.answer(ApiKeys.PRODUCE, ProduceResponse(throttle_time_ms=60_000))
        response = driven.call(ProduceRequest(), max_version=5)
        assert response.message.throttle_time_ms == 60_000
        assert driven.client.connections.throttle_delay_ms(0, now()) == 0


def test_disconnecting_answers_what_is_in_flight_and_closing_a_connection_forgets_it() -> None:
    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap) as driven:
        driven.send(BEAT)
        driven.client.disconnect(0)
        assert driven.take().disconnected
        driven.client.disconnect(0)
        driven.client.disconnect(99)
        driven.send(BEAT)
        driven.client.close_connection(0)
        assert driven.client.in_flight_count() == 0
        driven.node(0)
        assert driven.responses == []


def test_a_poll_with_nothing_to_do_waits_and_does_not_spin() -> None:
    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap) as driven:
        driven.node(0)
        driven.client.poll(0, now())
        started, polls = now(), 0
        while now() - started < 100:
            driven.client.poll(50, now())
            polls += 1
        assert polls <= 4


def test_a_wakeup_ends_a_poll() -> None:
    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap) as driven:
        driven.node(0)
        driven.client.wakeup()
        started = now()
        driven.client.poll(10_000, now())
        assert now() - started < 5_000


def test_a_closed_client_refuses_work_and_closes_again_without_complaint() -> None:
    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap) as driven:
        node = driven.node(0)
        driven.client.close()
        driven.client.close()
        driven.client.wakeup()
        with pytest.raises(IllegalStateError):
            driven.client.ready(node, now())
        with pytest.raises(IllegalStateError):
            driven.client.poll(0, now())


def test_in_a_forked_child_the_client_refuses_work_and_leaves_the_parents_connections_alone() -> None:
    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap) as driven:
        broker.on(ApiKeys.HEARTBEAT, beats)
        node = driven.node(0)
        child = os.fork()
        if child == 0:
            try:
                driven.client.wakeup()
                driven.client.close()
                for use in (
                    lambda: driven.client.ready(node, 0),
                    lambda: driven.client.poll(0, 0),
                    lambda: driven.client.least_loaded_node(0),
                    lambda: driven.client.disconnect(0),
                ):
                    with pytest.raises(ForkedClientError):
                        use()
                os._exit(0)
            except BaseException:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert driven.call(BEAT).error is None
        assert broker.accepted == 2


def test_an_answer_that_cannot_be_read_fails_its_request_and_ends_the_connection() -> None:
    both_sent = threading.Event()

    def with_a_byte_too_many(header: Any, message: Any) -> bytes:
        assert both_sent.wait(20)
        parts = response_buffers(
            HeartbeatResponse(), ApiKeys.HEARTBEAT, header.api_version, header.correlation_id
        )
        body = b"".join(parts)[4:] + b"!"
        return len(body).to_bytes(4, "big") + body

    with ScriptedBroker() as broker, DrivenClient(broker.bootstrap) as driven:
        broker.on(ApiKeys.HEARTBEAT, lambda header, message: HeartbeatResponse())
        broker.once(ApiKeys.HEARTBEAT, with_a_byte_too_many)
        broker.answer(ApiKeys.HEARTBEAT, Reply.NOTHING)
        driven.send(BEAT)
        driven.send(BEAT)
        both_sent.set()
        driven.poll_until(lambda: len(driven.responses) == 2)
        broken, behind = driven.responses
        driven.responses.clear()
        assert isinstance(broken.error, SchemaError)
        assert not broken.disconnected
        assert behind.disconnected
        assert behind.error is None
        assert driven.call(BEAT).error is None
