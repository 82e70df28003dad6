"""Processor: a thread with a Selector over its share of the connections."""

from __future__ import annotations

import itertools
import signal
import socket
import threading
from collections import deque
from functools import partial
from typing import TYPE_CHECKING

from kclient.broker.network.connection_quotas import ConnectionQuotas
from kclient.broker.network.request_channel import Request, RequestChannel, Response, ResponseAction
from kclient.broker.network.request_memory import ConnectionMemory, RequestMemory
from kclient.errors import InvalidReceiveError, KafkaError
from kclient.network.channel_builder import PlaintextChannelBuilder
from kclient.network.selector import Selector
from kclient.network.send import send_of
from kclient.utils.log_context import LogContext, RepeatedWarning
from kclient.utils.threads import KafkaThread
from kclient.utils.time import Time

if TYPE_CHECKING:
    from kclient.broker.config import BrokerConfig

_POLL_MS = 300
_QUEUE_WAIT_S = 0.3
_PAUSE_S = 0.1
_STALLED_MS = 30_000
_LOOK_FOR_STALLED_MS = 1000
_DRAIN_MS = 1000  # at shutdown: how long responses that are ready may take to reach the sockets


class Processor:
    """Reads requests from its connections, queues them, and writes the responses.

    A connection is muted from the moment its request is complete until the response is written. So a client's
    requests are handled in the order they were sent whatever the number of handlers, and a client that does
    not read its responses cannot make the broker collect any. One whose request finds no memory is muted until there
    is some. A request that does not grow for half a minute, for whatever reason, ends its connection: it holds memory
    that others wait for.

    `accept`, `reply` and `shutdown` may be called from any thread; everything else happens on the thread.
    """

    def __init__(
        self,
        processor_id: int,
        config: BrokerConfig,
        request_channel: RequestChannel,
        request_memory: RequestMemory,
        quotas: ConnectionQuotas,
        time: Time,
        log_context: LogContext,
    ) -> None:
        self.id = processor_id
        self._requests = request_channel
        self._memory = request_memory
        self._quotas = quotas
        self._time = time
        self._log = log_context.logger(__name__)
        self._warnings = RepeatedWarning(self._log)
        self._selector = Selector(
            max_receive_bytes=config.socket_request_max_bytes,
            connections_max_idle_ms=config.connections_max_idle_ms,
            channel_builder=PlaintextChannelBuilder(),
            time=time,
            log_context=log_context,
        )
        self._accepted: deque[tuple[socket.socket, str, int]] = deque()
        self._responses: deque[Response] = deque()
        self._with_room: deque[str] = deque()  # connections that waited for memory, and need not any more
        self._hosts: dict[str, str] = {}
        self._listeners: dict[str, int] = {}
        self._held: dict[str, ConnectionMemory] = {}
        self._growth: dict[str, tuple[int, int]] = {}  # how much of a request was there, since when
        self._next_look_ms = 0
        self._stop = threading.Event()
        self._ids = itertools.count()
        self._thread = KafkaThread(f"network-processor-{processor_id}", self._run)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def accept(self, sock: socket.socket, host: str, listener: int) -> None:
        """Take over a connection whose place in the quotas is taken."""
        self._accepted.append((sock, host, listener))
        self._selector.wakeup()

    def reply(self, response: Response) -> None:
        """A request was handled: write `response` to its connection."""
        self._responses.append(response)
        self._selector.wakeup()

    def begin_shutdown(self) -> None:
        """Stop reading; responses that handlers still give are written."""
        self._stop.set()
        self._selector.wakeup()

    def shutdown(self) -> None:
        """Write what is ready, close every connection and end the thread. Idempotent."""
        self.begin_shutdown()
        if self._thread.is_alive():
            self._thread.join()
        else:
            self._close()  # never started, or dead

    def _run(self) -> None:
        # A host program may let it end the process, and `sendfile` cannot be told to do without.
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGPIPE})
        try:
            while not self._stop.is_set():
                try:
                    self._step(_POLL_MS)
                except Exception:
                    # A fault of ours, met while serving one connection, must not end the service of all others. The
                    # pause keeps a fault that stays from taking up the processor and the log.
                    self._log.exception("Processor %d met an unexpected error and goes on", self.id)
                    self._stop.wait(_PAUSE_S)
            self._drain()
        finally:
            self._close()

    def _step(self, timeout_ms: int) -> None:
        self._take_connections()
        self._take_responses()
        while self._with_room:
            self._selector.unmute(self._with_room.popleft())
        self._selector.poll(timeout_ms)
        for connection_id, receive in self._selector.completed_receives.items():
            self._selector.mute(connection_id)
            self._held[connection_id].request_is_whole()
            self._queue(connection_id, receive.payload)
        for connection_id in self._selector.completed_sends:
            self._next_request(connection_id)
        for connection_id, error in self._selector.disconnected.items():
            self._forget(connection_id, error)
        self._end_stalled()

    def _take_connections(self) -> None:
        while self._accepted:
            sock, host, listener = self._accepted.popleft()
            connection_id = f"{self.id}-{next(self._ids)}"
            memory = self._memory.connection(partial(self._room_for, connection_id))
            try:
                self._selector.register(connection_id, sock, memory)
            except (OSError, KafkaError) as error:
                self._log.debug("A connection from %s could not be set up: %s", host, error)
                self._quotas.release(host)
                continue
            self._hosts[connection_id] = host
            self._listeners[connection_id] = listener
            self._held[connection_id] = memory

    def _room_for(self, connection_id: str) -> None:
        """There is memory for the connection's request now. For any thread."""
        self._with_room.append(connection_id)
        self._selector.wakeup()

    def _take_responses(self) -> None:
        while self._responses:
            response = self._responses.popleft()
            connection_id = response.connection_id
            if connection_id not in self._hosts:
                continue  # it went away while its request was handled
            if response.action is ResponseAction.SEND:
                try:
                    self._selector.send(connection_id, send_of(response.buffers))
                except (
                    KafkaError
                ) as error:  # answered twice, or gone: either way there is no going on with it
                    self._log.warning(
                        "Closing connection %s, which cannot be answered: %s", connection_id, error
                    )
                    self._selector.close_channel(connection_id)
                    self._forget(connection_id, None)
            elif response.action is ResponseAction.NOTHING:
                self._next_request(connection_id)
            else:
                self._selector.close_channel(connection_id)
                self._forget(connection_id, None)

    def _end_stalled(self) -> None:
        """Close the connections whose request has not grown for too long."""
        now_ms = self._time.monotonic_ms()
        if now_ms < self._next_look_ms:
            return
        if now_ms - self._next_look_ms > _STALLED_MS // 3:
            self._growth.clear()  # it was this process that stood still, not its clients
        self._next_look_ms = now_ms + _LOOK_FOR_STALLED_MS
        if self._memory.exhausted:
            self._warnings.warn(
                "memory",
                "queued.max.request.bytes is reached: requests wait in their connections until others are answered",
                now_ms,
            )
        seen, self._growth = self._growth, {}
        for channel in self._selector.channels():
            arrived = channel.arrived
            if not arrived:
                continue
            before, since_ms = seen.get(channel.id, (0, now_ms))
            if arrived != before:
                since_ms = now_ms
            elif now_ms - since_ms >= _STALLED_MS:
                host = self._hosts[channel.id]
                self._warnings.warn(
                    "stalled",
                    f"Closed a connection from {host}: no more than {arrived} bytes of a request came "
                    f"for {_STALLED_MS // 1000} s",
                    now_ms,
                )
                self._selector.close_channel(channel.id)
                self._forget(channel.id, None)
                continue
            self._growth[channel.id] = arrived, since_ms

    def _queue(self, connection_id: str, frame: memoryview) -> None:
        request = Request(
            connection_id, self._hosts[connection_id], self._listeners[connection_id], frame, self.reply
        )
        # Blocking here is what bounds the queue: while handlers are behind, nobody's next request is read.
        # They never wait for this thread, so a place comes.
        while not self._requests.put(request, _QUEUE_WAIT_S):
            if self._stop.is_set():
                return

    def _next_request(self, connection_id: str) -> None:
        self._held[connection_id].release()
        self._selector.unmute(connection_id)

    def _forget(self, connection_id: str, error: KafkaError | None) -> None:
        host = self._hosts.pop(connection_id, None)
        if host is None:
            return
        del self._listeners[connection_id]
        self._held.pop(connection_id).release()
        self._quotas.release(host)
        if isinstance(error, InvalidReceiveError):
            self._warnings.warn(
                "receive", f"Closed a connection from {host}: {error}", self._time.monotonic_ms()
            )

    def _drain(self) -> None:
        timer = self._time.timer(_DRAIN_MS)
        self._take_responses()
        for channel in self._selector.channels():
            self._selector.mute(channel.id)
        while not timer.is_expired() and any(channel.has_send for channel in self._selector.channels()):
            self._selector.poll(timer.remaining_ms())
            for connection_id in list(self._selector.disconnected):
                self._forget(connection_id, None)

    def _close(self) -> None:
        self._selector.close()
        for connection_id in list(self._hosts):
            self._forget(connection_id, None)
        while self._accepted:
            sock, host, _ = self._accepted.popleft()
            sock.close()
            self._quotas.release(host)
