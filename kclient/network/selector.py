"""Selector: many non-blocking connections, one poll.

`poll` does at most one receive per channel, so that a peer with much to say does not starve the others, and
reports what happened as results that stay until the next poll.
"""

from __future__ import annotations

import socket

from kclient._accel import EVENT_READ, EVENT_WRITE, Poller, forks
from kclient.errors import (
    AuthenticationError,
    ConnectionFailure,
    ConnectionStep,
    DisconnectError,
    IllegalStateError,
    KafkaError,
)
from kclient.network.channel import ChannelState, KafkaChannel
from kclient.network.channel_builder import ChannelBuilder
from kclient.network.channel_watch import ChannelWatch
from kclient.network.idle import IdleExpiry
from kclient.network.receive import NetworkReceive, ReceiveMemory
from kclient.network.send import NetworkSend
from kclient.network.sockets import SYSTEM_DEFAULT, begin_connect, configure
from kclient.utils.fork import ForkGuard
from kclient.utils.log_context import LogContext
from kclient.utils.time import SYSTEM_TIME, Time


class Selector:
    """Owns channels and reports their events. Belongs to one thread; only `wakeup` may be called from any.

    Results of the last `poll`: `completed_sends` and `completed_receives` by channel id, `connected` ids (ready for
    frames: TCP, handshake and authentication are over), `disconnected` ids with the reason. A channel closed by
    `close_channel` is not reported. `connections_max_idle_ms` and `max_receive_bytes` are unlimited when negative.

    In a forked child every call that would touch a socket or the epoll descriptor raises ForkedClientError,
    and `close` does nothing: both belong to the parent.
    """

    def __init__(
        self,
        *,
        max_receive_bytes: int,
        connections_max_idle_ms: int,
        channel_builder: ChannelBuilder,
        send_buffer_bytes: int = SYSTEM_DEFAULT,
        receive_buffer_bytes: int = SYSTEM_DEFAULT,
        time: Time = SYSTEM_TIME,
        log_context: LogContext | None = None,
    ) -> None:
        self.completed_sends: dict[str, NetworkSend] = {}
        self.completed_receives: dict[str, NetworkReceive] = {}
        self.connected: list[str] = []
        self.disconnected: dict[str, KafkaError] = {}
        self.busy_ns: dict[str, int] | None = None
        """A dictionary collects the time that polls spend on each channel; whoever takes a time out begins anew. Any
        thread may put one here, or None. With one, nothing is received beside that.
        """
        self._max_receive_bytes = max_receive_bytes
        self._builder = channel_builder
        self._buffer_bytes = send_buffer_bytes, receive_buffer_bytes  # of the sockets that connect
        self._time = time
        self._log = (log_context or LogContext()).logger(__name__)
        self._fork_guard = ForkGuard("The selector")
        self._generation = forks.generation
        self._idle = IdleExpiry(connections_max_idle_ms)
        self._channels: dict[str, KafkaChannel] = {}
        self._prepared_at_once: list[KafkaChannel] = []
        self._to_write: list[KafkaChannel] = []
        self._buffered: dict[str, KafkaChannel] = {}
        self._failed: dict[str, KafkaError] = {}
        self._closed = False
        self._woken = False
        self._overlooked = 0
        self._poller = Poller()
        self._watch = ChannelWatch(self._poller)

    def connect(
        self, channel_id: str, address: str, port: int, *, host: str | None = None, host_port: int = 0
    ) -> None:
        """Begin to connect to the IP `address`; a later poll reports it in `connected` or `disconnected`.

        `host` is the name the peer must prove (TLS), and `host_port` its port there, whoever leads to it. Raises
        OSError if connecting cannot even begin, and IllegalStateError if the id is in use.
        """
        self._fork_guard.check()
        self._ensure_new(channel_id)
        sock, at_once = begin_connect(address, port, *self._buffer_bytes)
        channel = self._build(channel_id, sock, host, host_port)
        channel.peer = f"{address}:{port}"
        if at_once:
            self._prepared_at_once.append(channel)
        else:
            self._watch.update(channel)

    def register(
        self, channel_id: str, sock: socket.socket, memory: ReceiveMemory | None = None
    ) -> KafkaChannel:
        """Take over a connected socket, as a server does with what it accepted; it is the Selector's from now
        on.

        The channel is `connected` by a later poll, or, without handshake and authentication, ready at once. A frame
        for which there is no `memory` mutes it, until `unmute`.
        """
        self._fork_guard.check()
        self._ensure_new(channel_id)
        try:
            configure(sock)
        except BaseException:
            sock.close()
            raise
        channel = self._build(channel_id, sock)
        channel.memory = memory
        try:
            channel.prepare()
        except (KafkaError, OSError, EOFError) as error:
            self._failed[channel_id] = _reason(channel, error)
        self._note_buffered(channel)
        self._watch.update(channel)
        return channel

    def send(self, channel_id: str, send: NetworkSend) -> None:
        """Begin `send`; it is written by the next polls and reported in `completed_sends`.

        Raises IllegalStateError if the channel is unknown or has another send under way.
        """
        channel = self._channels.get(channel_id)
        if channel is None:
            raise IllegalStateError(f"There is no connection {channel_id} to send to")
        channel.set_send(send)
        self._to_write.append(channel)

    def write(self) -> None:
        """Write what `send` has begun, as far as it goes at once; `completed_sends` are those of this call then.

        For who has something to do with a channel that is written before the next poll, which reports what fails.
        """
        if forks.generation != self._generation:
            self._fork_guard.check()
        self.completed_sends.clear()
        self._write_at_once(self._time.monotonic_ms())

    def poll(self, timeout_ms: int, *, return_after_send: bool = True) -> None:
        """Do what can be done, waiting at most `timeout_ms` for something to do. Negative waits for ever.

        Without `return_after_send` sends that are written at once, which nearly all are, do not end the wait.
        """
        if self._closed or forks.generation != self._generation:
            self._fork_guard.check()
            raise IllegalStateError("The selector is closed")
        self.completed_sends.clear()
        self.completed_receives.clear()
        self.connected.clear()
        self.disconnected.clear()
        self._overlooked = 0
        now_ms = self._time.monotonic_ms()
        if self._to_write or self._failed or self._prepared_at_once:
            self._handle_immediate(now_ms)
            if not return_after_send:
                self._overlooked = len(self.completed_sends)
            if self._has_results():
                timeout_ms = 0
        if self._watch.to_expect:
            self._watch.expect_answers()
        if self._buffered:
            timeout_ms = 0
        deadline_ms = None if timeout_ms <= 0 else now_ms + timeout_ms
        while True:
            events = self._poller.poll(timeout_ms)
            now_ms = self._time.monotonic_ms()
            if self.busy_ns is None:
                for channel, mask in events:
                    self._handle(channel, mask, now_ms)
            else:
                for channel, mask in events:
                    began_ns = self._time.monotonic_ns()
                    self._handle(channel, mask, now_ms)
                    self._was_busy(channel, began_ns)
            if self._buffered:
                self._handle_buffered(now_ms)
            # A large frame comes in a dozen pieces. Its owner has nothing to do before the last one, and would go
            # through everything that it looks after for each.
            if not events or timeout_ms == 0 or self._has_results() or self._buffered or self._woken:
                break
            if deadline_ms is not None:
                if now_ms >= deadline_ms:
                    break
                timeout_ms = deadline_ms - now_ms
        self._woken = False
        if now_ms >= self._idle.next_expiry_ms:
            self._close_idle(now_ms)

    def least_recently_used(self) -> str | None:
        """The connection that did nothing for longest, None if there is none."""
        return self._idle.least_recently_used()

    def _close_idle(self, now_ms: int) -> None:
        for channel_id in self._idle.expired(now_ms):
            channel = self._channels[channel_id]
            self._log.debug("Closing connection %s to %s: it was idle for too long", channel_id, channel.peer)
            error = DisconnectError(f"The connection to {channel.peer} was idle for connections.max.idle.ms")
            self._disconnect(channel, error, ChannelState.EXPIRED)

    def wakeup(self) -> None:
        """End a poll that waits, or make the next one return at once. For any thread and signal handler."""
        if forks.generation == self._generation:
            # The flag is for a poll that goes on after events; it may be cleared meanwhile, since the next poll does
            # return at once.
            self._woken = True
            self._poller.wake()

    def channel(self, channel_id: str) -> KafkaChannel | None:
        """The channel of this id, None if it is closed."""
        return self._channels.get(channel_id)

    def channels(self) -> list[KafkaChannel]:
        """Every channel."""
        return list(self._channels.values())

    def is_channel_ready(self, channel_id: str) -> bool:
        """True if the channel can take frames."""
        channel = self._channels.get(channel_id)
        return channel is not None and channel.ready

    def step(self, channel_id: str) -> ConnectionStep:
        """The part of setting it up that a channel is at."""
        channel = self._channels.get(channel_id)
        return "request" if channel is None else channel.step

    def session_lifetime_ms(self, channel_id: str) -> int:
        """Time that the peer granted the channel when it authenticated last, 0 if it set no limit."""
        channel = self._channels.get(channel_id)
        return 0 if channel is None else channel.session_lifetime_ms

    def authenticate_again(self, channel_id: str) -> None:
        """Have the channel authenticate once more by the next polls, which report it as `connected` again.

        It ends instead if something else is under way. Raises IllegalStateError if it is unknown.
        """
        channel = self._channels.get(channel_id)
        if channel is None:
            raise IllegalStateError(f"There is no connection {channel_id} to authenticate again")
        try:
            if channel.expecting:
                self._watch.take_received(channel)
            channel.authenticate_again()
        except (OSError, KafkaError) as error:
            self._failed[channel_id] = _reason(channel, error)
        else:
            self._prepared_at_once.append(channel)

    def mute(self, channel_id: str) -> None:
        """Read no more from the channel until `unmute`; frames stay in the socket and slow the peer down."""
        channel = self._channels.get(channel_id)
        if channel is not None and not channel.muted:
            channel.mute()
            try:
                self._watch.update(channel)
            except (OSError, KafkaError) as error:
                self._failed[channel_id] = _reason(channel, error)

    def unmute(self, channel_id: str) -> None:
        """Read from the channel again."""
        channel = self._channels.get(channel_id)
        if channel is not None and channel.muted:
            channel.unmute()
            if channel.transport.has_buffered_bytes:
                self._buffered[channel_id] = channel
            self._watch.update(channel)

    def close_channel(self, channel_id: str) -> None:
        """Close one connection now; polls will not report it."""
        if self._fork_guard.forked:
            return
        channel = self._channels.get(channel_id)
        if channel is not None:
            self._forget(channel, ChannelState.LOCAL_CLOSE)
            self.completed_sends.pop(channel_id, None)
            self.completed_receives.pop(channel_id, None)

    def close(self) -> None:
        """Close everything; the Selector cannot be used afterwards. A second call does nothing."""
        if self._fork_guard.forked:
            return
        if self._closed:
            return
        self._closed = True
        for channel in list(self._channels.values()):
            self._forget(channel, ChannelState.LOCAL_CLOSE)
        self._poller.close()
        self._builder.close()

    def _ensure_new(self, channel_id: str) -> None:
        if self._closed:
            raise IllegalStateError("The selector is closed")
        if channel_id in self._channels:
            raise IllegalStateError(f"There is a connection {channel_id} already")

    def _build(
        self, channel_id: str, sock: socket.socket, host: str | None = None, port: int = 0
    ) -> KafkaChannel:
        try:
            channel = self._builder.build(channel_id, sock, self._max_receive_bytes, host, port)
        except BaseException:
            sock.close()
            raise
        self._channels[channel_id] = channel
        self._idle.touch(channel_id, self._time.monotonic_ms())
        return channel

    def _has_results(self) -> bool:
        return bool(
            self.completed_receives
            or self.connected
            or self.disconnected
            or len(self.completed_sends) > self._overlooked
        )

    def _handle_immediate(self, now_ms: int) -> None:
        """Do what needs no event: try sends, and handle connections that failed or were made at once.

        A socket nearly always takes a whole frame, so writing first saves two system calls that would ask for
        the event of writability and then withdraw that.
        """
        if self._to_write:
            self._write_at_once(now_ms)
        if self._failed:
            failed, self._failed = self._failed, {}
            for channel_id, error in failed.items():
                channel = self._channels.get(channel_id)
                if channel is not None:
                    self._disconnect(channel, error, ChannelState.FAILED)
        if self._prepared_at_once:
            channels, self._prepared_at_once = self._prepared_at_once, []
            for channel in channels:
                if self._channels.get(channel.id) is channel:
                    self._handle(channel, EVENT_WRITE, now_ms)

    def _was_busy(self, channel: KafkaChannel, since_ns: int) -> None:
        busy_ns = self.busy_ns
        if busy_ns is not None:
            busy_ns[channel.id] = busy_ns.get(channel.id, 0) + self._time.monotonic_ns() - since_ns

    def _write_at_once(self, now_ms: int) -> None:
        channels, self._to_write = self._to_write, []
        for channel in channels:
            if self._channels.get(channel.id) is channel and channel.ready:
                began_ns = 0 if self.busy_ns is None else self._time.monotonic_ns()
                try:
                    self._write(channel)
                    self._watch.update(channel)
                except (OSError, EOFError, KafkaError) as error:
                    self._failed[channel.id] = _reason(channel, error)
                else:
                    self._idle.touch(channel.id, now_ms)
                if began_ns:
                    self._was_busy(channel, began_ns)

    def _handle(self, channel: KafkaChannel, mask: int, now_ms: int) -> None:
        """Everything that an event lets one channel do."""
        if self._channels.get(channel.id) is not channel:
            return
        self._idle.touch(channel.id, now_ms)
        try:
            if not channel.ready and channel.prepare():
                self.connected.append(channel.id)
                self._note_buffered(channel)
            if channel.ready:
                if mask & EVENT_READ and not channel.muted:
                    self._read(channel)
                if mask & EVENT_WRITE:
                    self._write(channel)
            self._watch.update(channel)
        except AuthenticationError as error:
            self._disconnect(channel, error, ChannelState.AUTHENTICATION_FAILED)
        except (OSError, EOFError, KafkaError) as error:
            self._disconnect(channel, _reason(channel, error), ChannelState.FAILED)

    def _note_buffered(self, channel: KafkaChannel) -> None:
        """Read from a channel that has just become ready, if a first frame came with the end of its handshake.

        The socket will tell nothing of what was taken from it.
        """
        if channel.ready and channel.transport.has_buffered_bytes:
            self._buffered[channel.id] = channel

    def _read(self, channel: KafkaChannel) -> None:
        if channel.expecting:
            self._watch.take_received(channel)
        receive = channel.read()
        if receive is not None:
            self.completed_receives[channel.id] = receive
        else:
            rest = channel.expected() if self.busy_ns is None else None
            if rest is not None:
                self._watch.expect(channel, rest)
            elif channel.starved:
                channel.mute()
        if channel.transport.has_buffered_bytes:
            self._buffered[channel.id] = channel

    def _write(self, channel: KafkaChannel) -> None:
        send = channel.write()
        if send is not None:
            self.completed_sends[channel.id] = send
            if self._poller.RECEIVES and self.busy_ns is None:
                self._watch.to_expect.append(channel)

    def _handle_buffered(self, now_ms: int) -> None:
        waiting, self._buffered = self._buffered, {}
        for channel_id, channel in waiting.items():
            if channel_id in self.completed_receives:
                self._buffered[channel_id] = channel
            elif not channel.muted:
                self._handle(channel, EVENT_READ, now_ms)

    def _disconnect(self, channel: KafkaChannel, error: KafkaError, state: ChannelState) -> None:
        self._log.debug("Connection %s to %s ended: %s", channel.id, channel.peer, error)
        if error.connection is None:
            error.connection = ConnectionFailure(step=channel.step)
        self._forget(channel, state)
        if channel.id in self.connected:
            self.connected.remove(channel.id)  # and ended in the same poll
        self.disconnected[channel.id] = error

    def _forget(self, channel: KafkaChannel, state: ChannelState) -> None:
        del self._channels[channel.id]
        self._idle.remove(channel.id)
        self._buffered.pop(channel.id, None)
        self._failed.pop(channel.id, None)
        self._watch.forget(channel)
        try:
            channel.close(state)
        except OSError as error:
            self._log.debug("Closing connection %s to %s failed: %s", channel.id, channel.peer, error)


def _reason(channel: KafkaChannel, error: BaseException) -> KafkaError:
    """`error` as what the users of a connection understand."""
    if isinstance(error, EOFError):
        return DisconnectError(
            f"closed by the peer{' in the middle of a message' if channel.receiving else ''}"
        )
    if isinstance(error, KafkaError):
        return error
    return DisconnectError(str((isinstance(error, OSError) and error.strerror) or error))
