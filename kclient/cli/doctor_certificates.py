"""A look at a broker's certificate, also at one that a client does not accept."""

from __future__ import annotations

import datetime as dt
import ssl
from collections.abc import Callable, Mapping
from typing import Any, Final

import attrs

from kclient.config.ssl_configs import SslConfig
from kclient.errors import KafkaError
from kclient.network.channel_builder import TlsContextSource
from kclient.network.tls_transport import NAMES_SETTING
from kclient.security.tls import client_context

_NO_CHECK_TIME: Final = 0x200000  # X509_V_FLAG_NO_CHECK_TIME, for which Python has no name

Connect = Callable[[TlsContextSource], None]
"""Makes a connection with these contexts, as far as the end of its handshake; raises KafkaError."""


@attrs.frozen
class Handshake:
    """An outcome of a handshake: what was agreed on, and the certificate, also decoded if it was checked."""

    protocol: str
    cipher: str
    der: bytes | None
    decoded: Mapping[str, Any]


@attrs.define(eq=False, repr=False)
class NotedHandshakes:
    """Contexts of another source whose handshakes are noted as they end: later the connection may be gone."""

    _source: TlsContextSource
    done: list[Handshake] = attrs.field(factory=list, init=False)

    def current(self) -> ssl.SSLContext:
        """Return the context for the next connection."""
        done = self.done

        class Noting(ssl.SSLObject):
            def do_handshake(self) -> None:
                super().do_handshake()
                agreed = self.cipher()
                cipher = "" if agreed is None else agreed[0]
                decoded = self.getpeercert() or {}
                done.append(Handshake(self.version() or "", cipher, self.getpeercert(True), decoded))

        context = self._source.current()
        context.sslobject_class = Noting
        return context


@attrs.frozen
class _Fixed:
    _context: ssl.SSLContext

    def current(self) -> ssl.SSLContext:
        return self._context


def describe(decoded: Mapping[str, Any], now: dt.datetime) -> dict[str, Any]:
    """Return what matters of a certificate, as Python decodes it."""
    until = _time(decoded["notAfter"])
    return {
        "subject": _name(decoded.get("subject", ())),
        "issuer": _name(decoded.get("issuer", ())),
        "names": [f"{kind}:{name}" for kind, name in decoded.get("subjectAltName", ())],
        "valid_from": _time(decoded["notBefore"]).isoformat(),
        "valid_until": until.isoformat(),
        "days_left": (until - now).days,
    }


def look_at_refused(config: SslConfig, connect: Connect) -> dict[str, Any] | None:
    """Return what the certificate says that a handshake has failed for, and whether it has the name; None without one.

    Nothing is said over these connections: they end with their handshakes.
    """
    anything = client_context(config)
    anything.check_hostname = False
    anything.verify_mode = ssl.CERT_NONE
    try:
        der = _shake_hands(anything, connect).der
        if der is None:
            return None
        # Python decodes only what it has checked: here against itself, whatever the time.
        itself = client_context(config)
        itself.load_verify_locations(cadata=der)
        itself.verify_flags &= ~ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF
        itself.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN | ssl.VerifyFlags(_NO_CHECK_TIME)
        itself.check_hostname = True
        try:
            decoded, matches = _shake_hands(itself, connect).decoded, True
        except KafkaError as error:
            if error.connection is None or error.connection.setting != NAMES_SETTING:
                raise
            itself.check_hostname = False
            decoded, matches = _shake_hands(itself, connect).decoded, False
    except (KafkaError, ssl.SSLError):
        return None
    return {**describe(decoded, dt.datetime.now(dt.UTC)), "has_the_name": matches}


def _shake_hands(context: ssl.SSLContext, connect: Connect) -> Handshake:
    noted = NotedHandshakes(_Fixed(context))
    try:
        connect(noted)
    except KafkaError:
        # With TLS 1.3 a client without a certificate is refused behind the handshake.
        if not noted.done:
            raise
    return noted.done[-1]


def _time(text: str) -> dt.datetime:
    return dt.datetime.fromtimestamp(ssl.cert_time_to_seconds(text), dt.UTC)


def _name(parts: Any) -> str:
    return ", ".join(f"{key}={value}" for part in parts for key, value in part)
