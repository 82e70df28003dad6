"""Brokers and networks that misbehave on purpose.

`ScriptedBroker` answers what a test tells it to, `FaultProxy` stands before a broker and spoils what passes. Both are
context managers that leave no socket and no thread behind.
"""

from __future__ import annotations

import ctypes
import enum
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import attrs

from kclient.errors import KafkaError, UnsupportedVersionError
from kclient.errors.codes import Errors
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.header import RequestHeader, parse_request, response_buffers
from kclient.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from kclient.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

_JOIN_S = 10.0


def read_exactly(sock: socket.socket, count: int) -> bytes:
    """`count` bytes; raises EOFError if the stream ends before."""
    parts = bytearray()
    while len(parts) < count:
        part = sock.recv(min(count - len(parts), 1 << 20))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


def read_frame(sock: socket.socket) -> bytes:
    """One frame without its length; raises EOFError at the end."""
    return read_exactly(sock, int.from_bytes(read_exactly(sock, 4), "big"))


def reset(sock: socket.socket) -> None:
    """Send RST, not FIN: what was not delivered yet is lost. Also ends a recv of another thread.

    Closing with SO_LINGER 0 would send it only after that recv returned; disconnecting the socket does so at once.
    """
    unspecified = bytes(16)  # struct sockaddr with sa_family AF_UNSPEC
    try:
        ctypes.CDLL(None).connect(sock.fileno(), unspecified, len(unspecified))
    finally:
        sock.close()


def hang_up(sock: socket.socket) -> None:
    """Close with FIN; also ends a recv of another thread."""
    try:
        sock.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    sock.close()


def closed_port() -> int:
    """A port of 127.0.0.1 where nobody listens."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


class _Listener:
    """Accepts on a loopback port and serves each connection on a thread of its own."""

    def __init__(self, name: str, port: int = 0) -> None:
        self._name = name
        self._wanted_port = port
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._sockets: set[socket.socket] = set()
        self.stopping = threading.Event()
        self.port = 0
        self.accepted = 0

    @property
    def address(self) -> tuple[str, int]:
        """Host and port to connect to."""
        return "127.0.0.1", self.port

    @property
    def bootstrap(self) -> str:
        """The address as bootstrap.servers wants it."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Listen; `port` is known afterwards."""
        self.stopping.clear()
        self._listening = socket.socket()
        self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self._listening.bind(("127.0.0.1", self._wanted_port))
        self._listening.listen(64)
        # Known from now on, also after a stop and a new start: clients keep the address.
        self.port = self._wanted_port = self._listening.getsockname()[1]
        self.spawn(self._accept)

    def stop(self) -> None:
        """Close the port and every connection, and wait for the threads."""
        self.stopping.set()
        hang_up(self._listening)
        # Again and again, because a connection that was accepted just now starts one more thread.
        while self._threads:
            self.drop_connections()
            with self._lock:
                threads, self._threads = self._threads, []
            for thread in threads:
                thread.join(_JOIN_S)
                assert not thread.is_alive(), f"{thread.name} did not end"

    def drop_connections(self, with_reset: bool = False) -> None:
        """Close every connection there is now; new ones are welcome."""
        with self._lock:
            sockets = list(self._sockets)
        for sock in sockets:
            (reset if with_reset else hang_up)(sock)

    def spawn(self, target: Callable[..., None], *args: object) -> None:
        """Run `target` on a thread that `stop` waits for."""
        thread = threading.Thread(target=target, args=args, name=self._name, daemon=True)
        with self._lock:
            self._threads.append(thread)
        thread.start()

    def track(self, sock: socket.socket) -> None:
        """Close `sock` in `stop` and `drop_connections`."""
        with self._lock:
            self._sockets.add(sock)
        if self.stopping.is_set():
            hang_up(sock)  # `stop` may have looked already

    def untrack(self, sock: socket.socket) -> None:
        """`sock` is closed."""
        with self._lock:
            self._sockets.discard(sock)

    def serve(self, sock: socket.socket) -> None:
        """One connection, until it ends."""
        raise NotImplementedError

    def _accept(self) -> None:
        while not self.stopping.is_set():
            try:
                sock, _ = self._listening.accept()
            except OSError:
                return
            if self.stopping.is_set():
                sock.close()
                return
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.accepted += 1
            self.track(sock)
            self.spawn(self._serve, sock)

    def _serve(self, sock: socket.socket) -> None:
        try:
            self.serve(sock)
        except (OSError, EOFError):
            pass
        finally:
            self.untrack(sock)
            hang_up(sock)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


class Reply(enum.Enum):
    """What a handler may return instead of a message."""

    NOTHING = enum.auto()
    """No answer; the connection stays open."""
    CLOSE = enum.auto()
    """Close the connection with FIN."""
    RESET = enum.auto()
    """Close the connection with RST."""


Handler = Callable[[RequestHeader, Any], Any]
"""Gets header and message of a request; returns a message, raw bytes (length included) or a `Reply`."""


@attrs.frozen
class _Always:
    reply: Any

    def __call__(self, header: RequestHeader, message: Any) -> Any:
        return self.reply


class ScriptedBroker(_Listener):
    """A broker that decodes requests with kclient's codec and answers by handlers.

    By default it answers ApiVersions with kclient's own ranges (or `versions`) and Metadata with itself as the only
    broker and leader of `topics` (name -> number of partitions). Everything else it does not answer. `requests` holds
    what came, oldest first.
    """

    def __init__(
        self,
        *,
        node_id: int = 0,
        topics: Mapping[str, int] | None = None,
        versions: Mapping[ApiKeys, tuple[int, int]] | None = None,
        port: int = 0,
    ) -> None:
        super().__init__(f"scripted-broker-{node_id}", port)
        self.node_id = node_id
        self.topics = dict(topics or {})
        self.versions = dict(versions or {api: (api.min_version, api.max_version) for api in _broker_apis()})
        self.brokers: list[ScriptedBroker] = [self]
        """The brokers that metadata names; those of a cluster share one list."""
        self.requests: list[tuple[RequestHeader, Any]] = []
        self.errors: list[BaseException] = []
        """Requests that could not be decoded, and what handlers raised."""
        self._handlers: dict[ApiKeys, Handler] = {
            ApiKeys.API_VERSIONS: self._answer_api_versions,
            ApiKeys.METADATA: self._answer_metadata,
        }
        self._once: dict[ApiKeys, deque[Handler]] = {}

    def on(self, api: ApiKeys, handler: Handler) -> None:
        """Answer every request for `api` by `handler`."""
        self._handlers[api] = handler

    def once(self, api: ApiKeys, handler: Handler) -> None:
        """Answer one request for `api` by `handler`; several of them are used in order, before `on`'s."""
        self._once.setdefault(api, deque()).append(handler)

    def answer(self, api: ApiKeys, *replies: Any) -> None:
        """Give these replies, one for each of the next requests for `api`."""
        for reply in replies:
            self.once(api, _Always(reply))

    def received(self, api: ApiKeys) -> list[Any]:
        """The messages that came for `api`."""
        return [message for header, message in list(self.requests) if header.api_key == api]

    def metadata(self) -> MetadataResponse:
        """The default metadata answer, to be changed by a handler."""
        return MetadataResponse(
            brokers=[
                MetadataResponseBroker(node_id=b.node_id, host="127.0.0.1", port=b.port) for b in self.brokers
            ],
            cluster_id="scripted",
            controller_id=self.brokers[0].node_id,
            topics=[
                MetadataResponseTopic(
                    name=name,
                    partitions=[
                        MetadataResponsePartition(
                            partition_index=index,
                            leader_id=self.brokers[index % len(self.brokers)].node_id,
                            leader_epoch=1,
                            replica_nodes=[self.node_id],
                            isr_nodes=[self.node_id],
                        )
                        for index in range(count)
                    ],
                )
                for name, count in self.topics.items()
            ],
        )

    def serve(self, sock: socket.socket) -> None:
        while True:
            frame = memoryview(read_frame(sock))
            reply = self._reply_to(frame)
            if reply is Reply.CLOSE:
                return
            if reply is Reply.RESET:
                reset(sock)
                return
            if reply is not Reply.NOTHING:
                sock.sendall(reply)

    def _reply_to(self, frame: memoryview) -> Any:
        try:
            header, message = parse_request(frame)
        except UnsupportedVersionError as error:
            header = error.header  # type: ignore[attr-defined]
            if header.api_key is not ApiKeys.API_VERSIONS:
                self.errors.append(error)
                return Reply.CLOSE
            message = None
        except KafkaError as error:
            self.errors.append(error)
            return Reply.CLOSE
        self.requests.append((header, message))
        api = header.api_key
        assert isinstance(api, ApiKeys)
        waiting = self._once.get(api)
        handler = waiting.popleft() if waiting else self._handlers.get(api)
        if handler is None:
            return Reply.NOTHING
        try:
            reply = handler(header, message)
        except Exception as error:
            self.errors.append(error)
            return Reply.CLOSE
        if isinstance(reply, Reply | bytes):
            return reply
        version = header.api_version
        if api is ApiKeys.API_VERSIONS and reply.error_code == Errors.UNSUPPORTED_VERSION:
            version = 0
        return b"".join(response_buffers(reply, api, version, header.correlation_id))

    def _answer_api_versions(self, header: RequestHeader, message: Any) -> ApiVersionsResponse:
        low, high = self.versions[ApiKeys.API_VERSIONS]
        supported = low <= header.api_version <= high
        return ApiVersionsResponse(
            error_code=0 if supported else Errors.UNSUPPORTED_VERSION,
            api_keys=[
                ApiVersion(api_key=api, min_version=bounds[0], max_version=bounds[1])
                for api, bounds in self.versions.items()
                if supported or api is ApiKeys.API_VERSIONS
            ],
        )

    def _answer_metadata(self, header: RequestHeader, message: Any) -> MetadataResponse:
        response = self.metadata()
        if message.topics is not None and not (header.api_version == 0 and not message.topics):
            wanted = {topic.name for topic in message.topics}
            known = {topic.name for topic in response.topics}
            response.topics = [topic for topic in response.topics if topic.name in wanted]
            response.topics += [
                MetadataResponseTopic(name=name, error_code=Errors.UNKNOWN_TOPIC_OR_PARTITION)
                for name in sorted(wanted - known)
            ]
        return response


def _broker_apis() -> list[ApiKeys]:
    return [api for api in ApiKeys if api.on_broker_listener]


def cluster_of(count: int, topics: Mapping[str, int] | None = None) -> list[ScriptedBroker]:
    """Brokers that name each other in their metadata; the caller starts and stops them."""
    brokers = [ScriptedBroker(node_id=i, topics=topics) for i in range(count)]
    for broker in brokers:
        broker.brokers = brokers
    return brokers


class Fault(enum.Enum):
    """What a rule does to a frame, and to its connection."""

    DELAY = enum.auto()
    DRIP = enum.auto()
    CUT = enum.auto()
    RESET = enum.auto()
    BLACKHOLE = enum.auto()
    SWALLOW = enum.auto()
    CORRUPT = enum.auto()
    DUPLICATE = enum.auto()


@attrs.define(eq=False)
class Rule:
    """Spoils frames of `api` (None: any) in one direction, `times` times (negative: always).

    `amount` is milliseconds (DELAY), bytes a second (DRIP), how many bytes pass, length included (CUT, RESET), or the
    position of the byte to turn round (CORRUPT). `hits` counts.
    """

    fault: Fault
    api: ApiKeys | None
    on_response: bool
    amount: int
    times: int
    hits: int = 0


class FaultProxy(_Listener):
    """A TCP proxy for one broker that reads frames and spoils those its rules name.

    Faults of a request are those on the way to the broker; faults of a response are those on the way back, after the
    broker has done what was asked.
    """

    def __init__(self, target: tuple[str, int], *, port: int = 0) -> None:
        super().__init__("fault-proxy", port)
        self.target = target
        self._rules: list[Rule] = []
        self._rules_lock = threading.Lock()

    def delay(self, api: ApiKeys | None, ms: int, *, times: int = 1, on_response: bool = True) -> Rule:
        """Hold frames back for `ms`."""
        return self._add(Fault.DELAY, api, on_response, ms, times)

    def drip(
        self, api: ApiKeys | None, bytes_per_s: int, *, times: int = 1, on_response: bool = True
    ) -> Rule:
        """Pass frames byte by byte."""
        return self._add(Fault.DRIP, api, on_response, bytes_per_s, times)

    def cut(self, api: ApiKeys | None, after: int, *, times: int = 1, on_response: bool = True) -> Rule:
        """Pass `after` bytes of a frame, then close with FIN."""
        return self._add(Fault.CUT, api, on_response, after, times)

    def reset(self, api: ApiKeys | None, after: int, *, times: int = 1, on_response: bool = True) -> Rule:
        """Pass `after` bytes of a frame, then close with RST."""
        return self._add(Fault.RESET, api, on_response, after, times)

    def blackhole(self, api: ApiKeys | None, *, times: int = 1, on_response: bool = True) -> Rule:
        """From such a frame on the connection stays open and nothing passes, either way."""
        return self._add(Fault.BLACKHOLE, api, on_response, 0, times)

    def swallow(self, api: ApiKeys | None, *, times: int = 1, on_response: bool = True) -> Rule:
        """Drop such frames, and nothing else."""
        return self._add(Fault.SWALLOW, api, on_response, 0, times)

    def corrupt(self, api: ApiKeys | None, at: int, *, times: int = 1, on_response: bool = True) -> Rule:
        """Turn round the bits of byte `at` (0 is the first after the length) of frames that have it."""
        return self._add(Fault.CORRUPT, api, on_response, at, times)

    def duplicate(self, api: ApiKeys | None, *, times: int = 1, on_response: bool = True) -> Rule:
        """Pass such frames twice."""
        return self._add(Fault.DUPLICATE, api, on_response, 0, times)

    def clear(self) -> None:
        """Drop all rules."""
        with self._rules_lock:
            self._rules.clear()

    def serve(self, sock: socket.socket) -> None:
        upstream = socket.create_connection(self.target, timeout=_JOIN_S)
        upstream.settimeout(None)
        upstream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.track(upstream)
        link = _Link(self, sock, upstream)
        try:
            self.spawn(link.pump_responses)
            link.pump_requests()
        finally:
            self.untrack(upstream)
            hang_up(upstream)

    def rule_for(self, api: int, on_response: bool) -> Rule | None:
        """The first rule with hits left for such a frame; counts the hit."""
        with self._rules_lock:
            for rule in self._rules:
                if rule.on_response == on_response and rule.api in {None, api} and rule.hits != rule.times:
                    rule.hits += 1
                    return rule
        return None

    def _add(self, fault: Fault, api: ApiKeys | None, on_response: bool, amount: int, times: int) -> Rule:
        rule = Rule(fault, api, on_response, amount, times)
        with self._rules_lock:
            self._rules.append(rule)
        return rule


class _Link:
    """One proxied connection: two threads, one for each direction."""

    def __init__(self, proxy: FaultProxy, client: socket.socket, broker: socket.socket) -> None:
        self._proxy = proxy
        self._client = client
        self._broker = broker
        self._apis: dict[int, int] = {}  # correlation id -> API
        self._blackholed = threading.Event()

    def pump_requests(self) -> None:
        while True:
            frame = read_frame(self._client)
            api, _, correlation_id = struct.unpack_from(">hhi", frame)
            self._apis[correlation_id] = api
            if not self._pass(frame, self._broker, self._proxy.rule_for(api, on_response=False)):
                return

    def pump_responses(self) -> None:
        try:
            while True:
                frame = read_frame(self._broker)
                api = self._apis.pop(int.from_bytes(frame[:4], "big", signed=True), -1)
                if not self._pass(frame, self._client, self._proxy.rule_for(api, on_response=True)):
                    return
        except (OSError, EOFError):
            pass
        finally:
            hang_up(self._client)

    def _pass(self, frame: bytes, to: socket.socket, rule: Rule | None) -> bool:
        """Forward a frame; False if the connection is over."""
        whole = len(frame).to_bytes(4, "big") + frame
        if self._blackholed.is_set():
            return True
        if rule is None:
            to.sendall(whole)
            return True
        match rule.fault:
            case Fault.DELAY:
                self._proxy.stopping.wait(rule.amount / 1000)
                to.sendall(whole)
            case Fault.DRIP:
                for byte in whole:
                    to.sendall(bytes([byte]))
                    if self._proxy.stopping.wait(1 / rule.amount):
                        return False
            case Fault.CUT | Fault.RESET:
                to.sendall(whole[: rule.amount])
                self._end(with_reset=rule.fault is Fault.RESET)
                return False
            case Fault.BLACKHOLE:
                self._blackholed.set()
            case Fault.CORRUPT:
                spoilt = bytearray(whole)
                if 4 + rule.amount < len(spoilt):
                    spoilt[4 + rule.amount] ^= 0xFF
                else:
                    rule.hits -= 1  # it is not long enough; spoil a later one
                to.sendall(spoilt)
            case Fault.DUPLICATE:
                to.sendall(whole + whole)
            case Fault.SWALLOW:
                pass
        return True

    def _end(self, with_reset: bool) -> None:
        for sock in (self._client, self._broker):
            (reset if with_reset else hang_up)(sock)
