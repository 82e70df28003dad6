"""Servers whose handlers the test plays, and sockets that talk to them in frames."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable

from kclient.broker.apis.api_versions import answer_versions
from kclient.broker.config import BrokerConfig
from kclient.broker.network.listener import Listener
from kclient.broker.network.request_channel import Request, Response, ResponseAction
from kclient.broker.network.socket_server import SocketServer
from kclient.broker.quota.connection_rates import ConnectionRates
from kclient.broker.security.listener_security import ListenerSecurity
from kclient.broker.security.scram import ScramCredential
from kclient.utils.log_context import LogContext
from kclient.utils.time import SYSTEM_TIME, Time

MAX_REQUEST = 1 << 20
CREDENTIALS = {
    (mechanism, "alice"): ScramCredential.of_password(mechanism, "secret")
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512")
}


def frame(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def echo(request: Request) -> Response:
    return Response(request.connection_id, ResponseAction.SEND, [frame(bytes(request.frame))])


def security_of(config: BrokerConfig, listener: Listener, time: Time = SYSTEM_TIME) -> ListenerSecurity:
    """The security of a listener of a server that has no broker behind it."""
    return ListenerSecurity(
        listener=listener,
        config=config.listener_config(listener),
        jaas=config.jaas(listener),
        scram_credentials=lambda mechanism, user: CREDENTIALS.get((mechanism, user)),
        answer_versions=answer_versions,
        time=time,
        log_context=LogContext(),
    )


class ServerHarness:
    """Servers, each with one handler thread that answers with what a function makes of the request."""

    def __init__(self) -> None:
        self._servers: list[tuple[SocketServer, threading.Thread]] = []
        self._sockets: list[socket.socket] = []
        self.settings: dict[str, object] = {}
        """Those of the server that was made last."""

    def serve(
        self,
        answer: Callable[[Request], Response | None] = echo,
        time: Time = SYSTEM_TIME,
        descriptors: int = 1000,
        **changes: object,
    ) -> SocketServer:
        settings = {
            "log.dirs": "/nowhere", "listeners": "PLAINTEXT://127.0.0.1:0", "queued.max.requests": 10,
            "queued.max.request.bytes": -1, "socket.request.max.bytes": MAX_REQUEST,
            **{name.replace("_", "."): value for name, value in changes.items()},
        }  # fmt: skip
        self.settings = settings
        config = BrokerConfig.parse(settings)
        security = [security_of(config, listener, time) for listener in config.listeners_with_security()]
        context = LogContext()
        rates = ConnectionRates.of(config, time, context)
        server = SocketServer(config, time, context, descriptors=descriptors, security=security, rates=rates)
        channel = server.request_channel

        def handle() -> None:
            while (request := channel.take()) is not None:
                response = answer(request)
                if response is not None:
                    request.reply(response)

        thread = threading.Thread(target=handle)
        thread.start()
        server.start()
        self._servers.append((server, thread))
        return server

    def connect(self, server: SocketServer, listener: int = 0) -> socket.socket:
        sock = socket.create_connection(("127.0.0.1", server.endpoints[listener].port), 10)
        self._sockets.append(sock)
        return sock

    def close(self) -> None:
        for sock in self._sockets:
            sock.close()
        for server, thread in self._servers:
            server.shutdown()
            server.request_channel.end_handlers(1)
            thread.join()


def read_frame(sock: socket.socket) -> bytes:
    data = b""
    while len(data) < 4 or len(data) < 4 + struct.unpack(">i", data[:4])[0]:
        part = sock.recv(65536)
        if not part:
            raise EOFError
        data += part
    return data[4:]


def ended(sock: socket.socket) -> bool:
    try:
        return sock.recv(1) == b""
    except ConnectionError:
        return True
