"""TlsContexts: from settings to what a TLS connection begins with, made again when a file has changed.

The settings are Java's (`ssl.*`); what they mean is decided by the Java client's DefaultSslEngineFactory and KIP-651.
"""

from __future__ import annotations

import contextlib
import os
import ssl
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs

from kclient.config.ssl_configs import SslConfig
from kclient.errors import ConfigError
from kclient.security.cipher_suites import openssl_ciphers
from kclient.security.key_stores import KeyPair, own_key_pair, trusted_certificates
from kclient.utils.log_context import LogContext, Logger

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
_CLIENT_AUTH = {"none": ssl.CERT_NONE, "requested": ssl.CERT_OPTIONAL, "required": ssl.CERT_REQUIRED}
_Stamp = tuple[object, ...]


def client_context(config: SslConfig) -> ssl.SSLContext:
    """Return a context of a client. Raises ConfigError that names the setting that is wrong."""
    context = _new_context(ssl.PROTOCOL_TLS_CLIENT, config)
    context.check_hostname = bool(config.ssl_endpoint_identification_algorithm)
    _trust(context, config)
    pair = own_key_pair(config)
    if pair is not None:
        _load(context, pair)
    return context


def server_context(config: SslConfig, client_auth: str) -> ssl.SSLContext:
    """Return a context of a server, which asks clients for a certificate as `client_auth` says: none, requested or
    required. Raises ConfigError that names the setting that is wrong.
    """
    context = _new_context(ssl.PROTOCOL_TLS_SERVER, config)
    pair = own_key_pair(config)
    if pair is None:
        raise ConfigError(
            "A listener with TLS needs a key and its certificates: set ssl.keystore.location, or ssl.keystore.key and "
            "ssl.keystore.certificate.chain.",
            name="ssl.keystore.location",
        )
    _load(context, pair)
    context.verify_mode = _CLIENT_AUTH[client_auth]
    if context.verify_mode is not ssl.CERT_NONE:
        _trust(context, config)
    return context


def _new_context(protocol: ssl._SSLMethod, config: SslConfig) -> ssl.SSLContext:
    """Return a context that as yet has no certificates."""
    _check(config)
    context = ssl.SSLContext(protocol)
    # As Java's client. In the middle of one, nothing could be written before the other side has answered.
    context.options |= ssl.OP_NO_RENEGOTIATION
    _set_versions(context, config)
    if config.ssl_cipher_suites:
        _set_ciphers(context, config.ssl_cipher_suites)
    if config.kclient_ssl_keylog_location is not None:
        _log_keys(context, config.kclient_ssl_keylog_location)
    return context


def _check(config: SslConfig) -> None:
    """Refuse values that Java leaves to its security providers, and that mean nothing here."""
    stores = ("jks", "pem", "pkcs12")
    for name, value, known in (
        ("ssl.protocol", config.ssl_protocol, ("tls", "tlsv1.2", "tlsv1.3")),
        (
            "ssl.endpoint.identification.algorithm",
            config.ssl_endpoint_identification_algorithm,
            ("", "https"),
        ),
        ("ssl.truststore.type", config.ssl_truststore_type, stores),
        ("ssl.keystore.type", config.ssl_keystore_type, stores),
    ):
        if value.lower() not in known:
            shown = ", ".join(map(repr, known))
            raise ConfigError(f"{name}: {value!r} cannot be used; known are {shown}, in any case.", name=name)


def _set_versions(context: ssl.SSLContext, config: SslConfig) -> None:
    limited = config.ssl_protocol.lower() == "tlsv1.2"
    newest = ssl.TLSVersion.TLSv1_2 if limited else ssl.TLSVersion.TLSv1_3
    for name in config.ssl_enabled_protocols:
        if name not in _VERSIONS:
            raise ConfigError(
                f"ssl.enabled.protocols: {name} cannot be used; known are {' and '.join(_VERSIONS)}.",
                name="ssl.enabled.protocols",
            )
    usable = [_VERSIONS[name] for name in config.ssl_enabled_protocols if _VERSIONS[name] <= newest]
    if not usable:
        raise ConfigError(
            f"ssl.protocol {config.ssl_protocol} allows none of ssl.enabled.protocols "
            f"{', '.join(config.ssl_enabled_protocols)}.",
            name="ssl.protocol",
        )
    context.minimum_version, context.maximum_version = min(usable), max(usable)


def _set_ciphers(context: ssl.SSLContext, suites: list[str]) -> None:
    try:
        context.set_ciphers(openssl_ciphers(suites))
    except (ValueError, ssl.SSLError) as error:
        raise ConfigError(f"ssl.cipher.suites: {error}.", name="ssl.cipher.suites") from None


def _trust(context: ssl.SSLContext, config: SslConfig) -> None:
    trusted = trusted_certificates(config)
    if trusted is None:
        context.load_default_certs()
    else:
        try:
            context.load_verify_locations(cadata=trusted)
        except ssl.SSLError as error:
            name = "ssl.truststore." + ("location" if config.ssl_truststore_location else "certificates")
            raise ConfigError(f"{name}: the certificates cannot be used ({error}).", name=name) from None
    location = config.kclient_ssl_crl_location
    if location is not None:
        try:
            context.load_verify_locations(cafile=location)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(
                f"kclient.ssl.crl.location {location} cannot be used: {error}.",
                name="kclient.ssl.crl.location",
            ) from None
        context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF


def _load(context: ssl.SSLContext, pair: KeyPair) -> None:
    # Without a password OpenSSL would ask the terminal for it.
    password = pair.password or ""
    with _as_file(f"{pair.private_key}{pair.certificates}") as path:
        try:
            context.load_cert_chain(path, password=password)
        except ssl.SSLError as error:
            reason = error.reason or str(error)
            if reason == "KEY_VALUES_MISMATCH":
                text, name = "The private key does not belong to the certificate", "ssl.keystore.location"
            elif pair.password is None and "ENCRYPTED" in pair.private_key:
                text, name = "The private key is encrypted; set ssl.key.password", "ssl.key.password"
            elif pair.password is not None:
                text, name = f"ssl.key.password does not open the private key ({reason})", "ssl.key.password"
            else:
                text, name = (
                    f"The key and certificates of ssl.keystore.* cannot be used ({reason})",
                    "ssl.keystore.key",
                )
            raise ConfigError(f"{text}.", name=name) from None


@contextlib.contextmanager
def _as_file(text: str) -> Iterator[str]:
    """A file with `text` for as long as OpenSSL needs one; of memory where there is such a thing, else of one's own."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("kclient", os.MFD_CLOEXEC)
        path = Path(f"/proc/self/fd/{fd}")
        try:
            os.write(fd, text.encode())
            if path.exists():
                yield str(path)
                return
        finally:
            os.close(fd)
    fd, name = tempfile.mkstemp(prefix="kclient-")
    try:
        with os.fdopen(fd, "w") as file:
            file.write(text)
        yield name
    finally:
        os.unlink(name)


def _log_keys(context: ssl.SSLContext, location: str) -> None:
    try:
        context.keylog_filename = location
    except OSError as error:
        raise ConfigError(
            f"kclient.ssl.keylog.location {location} cannot be written: {error.strerror}.",
            name="kclient.ssl.keylog.location",
        ) from None


@attrs.define(eq=False, repr=False)
class TlsContexts:
    """The context for new connections. Belongs to one thread, which alone calls `current`; the contexts it gives may be
    used by any.

    A file that has changed is read again for the next connection, those that there are go on (KIP-1119). One that
    cannot be read then is warned of, and the context of before stays.
    """

    _config: SslConfig
    _log_context: LogContext
    _make: Callable[[SslConfig], ssl.SSLContext] = attrs.field(default=client_context, kw_only=True)
    _log: Logger = attrs.field(init=False)
    _context: ssl.SSLContext = attrs.field(init=False)
    _stamp: _Stamp = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._log = self._log_context.logger(__name__)
        self._stamp = self._files()
        self._context = self._make(self._config)

    def current(self) -> ssl.SSLContext:
        """Return the context for a new connection."""
        stamp = self._files()
        if stamp != self._stamp:
            self._stamp = stamp
            try:
                self._context = self._make(self._config)
            except ConfigError as error:
                self._log.warning(
                    "Keys or certificates have changed and cannot be used, the old ones are: %s", error
                )
            else:
                self._log.info("Keys or certificates have changed, and hold for new connections")
        return self._context

    def use(self, config: SslConfig) -> None:
        """Have other settings for the next connection on. For any thread."""
        # In this order: whoever sees that the stamp has gone sees the settings, too.
        self._config = config
        self._stamp = (object(),)

    def _files(self) -> _Stamp:
        found: list[object] = []
        config = self._config
        for location in (
            config.ssl_truststore_location,
            config.ssl_keystore_location,
            config.kclient_ssl_crl_location,
        ):
            if location is not None:
                try:
                    status = os.stat(location)
                except OSError as error:
                    found.append(error.errno)
                else:
                    # Kubernetes replaces a link, an editor the file, `cp` its content.
                    found.append((status.st_ino, status.st_mtime_ns, status.st_size))
        return tuple(found)
