"""TLS between two Selectors' channels and between bare transports: handshakes, large frames, refusals, ends."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.network.certificates import Authority
from kclient.config.ssl_configs import SslConfig
from kclient.errors import AuthenticationError, DisconnectError, KafkaError, SslAuthenticationError
from kclient.network.channel import KafkaChannel
from kclient.network.client_channel_builder import ClientChannelBuilder
from kclient.network.selector import Selector
from kclient.network.send import NetworkSend, send_of
from kclient.network.tls_transport import SCRATCH_BYTES, TlsTransport
from kclient.security.tls import TlsContexts, client_context
from kclient.utils.log_context import LogContext

_DEADLINE_S = 20


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def pair(authority: Authority) -> Path:
    return authority.issue("localhost", "127.0.0.1")


class ServerBuilder:
    """Channels of a server with one context."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context

    def build(
        self,
        channel_id: str,
        sock: socket.socket,
        max_receive_bytes: int,
        host: str | None = None,
        port: int = 0,
    ) -> KafkaChannel:
        scratch = memoryview(bytearray(SCRATCH_BYTES))
        transport = TlsTransport(sock, self._context, scratch, host, server=True)
        return KafkaChannel(channel_id, transport, max_receive_bytes)

    def close(self) -> None:
        pass


def selector_of(builder: object) -> Selector:
    return Selector(
        max_receive_bytes=100_000_000,
        connections_max_idle_ms=-1,
        channel_builder=builder,  # type: ignore[arg-type]
    )


class Ends:
    """A client and a server, polled in turns on one thread."""

    def __init__(self, context: ssl.SSLContext, config: SslConfig, host: str = "localhost") -> None:
        self.client = selector_of(ClientChannelBuilder(tls=TlsContexts(config, LogContext("[test] "))))
        self.server = selector_of(ServerBuilder(context))
        with socket.create_server(("127.0.0.1", 0)) as listening:
            self.client.connect("c", "127.0.0.1", listening.getsockname()[1], host=host)
            self.server.register("s", listening.accept()[0])
        self.received: dict[str, list[bytes]] = {"c": [], "s": []}
        self.connected: set[str] = set()
        self.disconnected: dict[str, KafkaError] = {}
        self.polls = 0

    def poll(self) -> None:
        for selector in (self.client, self.server):
            selector.poll(5)
            self.polls += 1
            self.connected |= set(selector.connected)
            self.disconnected.update(selector.disconnected)
            for name, receive in selector.completed_receives.items():
                self.received[name].append(bytes(receive.payload))

    def until(self, done: object) -> None:
        deadline = time.monotonic() + _DEADLINE_S
        while not done():  # type: ignore[operator]
            assert time.monotonic() < deadline
            self.poll()

    def connect(self) -> None:
        self.until(lambda: self.connected == {"c", "s"})

    def close(self) -> None:
        self.client.close()
        self.server.close()


@contextlib.contextmanager
def ends(context: ssl.SSLContext, config: SslConfig, host: str = "localhost") -> Iterator[Ends]:
    made = Ends(context, config, host)
    try:
        yield made
    finally:
        made.close()


def frame(payload: bytes) -> NetworkSend:
    return NetworkSend([len(payload).to_bytes(4, "big"), payload])


def trusting(authority: Authority, **settings: object) -> SslConfig:
    return SslConfig(ssl_truststore_location=str(authority.file), **settings)  # type: ignore[arg-type]


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_frames_of_all_sizes_go_both_ways(authority: Authority, pair: Path, version: str) -> None:
    config = trusting(authority, ssl_enabled_protocols=[version])
    sizes = [0, 1, 100, 16_384, 16_385, 1_000_000, 9_000_000, 5]
    with ends(authority.server_context(pair), config) as both:
        both.connect()
        transport = both.client.channels()[0].transport
        assert isinstance(transport, TlsTransport)
        assert transport._tls.version() == version
        for count, size in enumerate(sizes, 1):
            payload = bytes([count]) * size
            both.client.send("c", frame(payload))
            both.server.send("s", frame(payload))
            both.until(lambda: len(both.received["s"]) == len(both.received["c"]) == count)  # noqa: B023
            assert both.received["s"][-1] == both.received["c"][-1] == payload


def test_frames_that_came_in_one_record_are_all_given_out(authority: Authority, pair: Path) -> None:
    with ends(authority.server_context(pair), trusting(authority)) as both:
        both.connect()
        frames = [bytes([i]) * 10 for i in range(50)]
        both.server.send("s", NetworkSend([part for each in frames for part in (b"\0\0\0\n", each)]))
        both.until(lambda: len(both.received["c"]) == 50)
        assert both.received["c"] == frames


def test_a_record_that_is_half_there_is_waited_for_without_polling_on_and_on(
    authority: Authority, pair: Path
) -> None:
    near, far = socket.socketpair()
    context = client_context(trusting(authority))
    with contextlib.closing(shaken(near, far, context, authority.server_context(pair))) as transport:
        whole = transport.encrypted(b"x" * 1000)
        far.sendall(whole[:-1])
        buffer = memoryview(bytearray(1000))
        assert transport.client.recv_into(buffer) == 0
        assert not transport.client.has_buffered_bytes
        far.sendall(whole[-1:])
        assert transport.client.recv_into(buffer) == 1000
        assert not transport.client.has_buffered_bytes


class Shaken:
    """A client's transport whose peer is an SSLObject of the test, after the handshake."""

    def __init__(
        self, near: socket.socket, far: socket.socket, mine: ssl.SSLContext, theirs: ssl.SSLContext
    ) -> None:
        near.setblocking(False)
        far.settimeout(5)
        self.far = far
        self.client = TlsTransport(near, mine, memoryview(bytearray(SCRATCH_BYTES)), "localhost")
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._peer = theirs.wrap_bio(self._in, self._out, server_side=True)
        while not self.client.ready:
            self.client.handshake()
            if not self.client.ready or self._in.pending == 0:
                with contextlib.suppress(TimeoutError):
                    self._in.write(far.recv(100_000))
            with contextlib.suppress(ssl.SSLWantReadError):
                self._peer.do_handshake()
            if data := self._out.read():
                far.sendall(data)
        while True:
            try:
                self._peer.do_handshake()
                break
            except ssl.SSLWantReadError:
                self._in.write(far.recv(100_000))
        far.sendall(self._out.read())
        self.client.recv_into(memoryview(bytearray(1)))  # the tickets for later connections

    def encrypted(self, data: bytes) -> bytes:
        self._peer.write(data)
        return self._out.read()

    def farewell(self) -> bytes:
        with contextlib.suppress(ssl.SSLWantReadError):
            self._peer.unwrap()
        return self._out.read()

    def close(self) -> None:
        self.client.close()
        self.far.close()


def shaken(near: socket.socket, far: socket.socket, mine: ssl.SSLContext, theirs: ssl.SSLContext) -> Shaken:
    return Shaken(near, far, mine, theirs)


@pytest.fixture
def transport(authority: Authority, pair: Path) -> Iterator[Shaken]:
    near, far = socket.socketpair()
    made = shaken(near, far, client_context(trusting(authority)), authority.server_context(pair))
    yield made
    made.close()


def test_the_end_is_told_after_the_last_bytes_with_and_without_a_farewell(
    authority: Authority, pair: Path
) -> None:
    for farewell in (False, True):
        near, far = socket.socketpair()
        made = shaken(near, far, client_context(trusting(authority)), authority.server_context(pair))
        far.sendall(made.encrypted(b"last") + (made.farewell() if farewell else b""))
        far.close()
        buffer = memoryview(bytearray(100))
        assert made.client.recv_into(buffer) == 4
        with pytest.raises(EOFError):
            made.client.recv_into(buffer)
        made.close()


@pytest.fixture
def over_tcp(authority: Authority, pair: Path) -> Iterator[Shaken]:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        near = socket.create_connection(listening.getsockname())
        far, _ = listening.accept()
    far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made = shaken(near, far, client_context(trusting(authority)), authority.server_context(pair))
    yield made
    made.close()


def readable(made: Shaken, timeout_s: float) -> bool:
    return bool(select.select([made.client.sock], [], [], timeout_s)[0])


@pytest.mark.skipif(sys.platform != "linux", reason="other systems report every byte")
def test_in_the_middle_of_much_the_socket_gathers_before_it_wakes_anybody(over_tcp: Shaken) -> None:
    buffer = memoryview(bytearray(300_000))
    over_tcp.far.sendall(over_tcp.encrypted(b"x" * 1000))
    assert readable(over_tcp, _DEADLINE_S)
    filled = over_tcp.client.recv_into(buffer)
    over_tcp.far.sendall(over_tcp.encrypted(b"x" * 16_000))
    assert not readable(over_tcp, 0.1)
    over_tcp.far.sendall(over_tcp.encrypted(b"x" * (300_000 - 17_000)))
    while filled < 300_000:
        assert readable(over_tcp, _DEADLINE_S)
        filled += over_tcp.client.recv_into(buffer[filled:])
    over_tcp.far.sendall(over_tcp.encrypted(b"x"))
    assert readable(over_tcp, _DEADLINE_S)


def test_whatever_a_record_is_cut_by_the_last_bytes_wake_the_reader(over_tcp: Shaken) -> None:
    for size in range(60_000, 150_000, 3_500):
        for left in (1, 500, 16_000, *range(40_000, 60_000, 4_000), size - 10):
            whole = over_tcp.encrypted(b"x" * size)
            buffer = memoryview(bytearray(size))
            over_tcp.far.sendall(whole[:-left])
            assert readable(over_tcp, _DEADLINE_S)
            filled = over_tcp.client.recv_into(buffer)
            over_tcp.far.sendall(whole[-left:])
            while filled < size:
                assert readable(over_tcp, _DEADLINE_S), f"{filled} of {size} bytes, {left} at last"
                filled += over_tcp.client.recv_into(buffer[filled:])


def test_bytes_that_the_socket_does_not_take_are_kept_and_written_later(transport: Shaken) -> None:
    data = b"y" * 5_000_000
    send = NetworkSend([b"\0\0\0\0", data])
    channel = KafkaChannel("c", transport.client, 1000)
    channel.prepare()
    channel.set_send(send)
    assert channel.write() is None
    assert channel.wants_write
    assert transport.client.wants_write
    seen = 0
    deadline = time.monotonic() + _DEADLINE_S
    done = None
    while done is None:
        assert time.monotonic() < deadline
        seen += len(transport.far.recv(1_000_000))
        done = channel.write()
    assert done is send
    assert not channel.wants_write
    assert seen > 4_000_000


def test_a_file_is_sent_encrypted(authority: Authority, pair: Path) -> None:
    with ends(authority.server_context(pair), trusting(authority)) as both, tempfile.TemporaryFile() as file:
        both.connect()
        file.write(b"z" * 700_000)
        file.flush()

        class Region:
            def __len__(self) -> int:
                return 700_000

            def write_to(self, transport: TlsTransport, start: int) -> int:
                return transport.send_file(file.fileno(), start, 700_000 - start)

        both.server.send("s", send_of([(700_000).to_bytes(4, "big"), Region()]))  # type: ignore[list-item]
        both.until(lambda: both.received["c"])
        assert both.received["c"] == [b"z" * 700_000]
        transport = both.server.channels()[0].transport
        with pytest.raises(OSError, match="no more than 700000 bytes"):
            transport.send_file(file.fileno(), 700_000, 1)


def test_a_trust_store_that_changes_holds_for_the_next_connection(
    authority: Authority, pair: Path, tmp_path: Path
) -> None:
    file = tmp_path / "trust.pem"
    file.write_text(authority.pem)
    with ends(authority.server_context(pair), SslConfig(ssl_truststore_location=str(file))) as both:
        both.connect()
        file.write_text(Authority(tmp_path).pem * 2)
        with socket.create_server(("127.0.0.1", 0)) as listening:
            both.client.connect("again", "127.0.0.1", listening.getsockname()[1], host="localhost")
            both.server.register("s2", listening.accept()[0])
        both.until(lambda: "again" in both.disconnected)
        assert isinstance(both.disconnected["again"], SslAuthenticationError)
        both.client.send("c", frame(b"goes on"))
        both.until(lambda: both.received["s"])


# Refusals.


def refused(both: Ends) -> KafkaError:
    both.until(lambda: "c" in both.disconnected)
    return both.disconnected["c"]


def test_a_name_that_is_not_in_the_certificate_is_refused_unless_it_is_not_checked(
    authority: Authority, pair: Path
) -> None:
    context = authority.server_context(pair)
    with ends(context, trusting(authority), host="other.example") as both:
        error = refused(both)
        assert isinstance(error, SslAuthenticationError)
        assert "other.example" in str(error)
        assert "ssl.endpoint.identification.algorithm" in str(error)
    unchecked = trusting(authority, ssl_endpoint_identification_algorithm="")
    with ends(context, unchecked, host="other.example") as both:
        both.connect()


def test_an_address_is_checked_as_names_are(authority: Authority, pair: Path) -> None:
    context = authority.server_context(pair)
    with ends(context, trusting(authority), host="127.0.0.1") as both:
        both.connect()
    with ends(context, trusting(authority), host="127.0.0.2") as both:
        assert "127.0.0.2" in str(refused(both))


def test_an_expired_certificate_is_refused(authority: Authority) -> None:
    context = authority.server_context(authority.issue("localhost", expired=True))
    with ends(context, trusting(authority)) as both:
        error = refused(both)
        assert isinstance(error, SslAuthenticationError)
        assert "certificate has expired" in str(error)
        assert "renewed" in str(error)


def test_a_certificate_of_another_authority_is_refused(
    authority: Authority, pair: Path, tmp_path: Path
) -> None:
    other = Authority(tmp_path)
    with ends(authority.server_context(pair), trusting(other)) as both:
        error = refused(both)
        assert isinstance(error, SslAuthenticationError)
        assert "ssl.truststore.location" in str(error)


def test_a_revoked_certificate_is_refused(authority: Authority) -> None:
    pair = authority.issue("localhost")
    revoked = trusting(authority, kclient_ssl_crl_location=str(authority.revoke(pair)))
    with ends(authority.server_context(pair), revoked) as both:
        assert "certificate revoked" in str(refused(both))
    with ends(authority.server_context(authority.issue("localhost")), revoked) as both:
        both.connect()


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_a_server_that_wants_a_certificate_refuses_a_client_without_one(
    authority: Authority, pair: Path, version: str
) -> None:
    context = authority.server_context(pair, client_certificate=True)
    with ends(context, trusting(authority, ssl_enabled_protocols=[version])) as both:
        error = refused(both)
        assert isinstance(error, SslAuthenticationError)
        assert "ssl.keystore.location" in str(error)
    mine = authority.issue("client", password="secret")
    settings = {"ssl_keystore_location": str(mine), "ssl_key_password": "secret"}
    config = SslConfig.parse({"ssl.truststore.location": str(authority.file)}, settings)
    with ends(context, config) as both:
        both.connect()


def test_versions_that_do_not_fit_are_refused_with_the_setting(authority: Authority, pair: Path) -> None:
    context = authority.server_context(pair)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    with ends(context, trusting(authority, ssl_enabled_protocols=["TLSv1.3"])) as both:
        error = refused(both)
        assert isinstance(error, SslAuthenticationError)
        assert "ssl.enabled.protocols" in str(error)


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\0\0\0\x04abcd", b""])
def test_a_peer_that_does_not_speak_tls_is_told_with_the_setting(authority: Authority, answer: bytes) -> None:
    client = selector_of(ClientChannelBuilder(tls=TlsContexts(trusting(authority), LogContext("[test] "))))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        client.connect("c", "127.0.0.1", listening.getsockname()[1], host="localhost")
        with listening.accept()[0] as peer:
            peer.sendall(answer)
            if not answer:
                peer.shutdown(socket.SHUT_WR)
            deadline = time.monotonic() + _DEADLINE_S
            while not client.disconnected:
                assert time.monotonic() < deadline
                client.poll(10)
    error = client.disconnected["c"]
    assert "security.protocol" in str(error)
    # An end says nothing about what the peer speaks, so that one is tried again.
    assert isinstance(error, SslAuthenticationError if answer else DisconnectError)
    client.close()


def test_nonsense_in_the_middle_ends_the_connection_and_is_no_refusal(transport: Shaken) -> None:
    transport.far.sendall(transport.encrypted(b"good"))
    buffer = memoryview(bytearray(100))
    assert transport.client.recv_into(buffer) == 4
    transport.far.sendall(b"\x17\x03\x03\x00\x20" + bytes(32))
    with pytest.raises(OSError, match="in the middle") as caught:
        transport.client.recv_into(buffer)
    assert not isinstance(caught.value, AuthenticationError)


def test_closing_says_farewell(transport: Shaken) -> None:
    transport.client.close()
    rest = b""
    while data := transport.far.recv(10_000):
        rest += data
    assert rest  # an encrypted alert
    assert transport.client.sock.fileno() < 0


@pytest.mark.parametrize("host", ["", ".example", "a" * 300])
def test_a_name_that_no_certificate_can_have_is_a_connection_that_cannot_begin(
    authority: Authority, host: str
) -> None:
    # Brokers advertise what they like.
    selector = selector_of(ClientChannelBuilder(tls=TlsContexts(trusting(authority), LogContext())))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        with pytest.raises(OSError, match="cannot be the name of a certificate"):
            selector.connect("c", "127.0.0.1", listening.getsockname()[1], host=host)
        assert not selector.channels()
    selector.close()
