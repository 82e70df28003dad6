"""The exchange of frames in which a broker finds out who a client is: the other side of KIP-43, KIP-152 and KIP-368."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from kclient.broker.security.mechanisms import ServerMechanism
from kclient.broker.security.principal import KafkaPrincipal
from kclient.errors import AuthenticationError, Errors, IllegalSaslStateError, SaslAuthenticationError
from kclient.errors import UnsupportedSaslMechanismError as UnknownMechanismError
from kclient.network.frame_exchange import FrameExchange
from kclient.network.send import NetworkSend
from kclient.network.transport import Buffer, Transport
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.codec import decode
from kclient.protocol.header import (
    RequestHeader,
    RequestVersionError,
    parse_request_header,
    response_buffers,
)
from kclient.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from kclient.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from kclient.protocol.schema import Message
from kclient.utils.time import Time

_MOST_BYTES = 512 * 1024  # sasl.server.max.receive.size of Kafka
_DISCARDED_BYTES = 64 * 1024
_MOST_VERSION_REQUESTS = 10  # all else of an exchange ends by itself

SASL_HANDSHAKE_VERSIONS = (0, 1)
SASL_AUTHENTICATE_VERSIONS = (0, 2)


@attrs.frozen(kw_only=True)
class SaslServerSettings:
    """A listener's side of the exchange. Immutable."""

    mechanisms: Mapping[str, Callable[[], ServerMechanism]]
    """Those that clients may choose, each with what makes one exchange of it."""
    answer_versions: Callable[[RequestHeader], Sequence[Buffer]]
    """Makes the frame that answers ApiVersions, which clients may ask before they have said who they are."""
    max_reauth_ms: int = 0
    """Time after which a client has to prove again who it is, 0 for no limit."""


@attrs.define(eq=False, repr=False)
class SaslServerAuthenticator:
    """Authenticates the client of one connection. Used by one thread.

    A client that is refused is not told at once: `refusal` is set and `on_refused` called, and whoever owns the
    connection calls `send_refusal` after a while and closes it. So guessing passwords takes time.
    """

    _transport: Transport
    _settings: SaslServerSettings
    _time: Time
    _on_refused: Callable[[], None]
    complete: bool = attrs.field(default=False, init=False)
    session_lifetime_ms: int = attrs.field(default=0, init=False)
    principal: KafkaPrincipal | None = attrs.field(default=None, init=False)
    """The client, once it has proven who it is."""
    expires_ms: int | None = attrs.field(default=None, init=False)
    """Monotonic time after which it has to prove it again; None for never."""
    refusal: AuthenticationError | None = attrs.field(default=None, init=False)
    """The reason for which it was refused, None if it was not."""
    _name: str = attrs.field(default="", init=False)  # of the mechanism
    _mechanism: ServerMechanism | None = attrs.field(default=None, init=False)
    _framed: bool = attrs.field(default=True, init=False)  # tokens come in SaslAuthenticate requests
    _version_requests: int = attrs.field(default=0, init=False)
    _proven: bool = attrs.field(default=False, init=False)
    _last_words: Sequence[Buffer] = attrs.field(default=(), init=False)
    _pending: memoryview | None = attrs.field(default=None, init=False)  # the frame that begins it again
    _frames: FrameExchange = attrs.field(init=False)

    @_frames.default
    def _new_exchange(self) -> FrameExchange:
        return FrameExchange(self._transport, "The client", _MOST_BYTES)

    @property
    def wants_write(self) -> bool:
        """True while a frame of the exchange is only partly written."""
        return self._frames.wants_write

    @property
    def has_expired(self) -> bool:
        """True if the client had to prove again who it is, and did not."""
        return self.expires_ms is not None and self._time.monotonic_ms() >= self.expires_ms

    def authenticate(self) -> None:
        """Go on as far as possible without blocking.

        Raises OSError, EOFError, and KafkaError for what is no part of the exchange: the connection ends then.
        """
        while True:
            if not self._frames.written():
                return
            if self._proven:
                self.complete = True
                return
            if self.refusal is not None:
                self._discard()
                return
            frame = self._read()
            if frame is None:
                return
            if self._mechanism is not None and not self._framed:
                self._on_token(bytes(frame))
            else:
                self._on_request(frame)

    def begin_again(self, frame: memoryview) -> None:
        """Take `frame`, the SaslHandshake request with which a client begins to prove again who it is (KIP-368).

        The connection's Selector is to have the channel authenticate again.
        """
        self._pending = frame

    def restart(self) -> None:
        self.complete = self._proven = False
        self._mechanism = None

    def send_refusal(self) -> None:
        """Tell a client that was refused why, as far as that is possible without waiting."""
        try:
            if self._last_words and not self._transport.wants_write:
                NetworkSend(self._last_words).write_to(self._transport)
                self._transport.flush()
        except OSError:
            pass  # it is gone

    def close(self) -> None:
        """Forget the exchange."""
        self._frames.close()
        self._mechanism = self._pending = None

    def _read(self) -> memoryview | None:
        if self._pending is not None:
            frame, self._pending = self._pending, None
            return frame
        return self._frames.read()

    def _discard(self) -> None:
        """Take what a client still says that was refused: unread, it would end the connection before the answer."""
        self._transport.recv_into(memoryview(bytearray(_DISCARDED_BYTES)))

    def _on_request(self, frame: memoryview) -> None:
        try:
            header, position = parse_request_header(frame)
        except RequestVersionError as error:
            header, position = error.header, len(frame)
            if header.api_key is not ApiKeys.API_VERSIONS:
                raise
        api, version = header.api_key, header.api_version
        if api is ApiKeys.API_VERSIONS and self._mechanism is None:
            self._version_requests += 1
            if self._version_requests > _MOST_VERSION_REQUESTS:
                raise IllegalSaslStateError("ApiVersions was asked over and over, and nothing else")
            self._frames.send(self._settings.answer_versions(header))
        elif api is ApiKeys.SASL_HANDSHAKE and self._mechanism is None:
            _check_version(api, version, SASL_HANDSHAKE_VERSIONS)
            self._on_handshake(header, decode(SaslHandshakeRequest, version, frame, position))
        elif api is ApiKeys.SASL_AUTHENTICATE and self._mechanism is not None:
            _check_version(api, version, SASL_AUTHENTICATE_VERSIONS)
            request = decode(SaslAuthenticateRequest, version, frame, position)
            self._on_token(request.auth_bytes, header)
        else:
            name = api.title if isinstance(api, ApiKeys) else f"API {api}"
            raise IllegalSaslStateError(f"{name} was asked before the client had said who it is")

    def _on_handshake(self, header: RequestHeader, request: SaslHandshakeRequest) -> None:
        known = self._settings.mechanisms
        answer = SaslHandshakeResponse(mechanisms=sorted(known))
        name = request.mechanism
        if name not in known or (self.principal is not None and name != self._name):
            answer.error_code = int(Errors.UNSUPPORTED_SASL_MECHANISM)
            why = f"{name[:100]!r} is not among the mechanisms of this listener, {', '.join(sorted(known))}"
            if name in known:
                why = f"it began with {self._name} and may not go on with {name}"
            self._refuse(UnknownMechanismError(why), _frame(answer, header))
            return
        self._name, self._mechanism = name, known[name]()
        # Before version 1 tokens follow as they are, in frames without a header.
        self._framed = header.api_version > 0
        self._frames.send(_frame(answer, header))

    def _on_token(self, token: bytes, header: RequestHeader | None = None) -> None:
        assert self._mechanism is not None
        try:
            challenge = self._mechanism.respond(token)
            if self._mechanism.principal is not None:
                self._check_same(self._mechanism.principal)
        except SaslAuthenticationError as error:
            answer = SaslAuthenticateResponse(
                error_code=int(Errors.SASL_AUTHENTICATION_FAILED), error_message=str(error)
            )
            self._refuse(error, () if header is None else _frame(answer, header))
            return
        if self._mechanism.principal is not None:
            self._on_proof(self._mechanism)
        if header is None:
            self._frames.send([len(challenge).to_bytes(4, "big"), challenge])
        else:
            answer = SaslAuthenticateResponse(auth_bytes=challenge)
            if self._proven:
                answer.session_lifetime_ms = self.session_lifetime_ms
            self._frames.send(_frame(answer, header))

    def _check_same(self, principal: KafkaPrincipal) -> None:
        if self.principal is not None and principal != self.principal:
            raise SaslAuthenticationError(
                f"Authentication failed: the connection began as {self.principal} and may not go on as {principal}"
            )

    def _on_proof(self, mechanism: ServerMechanism) -> None:
        self.principal = mechanism.principal
        self._proven = True
        limits = [self._settings.max_reauth_ms] if self._settings.max_reauth_ms else []
        if mechanism.expires_ms is not None:
            limits.append(max(mechanism.expires_ms - self._time.wall_ms(), 1))
        self.session_lifetime_ms = min(limits, default=0)
        self.expires_ms = self._time.monotonic_ms() + self.session_lifetime_ms if limits else None

    def _refuse(self, error: AuthenticationError, last_words: Sequence[Buffer]) -> None:
        self.refusal, self._last_words = error, last_words
        self._on_refused()


def _check_version(api: ApiKeys, version: int, served: tuple[int, int]) -> None:
    if not served[0] <= version <= served[1]:
        raise IllegalSaslStateError(f"Version {version} of {api.title} is not served")


def _frame(message: Message, header: RequestHeader) -> Sequence[Buffer]:
    assert isinstance(header.api_key, ApiKeys)
    return response_buffers(message, header.api_key, header.api_version, header.correlation_id)
