"""Acceptor: a thread that accepts the connections of a listener and deals them out to its processors."""

from __future__ import annotations

import errno
import itertools
import socket
import threading
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

from kclient._accel import EVENT_READ, DefaultSelector, in_forked_children
from kclient.broker.network.connection_quotas import ConnectionQuotas
from kclient.broker.network.delayed_closes import DelayedCloses
from kclient.broker.network.processor import Processor
from kclient.broker.quota.connection_rates import ConnectionRates
from kclient.utils.log_context import LogContext, RepeatedWarning
from kclient.utils.threads import KafkaThread
from kclient.utils.time import Time

if TYPE_CHECKING:
    from kclient.broker.config import BrokerConfig

_OUT_OF_RESOURCES = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_PAUSE_S = 0.1
_BURST = 64  # connections accepted before it is looked whether to stop

_acceptors: weakref.WeakSet[Acceptor] = weakref.WeakSet()


class Acceptor:
    """Owns a listening socket. `start` and `shutdown` may be called from any thread.

    While connections come faster than the broker or the listener may take them, nobody is accepted for a while, and
    while there are as many as there may be until one of them ends. One from an address that has exceeded its quota is
    accepted, and closed after as long.
    """

    def __init__(
        self,
        name: str,
        listener: socket.socket,
        config: BrokerConfig,
        processors: Sequence[Processor],
        quotas: ConnectionQuotas,
        rates: ConnectionRates,
        number: int,
        time: Time,
        log_context: LogContext,
    ) -> None:
        self._listener = listener
        self._processors = tuple(processors)
        self._processors_lock = threading.Lock()
        self._turns = itertools.count()
        self._quotas = quotas
        self._rates = rates
        self._number = number  # of the listener
        self._closing = DelayedCloses(time)
        self._send_buffer_bytes = config.socket_send_buffer_bytes
        self._time = time
        self._log = log_context.logger(__name__)
        self._warnings = RepeatedWarning(self._log)
        self._stop = threading.Event()
        self._wake_receiver, self._wake_sender = socket.socketpair()
        self._thread = KafkaThread(f"acceptor-{name}", self._run)
        listener.setblocking(False)
        if config.socket_receive_buffer_bytes >= 0:
            # Inherited by what is accepted, and only so early enough to decide the window scale.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, config.socket_receive_buffer_bytes)
        _acceptors.add(self)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def use_processors(self, processors: Sequence[Processor]) -> None:
        """Deal connections out to these from now on; when this returns the others get no more."""
        with self._processors_lock:
            self._processors = tuple(processors)

    def shutdown(self) -> None:
        """Accept no more and close the listening socket. Idempotent."""
        if not self._stop.is_set():
            self._stop.set()
            self._wake_sender.send(b"\0")
            self._quotas.wake()
        if self._thread.is_alive():
            self._thread.join()
        try:
            # A child that was forked a moment ago may not have closed its copy yet: this ends them all.
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # closed before, or a system that knows this for connections only
        self.close_sockets()

    def close_sockets(self) -> None:
        """Close the descriptors without a word to anyone: the end of `shutdown`, and all that a forked child does."""
        for sock in (self._listener, self._wake_receiver, self._wake_sender):
            sock.close()

    def _run(self) -> None:
        selector = DefaultSelector()
        try:
            selector.register(self._wake_receiver, EVENT_READ, None)
            selector.register(self._listener, EVENT_READ, self._listener)
            while not self._stop.is_set():
                for key, _ in selector.select(self._closing.timeout_s()):
                    if key.data is not None:
                        self._accept()
                self._closing.close_due()
        finally:
            self._closing.close()
            selector.close()

    def _accept(self) -> None:
        for _ in range(_BURST):
            if self._stop.is_set():
                return
            try:
                sock, address = self._listener.accept()
            except BlockingIOError:
                return
            except OSError as error:
                if error.errno in _OUT_OF_RESOURCES:
                    # The connection stays in the backlog, so the listener stays readable; without the pause
                    # this thread would spin until some connection is closed.
                    self._warn("accept", f"Connections cannot be accepted: {error}")
                    self._stop.wait(_PAUSE_S)
                    return
                continue  # the peer gave up between its arrival and now
            # On an address of IPv6 that takes IPv4 as well, such a client is still known by its own address.
            self._deal_out(sock, address[0].removeprefix("::ffff:"))

    def _deal_out(self, sock: socket.socket, host: str) -> None:
        held_ms = self._rates.record(self._number)
        if held_ms and self._stop.wait(held_ms / 1000):
            sock.close()
            return
        if not self._quotas.take_place(self._number, self._stop.is_set):
            sock.close()
            return
        refused_ms = self._rates.refuse(self._number, host)
        if refused_ms:
            self._quotas.give_back(self._number)
            self._closing.add(sock, refused_ms)
            return
        forbidding = self._quotas.admit(host)
        if forbidding is not None:
            self._quotas.give_back(self._number)
            self._warn(forbidding, f"Refused a connection from {host}: {forbidding} is reached")
            sock.close()
            return
        try:
            if self._send_buffer_bytes >= 0:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, self._send_buffer_bytes)
        except OSError:
            self._quotas.release(host, self._number)
            sock.close()
            return
        with self._processors_lock:
            self._processors[next(self._turns) % len(self._processors)].accept(sock, host)

    def _warn(self, cause: str, message: str) -> None:
        self._warnings.warn(cause, message, self._time.monotonic_ms())


def _close_in_child() -> None:
    # A child that kept the listening socket would keep the port taken after its parent's broker stops, and
    # take connections that nobody in it ever answers.
    for acceptor in list(_acceptors):
        acceptor.close_sockets()


in_forked_children(_close_in_child)
