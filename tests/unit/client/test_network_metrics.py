from __future__ import annotations

import math

from harness.mock_time import MockTime
from harness.network.client_parts import NODE, ClientParts
from kclient.client.network_metrics import NetworkMetrics
from kclient.errors import AuthenticationError
from kclient.metrics import Metrics, MetricValues
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.heartbeat import HeartbeatResponse


class Watched:
    def __init__(self, *, authenticates: bool = False) -> None:
        self.time = MockTime()
        self.metrics = Metrics(self.time, "consumer-metrics", {"client-id": "c"}, window_ms=1000, samples=2)
        self.network = NetworkMetrics(self.metrics, self.time, authenticates=authenticates)

    def values(self) -> MetricValues:
        self.network.fold()
        return self.metrics.snapshot()

    def of_node(self, node: str) -> dict[str, float]:
        return {
            name.name: value
            for name, value in self.values().items()
            if name.group == "consumer-node-metrics" and ("node-id", node) in name.tags
        }


def watched_parts() -> tuple[ClientParts, Watched]:
    watched = Watched()
    return ClientParts(metrics=watched.network), watched


def test_requests_and_answers_are_counted_for_their_node_and_for_the_client() -> None:
    parts, watched = watched_parts()
    parts.make_ready()
    parts.transmit()
    parts.answer(HeartbeatResponse(), number=1, api_key=ApiKeys.HEARTBEAT)  # 10 ms later
    node = watched.of_node("node-1")
    assert node["request-total"] == node["response-total"] == 1
    assert node["request-latency-avg"] == node["request-latency-max"] == 10
    assert node["outgoing-byte-total"] == node["request-size-avg"] == node["request-size-max"] > 20
    assert (
        node["incoming-byte-total"] == 4 + 4 + 1 + 4 + 2 + 1
    )  # length, header with tags, the answer with tags
    values = watched.values()
    assert values["request-total"] == values["response-total"] == 1
    assert values["network-io-total"] == 2
    assert values["outgoing-byte-total"] == node["outgoing-byte-total"]
    assert values["incoming-byte-total"] == node["incoming-byte-total"]
    assert values["request-size-max"] == node["request-size-max"]


def test_every_rate_moves_with_its_total() -> None:
    parts, watched = watched_parts()
    parts.make_ready()
    parts.transmit()
    parts.answer(HeartbeatResponse(), number=1, api_key=ApiKeys.HEARTBEAT)
    for name in ("request", "response", "network-io", "outgoing-byte", "incoming-byte"):
        assert watched.values()[f"{name}-rate"] > 0, name
    for name in ("request", "response", "outgoing-byte", "incoming-byte"):
        assert watched.of_node("node-1")[f"{name}-rate"] > 0, name


def test_connections_are_counted_as_they_are_made_and_as_they_end() -> None:
    watched = Watched()
    network = watched.network
    network.opened(1)
    network.opened(-1)
    values = watched.values()
    assert values["connection-count"] == values["connection-creation-total"] == 2
    assert values["connection-creation-rate"] > 0
    assert values["successful-authentication-total"] == 0  # there is nothing to prove without TLS and SASL
    network.closed(1)
    network.closed(1)  # an attempt that failed is no connection
    values = watched.values()
    assert values["connection-count"] == values["connection-close-total"] == 1
    assert values["connection-close-rate"] > 0


def test_authentications_are_counted_and_sessions_that_are_renewed() -> None:
    watched = Watched(authenticates=True)
    network = watched.network
    network.opened(1)
    network.renewed(7)
    network.refused(again=False)
    network.refused(again=True)
    network.refused(again=True)
    values = watched.values()
    assert values["successful-authentication-total"] == values["failed-authentication-total"] == 1
    assert values["successful-reauthentication-total"] == 1
    assert values["failed-reauthentication-total"] == 2
    assert values["reauthentication-latency-avg"] == values["reauthentication-latency-max"] == 7
    for name in ("successful-authentication", "failed-authentication"):
        assert values[f"{name}-rate"] > 0
    for name in ("successful-reauthentication", "failed-reauthentication"):
        assert values[f"{name}-rate"] > 0


def test_the_connections_of_a_client_tell_of_their_beginning_and_their_end() -> None:
    parts, watched = watched_parts()
    parts.connections.connect_if_allowed(NODE, 0)
    assert watched.values()["connection-count"] == 0
    parts.connections.established(1)
    assert watched.values()["connection-count"] == 1
    parts.connections.ended(1, 0, AuthenticationError("who are you?"))
    values = watched.values()
    assert values["connection-count"] == 0
    assert values["connection-close-total"] == values["failed-authentication-total"] == 1


def test_a_renewed_session_tells_how_long_that_took() -> None:
    parts, watched = watched_parts()
    parts.selector.lifetime_ms = 60_000
    parts.make_ready()
    parts.sessions.begin(1, 0)
    parts.sessions.end_soon(60_000)
    parts.time.advance(60_000)
    parts.sessions.renew(parts.time.monotonic_ms())
    parts.time.advance(25)
    parts.connections.established(1)
    assert watched.values()["reauthentication-latency-max"] == 25
    assert watched.values()["successful-reauthentication-total"] == 1


def test_polls_tell_how_long_they_take_and_how_long_the_thread_works_between_them() -> None:
    watched = Watched()
    start_ms = watched.time.monotonic_ms()
    watched.network.polled(start_ms + 100, start_ms + 400)
    watched.network.polled(start_ms + 500, start_ms + 700)
    watched.time.advance(700)
    values = watched.values()
    assert values["select-total"] == 2
    assert values["select-rate"] > 0
    assert values["io-wait-time-ns-total"] == 500_000_000
    assert values["io-wait-time-ns-avg"] == 250_000_000
    assert values["io-time-ns-total"] == 200_000_000
    assert values["io-time-ns-avg"] == 100_000_000
    assert math.isclose(values["io-wait-ratio"], 0.5)
    assert math.isclose(values["io-ratio"], 0.2)


def test_what_was_counted_is_told_about_once_a_second_without_a_reader() -> None:
    watched = Watched()
    start_ms = watched.time.monotonic_ms()
    watched.network.traffic[1].requests += 1
    watched.network.polled(start_ms, start_ms + 999)
    assert not watched.metrics.snapshot()["request-total"]
    watched.network.polled(start_ms + 999, start_ms + 1000)
    assert watched.metrics.snapshot()["request-total"] == 1


def test_a_node_without_a_connection_is_forgotten_once_nothing_is_left_to_tell() -> None:
    watched = Watched()
    network, time = watched.network, watched.time
    network.opened(1)
    network.opened(2)
    for node_id in (1, 2):
        network.traffic[node_id].requests += 1
    assert watched.of_node("node-1")
    network.closed(1)
    time.advance(1999)
    network.polled(time.monotonic_ms(), time.monotonic_ms())
    assert watched.of_node("node-1")
    time.advance(1000)
    network.polled(time.monotonic_ms(), time.monotonic_ms())
    assert not watched.of_node("node-1")
    assert watched.of_node("node-2")
    assert watched.values()["request-total"] == 2
    network.traffic[1].requests += 1  # and it comes back
    assert watched.of_node("node-1")["request-total"] == 1
