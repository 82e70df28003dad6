"""Connections that behave and connections that do not, against a server whose handlers the test plays."""

from __future__ import annotations

import resource
import socket
import struct
import threading
from collections.abc import Iterator

import psutil
import pytest

from harness.broker.servers import MAX_REQUEST, ServerHarness, echo, ended, frame, read_frame, security_of
from harness.leaks import nothing_left_behind
from harness.waiting import wait_until
from kclient.broker.config import BrokerConfig
from kclient.broker.network.request_channel import Request, Response, ResponseAction
from kclient.broker.network.socket_server import SocketServer
from kclient.broker.quota.connection_rates import ConnectionRates
from kclient.errors import ConfigError
from kclient.utils.log_context import LogContext
from kclient.utils.time import SYSTEM_TIME


def test_a_request_is_answered(harness: ServerHarness) -> None:
    sock = harness.connect(harness.serve())
    sock.sendall(frame(b"hello"))
    assert read_frame(sock) == b"hello"


def use(harness: ServerHarness, server: SocketServer, **settings: object) -> None:
    """Change settings of a server that runs."""
    changes = {name.replace("_", "."): value for name, value in settings.items()}
    server.use_settings(BrokerConfig.parse({**harness.settings, **changes}))


def test_threads_that_are_added_share_the_connections_that_come(harness: ServerHarness) -> None:
    server = harness.serve(num_network_threads=1)
    first = harness.connect(server)
    first.sendall(frame(b"first"))
    assert read_frame(first) == b"first"
    use(harness, server, num_network_threads=3)
    socks = [harness.connect(server) for _ in range(6)]
    for sock in (*socks, first):
        sock.sendall(frame(b"x"))
        assert read_frame(sock) == b"x"
    assert [one.connections.created for one in server.processors] == [3, 2, 2]
    assert [one.id for one in server.processors] == [0, 1, 2]


def test_a_thread_that_is_taken_away_answers_what_it_was_asked_and_closes_its_connections(
    harness: ServerHarness,
) -> None:
    parked: list[Request] = []
    server = harness.serve(parked.append, num_network_threads=2)
    kept, leaving, idle = harness.connect(server), harness.connect(server), harness.connect(server)
    harness.connect(server)
    for sock in (kept, leaving):
        sock.sendall(frame(b"asked") + frame(b"more"))
    wait_until(lambda: len(parked) == 2)
    use(harness, server, num_network_threads=1)
    newcomer = harness.connect(server)
    newcomer.sendall(frame(b"new"))
    wait_until(lambda: len(parked) == 3)
    for request in parked[:3]:
        request.reply(echo(request))
    assert (read_frame(kept), read_frame(leaving), read_frame(newcomer)) == (b"asked", b"asked", b"new")
    assert ended(leaving)
    wait_until(lambda: len(parked) == 4)
    assert bytes(parked[3].frame) == b"more", "of the connection that stays, not of the other"
    wait_until(lambda: server.quotas.total == 3, what="places given back")
    idle.sendall(frame(b"still there"))
    wait_until(lambda: len(parked) == 5)


def test_what_a_thread_counted_is_counted_after_its_end(harness: ServerHarness) -> None:
    def answer(request: Request) -> Response:
        request.record.version, request.record.api = 0, 18
        return echo(request)

    server = harness.serve(answer, num_network_threads=2)
    for _ in range(4):
        sock = harness.connect(server)
        sock.sendall(frame(b"x"))
        read_frame(sock)

    def counted() -> int:
        return sum(one.by_api[18].versions[0] for one in server.request_metrics() if 18 in one.by_api)

    wait_until(lambda: counted() == 4)
    use(harness, server, num_network_threads=1)
    wait_until(lambda: len(server.request_metrics()) == 2, what="the end of the thread")
    assert counted() == 4


def test_a_request_that_nobody_answers_keeps_no_thread_that_is_taken_away(harness: ServerHarness) -> None:
    parked: list[Request] = []
    server = harness.serve(parked.append, num_network_threads=2)
    socks = [harness.connect(server) for _ in range(2)]
    for sock in socks:
        sock.sendall(frame(b"x"))
    wait_until(lambda: len(parked) == 2)
    use(harness, server, num_network_threads=1)
    assert ended(socks[1])
    parked[1].reply(echo(parked[1]))
    parked[0].reply(echo(parked[0]))
    assert read_frame(socks[0]) == b"x"


def test_listeners_have_threads_of_their_own_number(harness: ServerHarness) -> None:
    listeners = "A://127.0.0.1:0,B://127.0.0.1:0"
    server = harness.serve(listeners=listeners, listener_security_protocol_map="A:PLAINTEXT,B:PLAINTEXT")
    use(harness, server, **{"listener.name.b.num.network.threads": 2})
    assert [one.listener_name for one in server.processors] == ["A", "B", "B"]


@pytest.mark.parametrize("size", [MAX_REQUEST + 1, 2**31 - 1, -1, -(2**31)])
def test_a_frame_of_an_impossible_size_closes_its_connection(harness: ServerHarness, size: int) -> None:
    sock = harness.connect(harness.serve())
    sock.sendall(struct.pack(">i", size))
    assert ended(sock)


def test_requests_of_a_connection_are_handled_one_at_a_time(harness: ServerHarness) -> None:
    parked: list[Request] = []
    server = harness.serve(parked.append)
    sock = harness.connect(server)
    sock.sendall(frame(b"one") + frame(b"two"))
    wait_until(lambda: parked)
    other = harness.connect(server)
    other.sendall(frame(b"other"))
    wait_until(lambda: len(parked) == 2)
    assert [bytes(request.frame) for request in parked] == [b"one", b"other"], (
        "the second was read before its turn"
    )
    parked[0].reply(echo(parked[0]))
    wait_until(lambda: len(parked) == 3)
    assert bytes(parked[2].frame) == b"two"


def test_a_request_without_response_lets_the_next_one_in(harness: ServerHarness) -> None:
    def answer(request: Request) -> Response:
        if bytes(request.frame) == b"silent":
            return Response(request.connection_id, ResponseAction.NOTHING)
        return echo(request)

    sock = harness.connect(harness.serve(answer))
    sock.sendall(frame(b"silent") + frame(b"loud"))
    assert read_frame(sock) == b"loud"


def test_a_handler_can_close_the_connection(harness: ServerHarness) -> None:
    server = harness.serve(lambda request: Response(request.connection_id, ResponseAction.CLOSE))
    sock = harness.connect(server)
    sock.sendall(frame(b"x"))
    assert ended(sock)
    wait_until(lambda: server.quotas.total == 0)


def test_an_answer_to_a_connection_that_is_gone_is_dropped(harness: ServerHarness) -> None:
    parked: list[Request] = []
    server = harness.serve(parked.append)
    sock = harness.connect(server)
    sock.sendall(frame(b"x"))
    wait_until(lambda: parked)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    sock.close()
    parked[0].reply(Response(parked[0].connection_id, ResponseAction.SEND, [frame(bytes(10 << 20))]))
    wait_until(lambda: server.quotas.total == 0)


def served(sock: socket.socket) -> bool:
    sock.sendall(frame(b"in"))
    return read_frame(sock) == b"in"


def test_connections_above_the_limit_of_their_address_are_refused_until_one_is_closed(
    harness: ServerHarness,
) -> None:
    server = harness.serve(max_connections_per_ip=2)
    first, second = harness.connect(server), harness.connect(server)
    assert served(first)
    assert served(second)
    assert ended(harness.connect(server))
    first.close()
    wait_until(lambda: server.quotas.total == 1)
    assert served(harness.connect(server))


@pytest.mark.parametrize("setting", ["max.connections", "listener.name.plaintext.max.connections"])
def test_connections_above_the_limit_wait_until_one_is_closed(harness: ServerHarness, setting: str) -> None:
    server = harness.serve(**{setting: 2})
    first, second, third = (harness.connect(server) for _ in range(3))
    assert served(first)
    assert served(second)
    third.sendall(frame(b"in"))
    third.settimeout(0.2)
    with pytest.raises(TimeoutError):
        third.recv(1)
    third.settimeout(10)
    first.close()
    assert read_frame(third) == b"in"


def test_a_connection_of_a_broker_takes_the_place_of_the_least_recently_used_of_others(
    harness: ServerHarness,
) -> None:
    server = harness.serve(
        max_connections=2,
        listeners="BROKERS://127.0.0.1:0,OTHERS://127.0.0.1:0",
        listener_security_protocol_map="BROKERS:PLAINTEXT,OTHERS:PLAINTEXT",
        inter_broker_listener_name="brokers",
    )
    first, second = (harness.connect(server, 1) for _ in range(2))
    assert served(second)
    assert served(first)
    third = harness.connect(server, 1)
    broker = harness.connect(server, 0)
    assert served(broker)
    assert ended(second)
    assert served(first)
    broker.close()
    assert served(third)


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6 here")
def test_an_address_with_a_number_of_its_own_is_known_on_any_listener(harness: ServerHarness) -> None:
    settings = {"max_connections_per_ip": 0, "max_connections_per_ip_overrides": "127.0.0.1:1"}
    server = harness.serve(listeners="PLAINTEXT://[::]:0", **settings)
    first = harness.connect(server)
    first.sendall(frame(b"in"))
    assert read_frame(first) == b"in"
    assert ended(harness.connect(server))


def test_an_idle_connection_is_closed(harness: ServerHarness) -> None:
    server = harness.serve(connections_max_idle_ms=50)
    assert ended(harness.connect(server))
    wait_until(lambda: server.quotas.total == 0)


def test_what_hostile_connections_announce_costs_nothing_and_others_are_served(
    harness: ServerHarness,
) -> None:
    server = harness.serve(socket_request_max_bytes=100 << 20)
    before = psutil.Process().memory_info().rss
    hostile = [harness.connect(server) for _ in range(200)]
    for number, sock in enumerate(hostile):
        # Announce 100 MiB and send a little; or drip the length itself.
        sock.sendall(struct.pack(">i", 100 << 20) + b"x" * 100 if number % 2 else b"\0\0")
    good = harness.connect(server)
    good.sendall(frame(b"still there?"))
    assert read_frame(good) == b"still there?"
    wait_until(lambda: server.quotas.total == 201)
    grown = psutil.Process().memory_info().rss - before
    assert grown < 64 << 20, f"{grown >> 20} MiB for connections that have sent 20 KiB"


def test_a_client_that_never_reads_holds_one_answer_and_nobody_else(harness: ServerHarness) -> None:
    answers = 0

    def answer(request: Request) -> Response:
        nonlocal answers
        if bytes(request.frame) != b"big":
            return echo(request)
        answers += 1
        return Response(request.connection_id, ResponseAction.SEND, [frame(bytes(32 << 20))])

    server = harness.serve(answer)
    deaf = harness.connect(server)
    deaf.sendall(frame(b"big") * 20)
    wait_until(lambda: answers == 1)
    good = harness.connect(server)
    for _ in range(20):
        good.sendall(frame(b"ping"))
        assert read_frame(good) == b"ping"
    assert answers == 1, "requests were handled whose answers nobody takes"


def test_a_client_that_never_reads_is_closed_when_it_was_idle_for_too_long(harness: ServerHarness) -> None:
    server = harness.serve(
        lambda request: Response(request.connection_id, ResponseAction.SEND, [frame(bytes(32 << 20))]),
        connections_max_idle_ms=200,
    )
    deaf = harness.connect(server)
    deaf.sendall(frame(b"big"))
    wait_until(lambda: server.quotas.total == 1)
    wait_until(lambda: server.quotas.total == 0, what="the end of its connection")


def test_requests_above_the_bound_of_the_queue_wait_in_their_connections(harness: ServerHarness) -> None:
    go = threading.Event()
    taken: list[Request] = []

    def answer(request: Request) -> Response:
        taken.append(request)
        assert go.wait(30)
        return echo(request)

    server = harness.serve(answer, queued_max_requests=2, num_network_threads=3)
    socks = [harness.connect(server) for _ in range(12)]
    for sock in socks:
        sock.sendall(frame(b"x"))
    wait_until(lambda: taken)
    wait_until(lambda: len(server.request_channel) == 2, what="a full queue")
    assert len(taken) == 1
    go.set()
    for sock in socks:
        assert read_frame(sock) == b"x"


def test_two_thousand_connections_that_say_nothing_or_little_keep_nobody_waiting(
    harness: ServerHarness, many_descriptors: None
) -> None:
    server = harness.serve(descriptors=10_000, socket_listen_backlog_size=2000)
    before = psutil.Process().memory_info().rss
    for number in range(2000):
        sock = harness.connect(server)
        sock.sendall(frame(b"x" * 500)[: number % 500])
    wait_until(lambda: server.quotas.total == 2000, 30)
    good = harness.connect(server)
    for _ in range(5):
        good.sendall(frame(b"ping"))
        assert read_frame(good) == b"ping"
    grown = psutil.Process().memory_info().rss - before
    assert grown < 80 << 20, f"{grown >> 20} MiB for 2000 connections"


@pytest.fixture
def many_descriptors() -> Iterator[None]:
    """Enough for both ends of some thousand connections."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = 6000
    if hard not in {resource.RLIM_INFINITY} and hard < wanted:
        pytest.skip(f"no more than {hard} descriptors here")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, wanted), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_while_the_requests_at_hand_take_too_much_memory_no_more_than_one_is_read(
    harness: ServerHarness,
) -> None:
    parked: list[Request] = []
    server = harness.serve(parked.append, queued_max_request_bytes=2000, queued_max_requests=100)
    big, newcomer, small = harness.connect(server), harness.connect(server), harness.connect(server)
    big.sendall(frame(bytes(2000)))
    wait_until(lambda: parked)
    newcomer.sendall(frame(b"the one"))
    wait_until(lambda: len(parked) == 2)
    small.sendall(frame(b"later"))
    wait_until(lambda: server.request_memory.exhausted)
    assert len(parked) == 2
    parked[0].reply(echo(parked[0]))
    read_frame(big)
    wait_until(lambda: len(parked) == 3)
    assert [bytes(request.frame) for request in parked[1:]] == [b"the one", b"later"]


def test_a_port_that_is_taken_is_said_with_the_setting(harness: ServerHarness) -> None:
    port = harness.serve().endpoints[0].port
    with pytest.raises(ConfigError, match=f"listeners: 127.0.0.1:{port} cannot be bound"):
        harness.serve(listeners=f"PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:{port}")
    with pytest.raises(ConfigError, match="listeners"):
        harness.serve(listeners="PLAINTEXT://no such host.invalid:0")


def test_a_server_listens_on_all_its_addresses(harness: ServerHarness) -> None:
    server = harness.serve(listeners="PLAINTEXT://127.0.0.1:0,PLAINTEXT://127.0.0.1:0", num_network_threads=3)
    for endpoint in server.endpoints:
        with socket.create_connection((endpoint.host, endpoint.port), 10) as sock:
            sock.sendall(frame(b"x"))
            assert read_frame(sock) == b"x"


def test_shutdown_leaves_no_thread_and_no_descriptor() -> None:
    with nothing_left_behind():
        harness = ServerHarness()
        server = harness.serve(num_network_threads=3)
        for _ in range(5):
            harness.connect(server).sendall(frame(b"x"))
        harness.connect(server).sendall(b"\0\0")
        wait_until(lambda: server.quotas.total == 6)
        harness.close()
        assert server.quotas.total == 0


def test_a_server_that_was_never_started_can_be_shut_down() -> None:
    config = BrokerConfig.parse({"log.dirs": "/nowhere", "listeners": "PLAINTEXT://127.0.0.1:0"})
    security = [security_of(config, listener) for listener in config.listeners_with_security()]
    rates = ConnectionRates.of(config, SYSTEM_TIME, LogContext())
    server = SocketServer(config, SYSTEM_TIME, LogContext(), descriptors=1, security=security, rates=rates)
    server.shutdown()
    server.shutdown()


def test_a_connection_that_is_answered_twice_is_closed_and_others_are_served(harness: ServerHarness) -> None:
    def answer(request: Request) -> Response:
        if bytes(request.frame) == b"twice":
            request.reply(Response(request.connection_id, ResponseAction.SEND, [frame(bytes(32 << 20))]))
        return echo(request)

    server = harness.serve(answer)
    deaf = harness.connect(server)
    deaf.sendall(frame(b"twice"))
    wait_until(lambda: server.quotas.total == 0)
    good = harness.connect(server)
    good.sendall(frame(b"x"))
    assert read_frame(good) == b"x"
