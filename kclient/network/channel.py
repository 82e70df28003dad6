"""KafkaChannel: one connection with at most one frame going out and one coming in."""

from __future__ import annotations

import enum
from typing import Protocol

import attrs

from kclient._accel import EVENT_READ, EVENT_WRITE
from kclient.errors import ConnectionStep, IllegalStateError
from kclient.network.receive import NetworkReceive, ReceiveMemory
from kclient.network.send import NetworkSend
from kclient.network.transport import Transport


class ChannelState(enum.Enum):
    """The state of a channel; once it is closed, the reason for that."""

    NOT_CONNECTED = enum.auto()
    AUTHENTICATE = enum.auto()
    READY = enum.auto()
    EXPIRED = enum.auto()
    FAILED = enum.auto()
    AUTHENTICATION_FAILED = enum.auto()
    LOCAL_CLOSE = enum.auto()


_LARGE_BYTES = 64 * 1024  # from here on a frame comes in pieces
_MOST_LIKELY_BYTES = 2 * 1024 * 1024  # of memory that is held for the next frame because the last one had it
_ENDS = frozenset({ChannelState.EXPIRED, ChannelState.FAILED, ChannelState.LOCAL_CLOSE})
VALID_TRANSITIONS: dict[ChannelState, frozenset[ChannelState]] = {
    ChannelState.NOT_CONNECTED: _ENDS | {ChannelState.AUTHENTICATE},
    ChannelState.AUTHENTICATE: _ENDS | {ChannelState.READY, ChannelState.AUTHENTICATION_FAILED},
    # A session can be renewed (KIP-368), and with TLS 1.3 a client hears of a refusal only after the handshake.
    ChannelState.READY: _ENDS | {ChannelState.AUTHENTICATE, ChannelState.AUTHENTICATION_FAILED},
    ChannelState.EXPIRED: frozenset(),
    ChannelState.FAILED: frozenset(),
    ChannelState.AUTHENTICATION_FAILED: frozenset(),
    ChannelState.LOCAL_CLOSE: frozenset(),
}


class Authenticator(Protocol):
    """Exchanges frames over the transport until both sides know each other. Not thread-safe."""

    @property
    def complete(self) -> bool:
        """True once the exchange succeeded."""

    @property
    def wants_write(self) -> bool:
        """True while a frame of the exchange is only partly written."""

    @property
    def session_lifetime_ms(self) -> int:
        """Time that the broker granted with the last exchange, 0 if it set no limit (KIP-368)."""

    def authenticate(self) -> None:
        """Go on as far as possible without blocking; raises AuthenticationError when it failed."""

    def restart(self) -> None:
        """Begin another exchange over the same connection, with the credentials as they are now."""

    def close(self) -> None:
        """Forget secrets."""


class Tunnel(Protocol):
    """Leads through somebody else to the peer, before anything is said to that. Its text says where to, and how."""

    @property
    def complete(self) -> bool:
        """True once what is sent goes to the peer."""

    @property
    def wants_write(self) -> bool:
        """True while bytes wait for the socket to take them."""

    def advance(self) -> None:
        """Go on as far as possible without blocking; raises KafkaError or OSError when it failed."""


@attrs.define(eq=False, repr=False)
class KafkaChannel:
    """A transport, an optional authenticator and tunnel, one send and one receive at a time.

    Not thread-safe: it belongs to the thread of its Selector. The channel owns its transport; buffers of a
    send belong to the caller and are let go of when they are written or the channel closes.
    """

    id: str
    transport: Transport
    _max_receive_bytes: int
    _authenticator: Authenticator | None = None
    _tunnel: Tunnel | None = None
    interest: int = attrs.field(default=0, init=False)
    """The events its Selector has registered; only the Selector changes it."""
    expecting: bool = attrs.field(default=False, init=False)
    """True if its Selector's polls receive into `expected()`; only the Selector changes it."""
    memory: ReceiveMemory | None = attrs.field(default=None, init=False)
    """The memory that its frames ask; only the Selector changes it, before the first one."""
    ready: bool = attrs.field(default=False, init=False)
    """True while frames of the application can be exchanged. Here and below: to be read, changed by the methods."""
    muted: bool = attrs.field(default=False, init=False)
    """True while nothing is read from the channel."""
    peer: str = attrs.field(default="an unconnected peer", init=False)
    """Address of the other side, for messages."""
    _reached: bool = attrs.field(default=False, init=False)  # TCP was through
    _last_bytes: int = attrs.field(default=0, init=False)  # of the frame that came last
    _receive: NetworkReceive | None = attrs.field(default=None, init=False)
    _send: NetworkSend | None = attrs.field(default=None, init=False)
    _state: ChannelState = attrs.field(default=ChannelState.NOT_CONNECTED, init=False)

    @property
    def state(self) -> ChannelState:
        """The state of the channel."""
        return self._state

    @property
    def connected(self) -> bool:
        """True once TCP is connected, until the channel is closed."""
        return self._state is ChannelState.READY or self._state is ChannelState.AUTHENTICATE

    @property
    def has_send(self) -> bool:
        """True while a send is under way."""
        return self._send is not None

    @property
    def wants_write(self) -> bool:
        """True while bytes wait for the socket to take them."""
        if self._send is not None or self.transport.wants_write:
            return True
        if self.ready:
            return False
        if self._tunnel is not None and not self._tunnel.complete:
            return self._tunnel.wants_write
        return self._authenticator is not None and self._authenticator.wants_write

    @property
    def session_lifetime_ms(self) -> int:
        """Time that the peer granted when it was last shown who this is, 0 if it set no limit."""
        return 0 if self._authenticator is None else self._authenticator.session_lifetime_ms

    @property
    def authenticator(self) -> Authenticator | None:
        """The proof of who this is, None if nobody asks for that."""
        return self._authenticator

    @property
    def step(self) -> ConnectionStep:
        """The part of setting it up that it is at, or was when it ended."""
        if not self._reached:
            return "tcp"
        if self._tunnel is not None and not self._tunnel.complete:
            return "proxy"
        if not self.transport.ready:
            return "tls"
        return "sasl" if self._authenticator is not None and not self._authenticator.complete else "request"

    def wanted_events(self) -> int:
        """The events that it has to hear of now."""
        if self.ready and self._send is None and not self.transport.wants_write:  # as nearly always
            return 0 if self.muted else EVENT_READ
        if not self.connected:
            return EVENT_WRITE
        # Muting is for frames of the application; handshake and authentication go on.
        wanted = 0 if self.muted and self.ready else EVENT_READ
        return wanted | EVENT_WRITE if self.wants_write else wanted

    @property
    def receiving(self) -> bool:
        """True while a frame has begun to arrive and is not complete."""
        return self._receive is not None and self._receive.started

    @property
    def arrived(self) -> int:
        """Number of bytes came of a frame that is not complete."""
        return 0 if self._receive is None else self._receive.arrived

    @property
    def starved(self) -> bool:
        """True while the frame that comes waits for memory."""
        return self._receive is not None and self._receive.starved

    def transition_to(self, state: ChannelState) -> None:
        """Move to `state`; raises IllegalStateError naming both states if the table does not allow it."""
        if state not in VALID_TRANSITIONS[self._state]:
            raise IllegalStateError(f"Channel {self.id} cannot go from {self._state.name} to {state.name}")
        self._state = state
        self.ready = state is ChannelState.READY

    def prepare(self) -> bool:
        """Go on as far as possible, once TCP is through or has failed: tunnel, handshake, then authentication.

        Returns True once frames can be exchanged. Raises AuthenticationError, OSError or EOFError.
        """
        if not self.connected:
            self.transport.finish_connect()
            address = self.transport.sock.getpeername()
            self._reached = True
            self.peer = f"{address[0]}:{address[1]}" if isinstance(address, tuple) else str(address)
            if self._tunnel is not None:
                self.peer = str(self._tunnel)
            self.transition_to(ChannelState.AUTHENTICATE)
        if self._tunnel is not None and not self._tunnel.complete:
            self._tunnel.advance()
            if not self._tunnel.complete:
                return False
        if not self.transport.ready:
            self.transport.handshake()
        if self.transport.ready and self._authenticator is not None and not self._authenticator.complete:
            self._authenticator.authenticate()
        if self.transport.ready and (self._authenticator is None or self._authenticator.complete):
            self.transition_to(ChannelState.READY)
        return self.ready

    def authenticate_again(self) -> None:
        """Have `prepare` authenticate once more; nothing else may be under way. Raises IllegalStateError if it is."""
        if self._authenticator is None or self._send is not None or self.receiving:
            raise IllegalStateError(f"Channel {self.id} cannot authenticate again now")
        self._receive = None  # memory for a frame that nobody has asked for
        self.transition_to(ChannelState.AUTHENTICATE)
        self._authenticator.restart()

    def mute(self) -> None:
        """Stop reading; the Selector stops watching for input."""
        self.muted = True

    def unmute(self) -> None:
        """Read again."""
        self.muted = False

    def set_send(self, send: NetworkSend) -> None:
        """Begin `send`; raises IllegalStateError while another one is under way."""
        if self._send is not None:
            raise IllegalStateError(f"Channel {self.id} has a send under way ({self._send.remaining} bytes)")
        self._send = send

    def write(self) -> NetworkSend | None:
        """Write what the transport takes; returns the send if that completed it."""
        if self.transport.wants_write:
            self.transport.flush()
        send = self._send
        if send is None:
            return None
        send.write_to(self.transport)
        if send.remaining or self.transport.wants_write:
            return None
        self._send = None
        return send

    def read(self) -> NetworkReceive | None:
        """Read what is there; returns the receive if that completed it."""
        receive = self._receive
        if receive is None:
            receive = self._receive = self._new_receive()
        if receive.filled != receive.size:
            receive.read_from(self.transport)
            if receive.filled != receive.size:
                return None
        self._receive = None
        self._last_bytes = receive.size
        return receive

    def expected(self) -> memoryview | None:
        """Memory to receive into directly, in the middle of a large frame of a transport that allows it."""
        if self._receive is None or not self.transport.receives_as_is:
            return None
        return self._receive.rest()

    def expected_ahead(self) -> memoryview | None:
        """Memory to receive the whole next frame into, length and all, if it is likely to be a large one."""
        if self._last_bytes < _LARGE_BYTES or self._receive is not None or not self.transport.receives_as_is:
            return None
        if self.memory is not None and self._last_bytes > _MOST_LIKELY_BYTES:
            return None
        self._receive = self._new_receive()
        # With some room to spare: frames of records are of about the same size, and not quite.
        return self._receive.ahead(self._last_bytes + self._last_bytes // 8)

    def received(self, count: int) -> None:
        """`count` bytes were received into `expected()` or `expected_ahead()`."""
        if self._receive is not None:
            self._receive.advance(count)

    def _new_receive(self) -> NetworkReceive:
        if self.memory is None:
            return NetworkReceive(self.id, self._max_receive_bytes)
        return NetworkReceive(
            self.id, self._max_receive_bytes, self.memory, min(self._last_bytes, _MOST_LIKELY_BYTES)
        )

    def close(self, state: ChannelState = ChannelState.LOCAL_CLOSE) -> None:
        """Close the transport and let go of every buffer; a second call does nothing."""
        if not VALID_TRANSITIONS[self._state]:
            return
        self.transition_to(state)
        if self._send is not None:
            self._send.release()
            self._send = None
        self._receive = None
        try:
            self.transport.close()
        finally:
            if self._authenticator is not None:
                self._authenticator.close()
