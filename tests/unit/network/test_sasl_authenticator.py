"""The exchange of SASL frames with a broker that the test plays, piece by piece and wrong in every way."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from kclient.errors import (
    ErrorCode,
    KafkaError,
    SaslAuthenticationError,
    UnsupportedSaslMechanismError,
    UnsupportedVersionError,
)
from kclient.network.sasl_authenticator import SaslClientAuthenticator
from kclient.network.transport import PlaintextTransport
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.header import parse_request, response_buffers
from kclient.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from kclient.protocol.messages.sasl_authenticate import SaslAuthenticateResponse
from kclient.protocol.messages.sasl_handshake import SaslHandshakeResponse


class Echo:
    """A mechanism of two steps, which wants its own words back."""

    def __init__(self) -> None:
        self.complete = False

    def first(self) -> bytes:
        return b"first"

    def next(self, challenge: bytes) -> bytes | None:
        if challenge == b"once more":
            return b"second"
        if challenge != b"done":
            raise SaslAuthenticationError("not done")
        self.complete = True
        return None


class Credentials:
    mechanism = "ECHO"

    def new_mechanism(self, host: str) -> Echo:
        assert host == "broker.example"
        return Echo()


class Broker:
    """The far end: takes one request after the other, and answers."""

    def __init__(self) -> None:
        near, self.far = socket.socketpair()
        near.setblocking(False)
        self.far.settimeout(5)
        self.transport = PlaintextTransport(near)
        self.authenticator = SaslClientAuthenticator(
            self.transport, cast(Any, Credentials()), "me", "broker.example"
        )
        self.requests: list[Any] = []

    def take(self) -> tuple[Any, Any]:
        size = int.from_bytes(self.exactly(4), "big")
        header, message = parse_request(self.exactly(size))
        self.requests.append(message)
        return header, message

    def exactly(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            data += self.far.recv(size - len(data))
        return data

    def step(self, answer: Any, *, change: Callable[[bytes], bytes] = lambda frame: frame) -> None:
        """The client writes, the broker answers, the client reads, and may write again."""
        self.authenticator.authenticate()
        header, _ = self.take()
        frame = b"".join(
            response_buffers(answer, ApiKeys(header.api_key), header.api_version, header.correlation_id)
        )
        self.far.sendall(change(frame))
        self.authenticator.authenticate()

    def close(self) -> None:
        self.authenticator.close()
        self.transport.close()
        self.far.close()


@pytest.fixture
def broker() -> Iterator[Broker]:
    made = Broker()
    yield made
    made.close()


def versions(handshake: int = 1, authenticate: int = 2, code: int = 0) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        error_code=code,
        api_keys=[
            ApiVersion(api_key=int(ApiKeys.SASL_HANDSHAKE), min_version=0, max_version=handshake),
            ApiVersion(api_key=int(ApiKeys.SASL_AUTHENTICATE), min_version=0, max_version=authenticate),
        ],
    )


def token(data: bytes, code: int = 0, text: str | None = None) -> SaslAuthenticateResponse:
    return SaslAuthenticateResponse(error_code=code, error_message=text, auth_bytes=data)


CHOSEN = SaslHandshakeResponse(error_code=0, mechanisms=["ECHO"])


@pytest.mark.parametrize("newest", [0, 1, 2, 9])
def test_an_exchange_of_several_tokens_in_the_newest_version_of_both(broker: Broker, newest: int) -> None:
    for answer in (versions(authenticate=newest), CHOSEN, token(b"once more")):
        broker.step(answer)
        assert not broker.authenticator.complete
    broker.step(token(b"done"))
    assert broker.authenticator.complete
    assert not broker.authenticator.wants_write
    assert broker.requests[1].mechanism == "ECHO"
    assert [bytes(each.auth_bytes) for each in broker.requests[2:]] == [b"first", b"second"]


def test_another_exchange_over_the_same_connection_begins_with_the_handshake(broker: Broker) -> None:
    for answer in (versions(), CHOSEN, token(b"done")):
        broker.step(answer)
    assert broker.authenticator.session_lifetime_ms == 0
    broker.authenticator.restart()
    assert not broker.authenticator.complete
    for answer in (CHOSEN, token(b"once more")):
        broker.step(answer)
    broker.step(SaslAuthenticateResponse(auth_bytes=b"done", session_lifetime_ms=30_000))
    assert broker.authenticator.complete
    assert broker.authenticator.session_lifetime_ms == 30_000
    kinds = [type(request).__name__.removesuffix("Request") for request in broker.requests]
    assert kinds == [
        *("ApiVersions", "SaslHandshake", "SaslAuthenticate"),
        *("SaslHandshake", "SaslAuthenticate", "SaslAuthenticate"),
    ]


def test_an_answer_may_come_byte_by_byte(broker: Broker) -> None:
    def dripping(frame: bytes) -> bytes:
        for i in range(len(frame) - 1):
            broker.far.sendall(frame[i : i + 1])
            broker.authenticator.authenticate()
        return frame[-1:]

    for answer in (versions(), CHOSEN, token(b"done")):
        broker.step(answer, change=dripping)
    assert broker.authenticator.complete


@pytest.mark.parametrize(
    ("answers", "error", "text"),
    [
        ([versions(code=35)], UnsupportedVersionError, "version"),
        ([versions(handshake=0)], UnsupportedVersionError, "too old"),
        ([versions(authenticate=-1)], UnsupportedVersionError, "too old"),
        (
            [versions(), SaslHandshakeResponse(error_code=33, mechanisms=["PLAIN", "GSSAPI"])],
            UnsupportedSaslMechanismError,
            r"does not offer ECHO; offered are: GSSAPI, PLAIN \(sasl.mechanism\)",
        ),
        ([versions(), SaslHandshakeResponse(error_code=34, mechanisms=[])], KafkaError, "security.protocol"),
        (
            [
                versions(),
                CHOSEN,
                token(b"", ErrorCode.SASL_AUTHENTICATION_FAILED, "Invalid username or password"),
            ],
            SaslAuthenticationError,
            "Invalid username or password",
        ),
        (
            [versions(), CHOSEN, token(b"", ErrorCode.SASL_AUTHENTICATION_FAILED)],
            SaslAuthenticationError,
            "refused the SASL credentials",
        ),
        ([versions(), CHOSEN, token(b"nonsense")], SaslAuthenticationError, "not done"),
    ],
)
def test_a_refusal_has_its_class_and_says_why(
    broker: Broker, answers: list[Any], error: type[KafkaError], text: str
) -> None:
    for answer in answers[:-1]:
        broker.step(answer)
    with pytest.raises(error, match=text):
        broker.step(answers[-1])
    assert not broker.authenticator.complete


def test_an_answer_to_another_request_is_refused(broker: Broker) -> None:
    with pytest.raises(SaslAuthenticationError, match="in place of 0"):
        broker.step(versions(), change=lambda frame: frame[:4] + b"\0\0\0\x07" + frame[8:])


def test_an_end_in_the_middle_says_what_may_be_wrong(broker: Broker) -> None:
    broker.step(versions())
    broker.take()
    broker.far.close()
    with pytest.raises(
        ConnectionResetError, match=r"with ECHO; are the credentials of sasl\.jaas\.config right"
    ):
        broker.authenticator.authenticate()


def test_an_answer_of_an_impossible_size_is_refused_before_memory_is_taken(broker: Broker) -> None:
    with pytest.raises(KafkaError, match="announced 1000000 bytes"):
        broker.step(versions(), change=lambda frame: (1_000_000).to_bytes(4, "big"))


def test_a_request_that_the_socket_does_not_take_at_once_is_written_later(broker: Broker) -> None:
    sock = broker.transport.sock
    with contextlib.suppress(BlockingIOError):
        while True:
            sock.send(b"\0" * 100_000)
    broker.authenticator.authenticate()
    assert broker.authenticator.wants_write
    broker.far.setblocking(False)
    with contextlib.suppress(BlockingIOError):
        while True:
            broker.far.recv(1_000_000)
    broker.far.settimeout(5)
    broker.authenticator.authenticate()
    assert not broker.authenticator.wants_write
    assert broker.take()[0].api_key == ApiKeys.API_VERSIONS


@pytest.mark.parametrize("error", [ConnectionError("no token"), SaslAuthenticationError("no ticket")])
def test_credentials_that_are_not_there_end_the_exchange_and_not_its_beginning(
    broker: Broker, error: Exception
) -> None:
    # Whoever begins a connection is ready for a socket that fails, and for nothing else.
    class Missing:
        mechanism = "ECHO"

        def new_mechanism(self, host: str) -> Echo:
            raise error

    broker.authenticator = SaslClientAuthenticator(
        broker.transport, cast(Any, Missing()), "me", "broker.example"
    )
    with pytest.raises(type(error), match=str(error)):
        broker.step(versions())


def test_every_exchange_is_one_of_the_credentials_as_they_are_then(broker: Broker) -> None:
    asked: list[str] = []

    class Counted(Credentials):
        def new_mechanism(self, host: str) -> Echo:
            asked.append(host)
            return super().new_mechanism(host)

    broker.authenticator = SaslClientAuthenticator(
        broker.transport, cast(Any, Counted()), "me", "broker.example"
    )
    assert not asked
    broker.step(versions())
    assert len(asked) == 1
    broker.authenticator.restart()
    assert len(asked) == 2
