"""The exchange of frames in which a client proves who it is: ApiVersions, SaslHandshake, SaslAuthenticate (KIP-152)."""

from __future__ import annotations

from typing import Any

import attrs

from kclient.errors import (
    Errors,
    SaslAuthenticationError,
    UnsupportedSaslMechanismError,
    UnsupportedVersionError,
)
from kclient.network.frame_exchange import FrameExchange
from kclient.network.transport import Transport
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.header import parse_response, request_buffers
from kclient.protocol.messages.api_versions import ApiVersionsRequest
from kclient.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from kclient.protocol.messages.sasl_handshake import SaslHandshakeRequest
from kclient.protocol.schema import Message
from kclient.security.sasl import SaslCredentials, SaslMechanism

_MOST_BYTES = 512 * 1024
_NEWEST_AUTHENTICATE = 2
_HANDSHAKE_VERSION = 1  # with 0 the tokens would follow without a frame's header


@attrs.define(eq=False, repr=False)
class SaslClientAuthenticator:
    """Authenticates one connection. Used by one thread.

    A broker that says why it refuses raises SaslAuthenticationError, or UnsupportedSaslMechanismError with the
    mechanisms that it has.
    """

    _transport: Transport
    _credentials: SaslCredentials
    _client_id: str | None
    _host: str
    complete: bool = attrs.field(default=False, init=False)
    session_lifetime_ms: int = attrs.field(default=0, init=False)
    offered: list[str] = attrs.field(factory=list, init=False)
    """The mechanisms that the broker has, once it has said so."""
    _mechanism: SaslMechanism | None = attrs.field(default=None, init=False)
    _frames: FrameExchange = attrs.field(init=False)
    _asked: tuple[ApiKeys, int] | None = attrs.field(default=None, init=False)
    _correlation_id: int = attrs.field(default=0, init=False)
    _version: int = attrs.field(default=0, init=False)  # of SaslAuthenticate

    @_frames.default
    def _new_exchange(self) -> FrameExchange:
        return FrameExchange(self._transport, "The broker", _MOST_BYTES)

    @property
    def wants_write(self) -> bool:
        """True while a frame of the exchange is only partly written."""
        return self._frames.wants_write

    def authenticate(self) -> None:
        """Go on as far as possible without blocking; raises AuthenticationError, OSError or EOFError."""
        if self._asked is None:
            self._ask(ApiVersionsRequest(), 0)
        while not self.complete:
            if not self._frames.written():
                return
            frame = self._read()
            if frame is None:
                return
            self._handle(frame)

    def restart(self) -> None:
        self.complete = False
        self._shake_hands()  # the versions are known

    def close(self) -> None:
        """Forget secrets."""
        self._frames.close()

    def _read(self) -> memoryview | None:
        try:
            return self._frames.read()
        except EOFError:
            raise ConnectionResetError(
                f"it was closed by the peer during SASL authentication with {self._credentials.mechanism}; are the "
                "credentials of sasl.jaas.config right, and security.protocol that of this listener?"
            ) from None

    def _ask(self, message: Message, version: int) -> None:
        api = message.API_KEY
        assert api is not None
        self._asked = api, version
        self._frames.send(request_buffers(message, version, self._correlation_id, self._client_id))

    def _handle(self, frame: memoryview) -> None:
        assert self._asked is not None
        api, version = self._asked
        correlation_id, answer = parse_response(api, version, frame)
        if correlation_id != self._correlation_id:
            raise SaslAuthenticationError(
                f"The broker answered request {correlation_id} in place of {self._correlation_id} during SASL "
                "authentication"
            )
        self._correlation_id += 1
        if api is ApiKeys.API_VERSIONS:
            self._on_versions(answer)
        elif api is ApiKeys.SASL_HANDSHAKE:
            self._on_handshake(answer)
        else:
            self._on_token(answer)

    def _on_versions(self, answer: Any) -> None:
        error = Errors.for_code(answer.error_code)
        if error is not None:
            raise error
        ranges = {each.api_key: (each.min_version, each.max_version) for each in answer.api_keys}
        lowest, highest = ranges.get(ApiKeys.SASL_AUTHENTICATE, (0, -1))
        self._version = min(highest, _NEWEST_AUTHENTICATE)
        if self._version < lowest or ranges.get(ApiKeys.SASL_HANDSHAKE, (0, -1))[1] < _HANDSHAKE_VERSION:
            raise UnsupportedVersionError("The broker is too old for SASL as it is since Kafka 1.0 (KIP-152)")
        self._shake_hands()

    def _shake_hands(self) -> None:
        # Not before it is needed, as there may be no credentials at the moment, nor later than that: they change.
        self._mechanism = self._credentials.new_mechanism(self._host)
        self._ask(SaslHandshakeRequest(mechanism=self._credentials.mechanism), _HANDSHAKE_VERSION)

    def _on_handshake(self, answer: Any) -> None:
        error = Errors.for_code(answer.error_code)
        self.offered = answer.mechanisms
        if isinstance(error, UnsupportedSaslMechanismError):
            offered = ", ".join(sorted(answer.mechanisms)) or "none"
            raise UnsupportedSaslMechanismError(
                f"The broker does not offer {self._credentials.mechanism}; offered are: {offered} (sasl.mechanism)"
            )
        if error is not None:
            raise error
        assert self._mechanism is not None
        self._send_token(self._mechanism.first())

    def _on_token(self, answer: Any) -> None:
        if answer.error_code:
            # The broker's words are for whoever has to look after this: that of a wrong password names no user.
            raise Errors.for_code(answer.error_code, answer.error_message) or SaslAuthenticationError()
        assert self._mechanism is not None
        token = self._mechanism.next(bytes(answer.auth_bytes))
        if token is not None:
            self._send_token(token)
        elif self._mechanism.complete:
            self.session_lifetime_ms = answer.session_lifetime_ms
            self.complete = True

    def _send_token(self, token: bytes) -> None:
        self._ask(SaslAuthenticateRequest(auth_bytes=token), self._version)
