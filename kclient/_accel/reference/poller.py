"""Poller: the sockets of one I/O thread, watched, written and read; nothing waits but `poll`."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Sequence
from typing import Any

from kclient._accel.reference import gil
from kclient._accel.shared.readiness import EVENT_READ, EVENT_WRITE, DefaultSelector
from kclient._accel.shared.types import Buffer

IOV_MAX = 1024
"""The most buffers that one `sendmsg` takes, on Linux and macOS."""

# A peer that is gone is an error to handle, also in a program that has asked for SIGPIPE to kill it.
_NO_SIGNAL = getattr(socket, "MSG_NOSIGNAL", 0)
_BOTH = EVENT_READ | EVENT_WRITE
_WAKE = object()


class FrameMemory(bytearray):
    """Memory to receive a frame into.

    It begins with `FIRST_BYTES` at most and grows as bytes arrive: a peer that announces 100 MiB and sends nothing
    must not cost them. While there is a view of it, it cannot (BufferError).
    """

    __slots__ = ()

    FIRST_BYTES = 64 * 1024

    def grow(self, size: int) -> None:
        """Have `size` bytes; what is there stays."""
        self.extend(bytes(size - len(self)))


class Poller:
    """Watches non-blocking sockets for one thread; only `wake` may be called by others and by signal handlers.

    Events are `EVENT_READ` (1) and `EVENT_WRITE` (2); an error or a hang-up of the peer is reported as what is asked
    for. Sockets stay their owner's, who unregisters them before closing them. Nothing is known of forks: whoever uses
    it keeps a forked child away from it.

    `send` and `recv_into` belong to no Poller's state. They are here because a body that can do them without letting
    go of the interpreter lock should: an I/O thread that lets go of it beside a busy application thread waits up to
    the switch interval (5 ms) to have it back. This body lets go of it in every call.

    A TLS transport uses the same two for its ciphertext: an `ssl.SSLObject` stands between two `ssl.MemoryBIO`s, what
    `recv_into` took is written to the incoming one (at EOFError its `write_eof`), what the outgoing one holds goes to
    `send`, and the rest that did not fit is its `wants_write`.
    """

    __slots__ = (
        "__weakref__",
        "_closed",
        "_round",
        "_selector",
        "_stalled_round",
        "_thread_id",
        "_waiter",
        "_wake_lock",
        "_wake_receiver",
        "_wake_sender",
        "_watched",
        "_woken",
        "polling",
    )

    def __init__(self) -> None:
        self.polling = False
        """True while a `wake` has to end a wait."""
        # Reentrant: a signal handler's wake may interrupt another one of the same thread.
        self._wake_lock = threading.RLock()
        self._woken = False
        self._closed = False
        self._selector = DefaultSelector()
        self._watched: set[int] = set()
        self._wake_receiver, self._wake_sender = socket.socketpair()
        self._wake_receiver.setblocking(False)
        self._wake_sender.setblocking(False)
        self._selector.register(self._wake_receiver.fileno(), EVENT_READ, _WAKE)
        self._thread_id = 0
        self._round = 0  # polls so far
        self._stalled_round = 0  # the one in which it was given way in vain
        self._waiter: threading.Lock | None = None
        gil.enter(self)

    def register(self, sock: socket.socket, events: int, data: Any) -> None:
        """Watch `sock` for `events`; `poll` gives `data` with them. KeyError if it is watched already."""
        fd = self._checked(sock, events)
        if fd in self._watched:
            raise KeyError(f"file descriptor {fd} is watched already")
        self._selector.register(fd, events, data)
        self._watched.add(fd)

    def modify(self, sock: socket.socket, events: int, data: Any) -> None:
        """Watch for other `events`, with other `data`. KeyError if the socket is not watched."""
        fd = self._checked(sock, events)
        self._known(fd)
        self._selector.modify(fd, events, data)

    def unregister(self, sock: socket.socket) -> None:
        """Watch `sock` no longer. KeyError if it is not watched."""
        fd = self._checked(sock, _BOTH)
        self._known(fd)
        self._watched.remove(fd)
        self._selector.unregister(fd)

    def poll(self, timeout_ms: int) -> list[tuple[Any, int]]:
        """The `(data, events)` of sockets that have events, waiting at most `timeout_ms` for some; negative: for ever.

        Returns early, perhaps with nothing, after a `wake`. A signal's handler runs, in the main thread; what it
        raises ends the call, otherwise the wait goes on.
        """
        self._check_open()
        waiter = self._waiter
        if waiter is not None:
            self._waiter = None
            waiter.release()
        # First the announcement, then the look at the flag; `wake` does it the other way round. So one of the two
        # sees the other.
        self.polling = True
        try:
            timeout_s = 0.0 if self._woken else None if timeout_ms < 0 else timeout_ms / 1000
            ready = self._selector.select(timeout_s)
        finally:
            self._round += 1
            self._thread_id = threading.get_ident()
            self.polling = False
        events = []
        for key, mask in ready:
            if key.data is _WAKE:
                self._drain()
            else:
                events.append((key.data, mask))
        # Cleared last. A wake that comes before this finds the flag set and does nothing, which is right: what it
        # wants to be seen was there before this poll returns. Cleared before the drain, the flag could be set again
        # and its byte lost, and with it every later wake.
        self._woken = False
        return events

    def wake(self) -> None:
        """End a poll that waits, or make the next one return at once. For any thread and signal handler."""
        if self._woken:
            return
        try:
            self._woken = True
            if self.polling:
                with self._wake_lock:
                    if not self._closed:
                        self._wake_sender.send(b"\0")
        except BlockingIOError:
            pass  # full of earlier ones: it will wake
        except BaseException:
            self._woken = False  # a Ctrl-C: the next wake must not think that this one has done it
            raise

    RECEIVES = False
    """True if `expect` does anything."""

    def expect(self, sock: socket.socket, buffer: bytearray | memoryview, framed: bool = False) -> None:
        """Receive into `buffer` from `sock`, which is watched, while polls wait anyway.

        A body that can do this beside other threads reports EVENT_READ when the buffer is full, when there is something
        else to see, or with what has come when the poll ends; one that cannot, as this one, does nothing and reports
        every piece. What is `framed` is full when a whole frame is there, of which the first four bytes are the length
        of the others, or, if the buffer has no room for it, these four. ValueError if another buffer was given for
        the socket and `taken` not called since.
        """

    def taken(self, sock: socket.socket) -> int:  # noqa: ARG002 - the signature is the contract
        """The number of bytes that came into the buffer given to `expect`, which is let go of.

        Raises OSError for what ended it.
        """
        return 0

    @staticmethod
    def send(sock: socket.socket, buffers: Sequence[Buffer]) -> int:
        """Write as much of the first `IOV_MAX` of `buffers` as `sock` takes now; returns how many bytes that was.

        Raises OSError, of the class of its errno.
        """
        if len(buffers) > IOV_MAX:
            buffers = buffers[:IOV_MAX]
        try:
            return sock.sendmsg(buffers, (), _NO_SIGNAL)
        except BlockingIOError:
            return 0

    @staticmethod
    def recv_into(sock: socket.socket, buffer: bytearray | memoryview) -> int:
        """Read at most `len(buffer)` bytes into `buffer`; 0 if none are there now.

        Raises EOFError at the end of the stream, and OSError of the class of its errno.
        """
        try:
            count = sock.recv_into(buffer)
        except BlockingIOError:
            return 0
        if count == 0 and len(buffer):
            raise EOFError
        return count

    def close(self) -> None:
        """Watch nothing any more; the sockets stay open. A second call does nothing, nor does `wake` afterwards."""
        with self._wake_lock:
            if self._closed:
                return
            self._closed = True
        gil.leave(self)
        self._watched.clear()
        self._selector.close()
        self._wake_receiver.close()
        self._wake_sender.close()

    def give_way(self) -> bool:
        """Wait for a moment, until this Poller's thread polls again, if it wants to run; for `yield_gil`.

        False, at once, if it sleeps, or is the caller. A thread that was given way in vain does not want the
        interpreter, but a lock, say; it is not waited for again in the same round.
        """
        round_ = self._round
        if (
            round_ == self._stalled_round
            or self._thread_id == threading.get_ident()
            or self._waiter is not None
        ):
            return False
        if self.polling and not self._has_events():
            return False
        waiter = threading.Lock()
        waiter.acquire()
        self._waiter = waiter
        if not waiter.acquire(timeout=gil.GIVE_WAY_S):
            self._waiter = None
            if self._round == round_:
                self._stalled_round = round_
        return True

    def _has_events(self) -> bool:
        """Return True if a poll would return at once; asks the system, so any thread may. False if that is unknown."""
        fileno = getattr(self._selector, "fileno", None)
        if fileno is None or not hasattr(select, "poll"):
            return False
        probe = select.poll()
        try:
            probe.register(fileno(), select.POLLIN)
        except ValueError:
            return False  # closed meanwhile
        return bool(probe.poll(0))

    def _checked(self, sock: socket.socket, events: int) -> int:
        self._check_open()
        if not events or events & ~_BOTH:
            raise ValueError(f"invalid events: {events}")
        fd = sock.fileno()
        if fd < 0:
            raise ValueError(f"invalid file descriptor: {fd}")
        return fd

    def _known(self, fd: int) -> None:
        if fd not in self._watched:
            raise KeyError(f"file descriptor {fd} is not watched")

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("the poller is closed")

    def _drain(self) -> None:
        try:
            while len(self._wake_receiver.recv(4096)) == 4096:
                pass
        except BlockingIOError:
            pass
