"""Processor: a thread with a Selector over its share of a listener's connections."""

from __future__ import annotations

import itertools
import signal
import socket
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from kclient.broker.metrics.connection_metrics import ConnectionMetrics
from kclient.broker.metrics.idle_time import IdleTime
from kclient.broker.metrics.request_metrics import RequestMetrics
from kclient.broker.metrics.request_record import RequestRecord
from kclient.broker.network.connection_quotas import ConnectionQuotas
from kclient.broker.network.request_channel import Request, RequestChannel, Response, ResponseAction
from kclient.broker.network.request_memory import ConnectionMemory, RequestMemory
from kclient.broker.network.throttled_connections import ThrottledConnections
from kclient.broker.security.listener_config import ListenerConfig
from kclient.broker.security.listener_security import ListenerSecurity
from kclient.broker.security.principal import KafkaPrincipal
from kclient.broker.security.sasl_authenticator import SaslServerAuthenticator
from kclient.errors import AuthenticationError, InvalidReceiveError, KafkaError
from kclient.network.selector import Selector
from kclient.network.send import send_of
from kclient.protocol.api_keys import ApiKeys
from kclient.utils.log_context import LogContext, RepeatedWarning
from kclient.utils.threads import KafkaThread
from kclient.utils.time import Time

if TYPE_CHECKING:
    from kclient.broker.config import BrokerConfig

_POLL_MS = 300
_QUEUE_WAIT_S = 0.3
_PAUSE_S = 0.1
_STALLED_MS = 30_000
_UNKNOWN = -1  # in place of the bytes of a request: who is there is not known yet
_SASL_HANDSHAKE = int(ApiKeys.SASL_HANDSHAKE).to_bytes(2, "big")
_LOOK_FOR_STALLED_MS = 1000
_DRAIN_MS = 1000  # at shutdown: how long responses that are ready may take to reach the sockets


class Processor:
    """Reads requests from its connections, queues them, and writes the responses.

    A connection is muted from the moment its request is complete until the response is written. So a client's
    requests are handled in the order they were sent whatever the number of handlers, and a client that does
    not read its responses cannot make the broker collect any. One whose request finds no memory is muted until there
    is some. One that has exceeded a quota is answered at once and stays muted for as long as the answer says. A request
    that does not grow for half a minute, for whatever reason, ends its connection: it holds memory
    that others wait for. So does a client that takes as long to say who it is.

    A client that is refused hears of it after connection.failed.authentication.delay.ms, and its connection ends. One
    that has to prove again who it is (KIP-368), and does not, ends its connection with its next request.

    `accept`, `reply`, `measure_time`, `use_certificates`, `retire` and `shutdown` may be called from any thread;
    everything else happens on the thread.
    """

    def __init__(
        self,
        processor_id: int,
        listener: int,
        security: ListenerSecurity,
        config: BrokerConfig,
        request_channel: RequestChannel,
        request_memory: RequestMemory,
        quotas: ConnectionQuotas,
        time: Time,
        log_context: LogContext,
    ) -> None:
        self.id = processor_id
        self.listener_name = security.listener.name
        self.metrics = RequestMetrics()
        self.connections = ConnectionMetrics()
        self.idle = IdleTime(1, time)
        self._listener = listener
        self._refusal_delay_ms = security.config.connection_failed_authentication_delay_ms
        self._requests = request_channel
        self._memory = request_memory
        self._quotas = quotas
        self._time = time
        self._log = log_context.logger(__name__)
        self._warnings = RepeatedWarning(self._log)
        self._builder = security.builder(self._on_refused)
        self._selector = Selector(
            max_receive_bytes=config.socket_request_max_bytes,
            connections_max_idle_ms=config.connections_max_idle_ms,
            channel_builder=self._builder,
            time=time,
            log_context=log_context,
        )
        self._accepted: deque[tuple[socket.socket, str]] = deque()
        self._responses: deque[Response] = deque()
        self._whole: deque[Request] = deque()  # requests that are queued at the end of the round
        self._with_room: deque[str] = deque()  # connections that waited for memory, and need not any more
        self._hosts: dict[str, str] = {}
        self._asked: dict[str, RequestRecord] = {}  # of requests that are queued, handled or being answered
        self._principals: dict[str, KafkaPrincipal] = {}  # of those that have said who they are
        self._refused: deque[tuple[int, str]] = deque()  # when they are to hear of it
        self._held: dict[str, ConnectionMemory] = {}
        self._growth: dict[str, tuple[int, int]] = {}  # how much of a request was there, since when
        self._throttled = ThrottledConnections(time)
        self._next_look_ms = 0
        self._polled_ns = 0
        self._stop = threading.Event()
        self._on_retired: Callable[[Processor], None] | None = None
        self._ids = itertools.count()
        self._thread = KafkaThread(f"network-processor-{security.listener.name}-{processor_id}", self._run)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def accept(self, sock: socket.socket, host: str) -> None:
        """Take over a connection whose place in the quotas is taken."""
        self._accepted.append((sock, host))
        self._selector.wakeup()

    def reply(self, response: Response) -> None:
        """A request was handled: write `response` to its connection."""
        response.answered_ns = self._time.monotonic_ns()
        self._responses.append(response)
        self._selector.wakeup()

    def measure_time(self, measured: bool) -> None:
        """Measure what the thread does for each connection, to be held against quotas; or do so no longer."""
        if measured != (self._selector.busy_ns is not None):
            self._selector.busy_ns = {} if measured else None

    def use_certificates(self, config: ListenerConfig) -> None:
        """Have the keys and certificates of these settings for new connections."""
        self._builder.use(config)

    @property
    def response_queue_size(self) -> int:
        """Answers that are not being written yet: one for each connection at most."""
        return len(self._responses)

    def begin_shutdown(self) -> None:
        """Stop reading; responses that handlers still give are written."""
        self._stop.set()
        self._selector.wakeup()

    def retire(self, on_retired: Callable[[Processor], None]) -> None:
        """Have what is being handled answered, for a second at most, close every connection and end the thread, whose
        last act is to call `on_retired`. Nobody may be accepted any more.
        """
        self._on_retired = on_retired
        self.begin_shutdown()

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
            if self._on_retired is not None:
                self._on_retired(self)

    def _step(self, timeout_ms: int) -> None:
        idle = self.idle.threads[0]
        began_ns = idle.waiting_since_ns = self._time.monotonic_ns()
        self._selector.poll(self._throttled.timeout_ms(self._until_refusal_ms(timeout_ms)))
        self._polled_ns = self._time.monotonic_ns()
        idle.idle_ns += self._polled_ns - began_ns
        idle.waiting_since_ns = 0
        for connection_id in self._selector.connected:
            self._is_known(connection_id)
        # A copy: one whose session is over is taken out.
        for connection_id, receive in list(self._selector.completed_receives.items()):
            self._selector.mute(connection_id)
            self._held[connection_id].request_is_whole()
            if self._may_ask(connection_id, receive.payload):
                self._whole.append(self._request(connection_id, receive.payload))
        self._go_on_with_answered(self._polled_ns)
        for connection_id, error in self._selector.disconnected.items():
            self._forget(connection_id, error)
        self._end_refused()
        self._end_stalled()
        if self._quotas.exceeded(self._listener):
            self._end_least_recently_used()
        self._take_connections()
        if self._responses:
            self._take_responses()
            # Nearly every answer fits into its socket at once, so that the next poll can read the next request.
            self._selector.write()
            self._go_on_with_answered(self._time.monotonic_ns())
        while self._with_room:
            self._selector.unmute(self._with_room.popleft())
        for connection_id in self._throttled.released():
            self._selector.unmute(connection_id)
        # Last, as the poll lets go of the interpreter lock: a handler that is woken sooner only waits for that.
        while self._whole:
            self._queue(self._whole.popleft())

    def _go_on_with_answered(self, now_ns: int) -> None:
        """Read the next request of the connections whose answers are written."""
        for connection_id, send in self._selector.completed_sends.items():
            self._done(connection_id, now_ns, send.size)
            self._next_request(connection_id)

    def _is_known(self, connection_id: str) -> None:
        """The client has said who it is, perhaps once more: its requests may come."""
        channel = self._selector.channel(connection_id)
        if channel is None:
            return
        self._principals[connection_id] = self._builder.principal(channel)
        if channel.muted:  # since the request with which it began that again
            self._held[connection_id].release()
            self._next_request(connection_id)

    def _may_ask(self, connection_id: str, frame: memoryview) -> bool:
        """True if a request is to be handled; else it was one to prove again who the client is, or comes too late."""
        authenticator = self._authenticator(connection_id)
        if authenticator is None:
            return True
        if frame[:2] == _SASL_HANDSHAKE:
            authenticator.begin_again(frame)
            self._selector.authenticate_again(connection_id)
            return False
        if authenticator.has_expired:
            host = self._hosts[connection_id]
            self._warn(
                f"expired {host}", f"Closed a connection from {host}: it did not authenticate again in time"
            )
            self._end(connection_id)
            return False
        return True

    def _on_refused(self, connection_id: str) -> None:
        self.connections.failed_authentications += 1
        self._refused.append((self._time.monotonic_ms() + self._refusal_delay_ms, connection_id))

    def _until_refusal_ms(self, timeout_ms: int) -> int:
        if not self._refused:
            return timeout_ms
        return max(min(timeout_ms, self._refused[0][0] - self._time.monotonic_ms()), 0)

    def _end_refused(self) -> None:
        """Tell those who were refused a while ago, and end their connections."""
        while self._refused and self._refused[0][0] <= self._time.monotonic_ms():
            _, connection_id = self._refused.popleft()
            authenticator = self._authenticator(connection_id)
            if authenticator is not None:
                host = self._hosts[connection_id]
                self._warn(f"refused {host}", f"Refused a client from {host}: {authenticator.refusal}")
                authenticator.send_refusal()
                self._end(connection_id)

    def _authenticator(self, connection_id: str) -> SaslServerAuthenticator | None:
        """Return what found out by SASL who the client is; None without SASL, or if the connection is gone."""
        channel = self._selector.channel(connection_id)
        authenticator = None if channel is None else channel.authenticator
        return authenticator if isinstance(authenticator, SaslServerAuthenticator) else None

    def _end(self, connection_id: str) -> None:
        self._selector.close_channel(connection_id)
        self._forget(connection_id, None)

    def _warn(self, cause: str, message: str) -> None:
        self._warnings.warn(cause, message, self._time.monotonic_ms())

    def _take_connections(self) -> None:
        while self._accepted:
            sock, host = self._accepted.popleft()
            connection_id = f"{self.id}-{next(self._ids)}"
            memory = self._memory.connection(partial(self._room_for, connection_id))
            try:
                channel = self._selector.register(connection_id, sock, memory)
            except (OSError, KafkaError) as error:
                self._log.debug("A connection from %s could not be set up: %s", host, error)
                self._quotas.release(host, self._listener)
                continue
            self._hosts[connection_id] = host
            self.connections.created += 1
            self._held[connection_id] = memory
            if channel.ready:
                self._principals[connection_id] = self._builder.principal(channel)

    def _room_for(self, connection_id: str) -> None:
        """There is memory for the connection's request now. For any thread."""
        self._with_room.append(connection_id)
        self._selector.wakeup()

    def _take_responses(self) -> None:
        now_ns = self._time.monotonic_ns()
        while self._responses:
            response = self._responses.popleft()
            connection_id = response.connection_id
            record = self._asked.get(connection_id)
            if record is not None:
                record.answered_ns, record.dequeued_ns = response.answered_ns, now_ns
            if connection_id not in self._hosts:
                self._done(connection_id, now_ns, 0)
                continue  # it went away while its request was handled
            if response.throttle_ms:
                self._throttled.hold(connection_id, response.throttle_ms)
            if response.action is ResponseAction.SEND:
                # Not when the answer was written: others would wait for a client that does not read it.
                self._held[connection_id].release()
                try:
                    self._selector.send(connection_id, send_of(response.buffers))
                except (
                    KafkaError
                ) as error:  # answered twice, or gone: either way there is no going on with it
                    self._log.warning(
                        "Closing connection %s, which cannot be answered: %s", connection_id, error
                    )
                    self._end(connection_id)
            elif response.action is ResponseAction.NOTHING:
                self._done(connection_id, now_ns, 0)
                self._held[connection_id].release()
                self._next_request(connection_id)
            else:
                self._done(connection_id, now_ns, 0)
                self._end(connection_id)

    def _end_stalled(self) -> None:
        """Close the connections whose request, or proof of who they are, has not got on for too long."""
        now_ms = self._time.monotonic_ms()
        if now_ms < self._next_look_ms:
            return
        if now_ms - self._next_look_ms > _STALLED_MS // 3:
            self._growth.clear()  # it was this process that stood still, not its clients
        self._next_look_ms = now_ms + _LOOK_FOR_STALLED_MS
        if self._memory.exhausted:
            self._warn(
                "memory",
                "queued.max.request.bytes is reached: requests wait in their connections until others are answered",
            )
        seen, self._growth = self._growth, {}
        for channel in self._selector.channels():
            arrived = channel.arrived if channel.ready else _UNKNOWN
            if not arrived:
                continue
            before, since_ms = seen.get(channel.id, (0, now_ms))
            if arrived != before:
                since_ms = now_ms
            elif now_ms - since_ms >= _STALLED_MS:
                if arrived == _UNKNOWN:
                    what = f"its {channel.step} handshake did not end"
                else:
                    what = f"no more than {arrived} bytes of a request came"
                host = self._hosts[channel.id]
                self._warn(
                    f"stalled {host}", f"Closed a connection from {host}: {what} for {_STALLED_MS // 1000} s"
                )
                self._end(channel.id)
                continue
            self._growth[channel.id] = arrived, since_ms

    def _end_least_recently_used(self) -> None:
        """Make room for a connection of the brokers' listener, or for a limit that is lower than it was."""
        connection_id = self._selector.least_recently_used()
        if connection_id is not None:
            host = self._hosts[connection_id]
            self._warn("exceeded", f"Closed a connection from {host}: max.connections is exceeded")
            self._end(connection_id)

    def _request(self, connection_id: str, frame: memoryview) -> Request:
        host, principal = self._hosts[connection_id], self._principals[connection_id]
        record = self._asked[connection_id] = RequestRecord(self._polled_ns, len(frame))
        return Request(connection_id, host, self._listener, principal, frame, self.reply, record)

    def _queue(self, request: Request) -> None:
        # Blocking here is what bounds the queue: while handlers are behind, nobody's next request is read.
        # They never wait for this thread, so a place comes.
        while not self._requests.put(request, _QUEUE_WAIT_S):
            if self._stop.is_set():
                return

    def _next_request(self, connection_id: str) -> None:
        if self._throttled.may_go_on(connection_id) and not self._stop.is_set():
            self._selector.unmute(connection_id)

    def _done(self, connection_id: str, now_ns: int, size: int) -> None:
        """The answer to the connection's request, of `size` bytes, has left, or there is none."""
        record = self._asked.pop(connection_id, None)
        if record is not None:
            self.metrics.record(record, now_ns, size)
            if record.charge_network_ns is not None:
                record.charge_network_ns(self._take_busy_ns(connection_id))

    def _take_busy_ns(self, connection_id: str) -> int:
        busy_ns = self._selector.busy_ns
        return 0 if busy_ns is None else busy_ns.pop(connection_id, 0)

    def _forget(self, connection_id: str, error: KafkaError | None) -> None:
        host = self._hosts.pop(connection_id, None)
        if host is None:
            return
        self._principals.pop(connection_id, None)
        asked = self._asked.get(connection_id)
        if asked is not None and asked.dequeued_ns:  # else the answer is still to come
            self._done(connection_id, self._polled_ns, 0)
        self.connections.closed += 1
        self._take_busy_ns(connection_id)
        self._throttled.forget(connection_id)
        self._held.pop(connection_id).release()
        self._quotas.release(host, self._listener)
        if isinstance(error, InvalidReceiveError):
            self._warn(f"receive {host}", f"Closed a connection from {host}: {error}")
        elif isinstance(error, AuthenticationError):
            self.connections.failed_authentications += 1
            self._warn(f"authentication {host}", f"A client from {host} could not be authenticated: {error}")

    def _drain(self) -> None:
        timer = self._time.timer(_DRAIN_MS)
        self._take_responses()
        for channel in self._selector.channels():
            self._selector.mute(channel.id)
        while not timer.is_expired() and self._has_to_write():
            self._selector.poll(timer.remaining_ms())
            self._go_on_with_answered(self._time.monotonic_ns())
            for connection_id in list(self._selector.disconnected):
                self._forget(connection_id, None)
            self._take_responses()

    def _has_to_write(self) -> bool:
        """True if there is an answer to be written, or still to come: at a shutdown the handlers have ended before."""
        if self._on_retired is not None and self._asked:
            return True
        return any(channel.has_send for channel in self._selector.channels())

    def _close(self) -> None:
        self._selector.close()
        for connection_id in list(self._hosts):
            self._forget(connection_id, None)
        while self._accepted:
            sock, host = self._accepted.popleft()
            sock.close()
            self._quotas.release(host, self._listener)
