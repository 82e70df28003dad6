"""Trusted certificates, and one's own key and certificates, out of PEM text, PKCS #12 and Java's key stores.

The content decides which of them a file is: since Java 9 most files that are called .jks are PKCS #12, and
`ssl.keystore.type` says JKS by default.
"""

from __future__ import annotations

import base64
import re
from pathlib import Path
from typing import Any

import attrs

from kclient.config.ssl_configs import SslConfig
from kclient.config.values import Password
from kclient.errors import ConfigError
from kclient.security.jks import MAGIC, JksError, read_jks

_JCEKS_MAGIC = b"\xce\xce\xce\xce"
_PEM = re.compile(rb"-----BEGIN [A-Z0-9 ]+-----")
_PRIVATE_KEY = re.compile(r"-----BEGIN ([A-Z ]*PRIVATE KEY)-----.+?-----END \1-----", re.DOTALL)
_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_MOST_BYTES = 16 * 1024 * 1024  # of a store; the largest in use, of every public authority, has some 200 KB


@attrs.frozen
class KeyPair:
    """One's own private key and certificates, in PEM; the key as hidden as it was given."""

    private_key: str = attrs.field(repr=False)
    certificates: str = attrs.field(repr=False)
    password: str | None = attrs.field(default=None, repr=False)
    """The password that the key still needs."""


def trusted_certificates(config: SslConfig) -> str | None:
    """Return the certificates of `ssl.truststore.*` in PEM, None if the system's are to be trusted.

    Raises ConfigError that names the setting and the file.
    """
    text = _secret(config.ssl_truststore_certificates)
    location = config.ssl_truststore_location
    if text is not None:
        _only_one("ssl.truststore.certificates", "ssl.truststore.location", location)
        return _certificates_in(text, "ssl.truststore.certificates")
    if location is None:
        return None
    data = _read("ssl.truststore.location", location)
    where = f"ssl.truststore.location {location}"
    password = _secret(config.ssl_truststore_password)
    if _PEM.search(data):
        return _certificates_in(data.decode("utf-8", "replace"), where)
    if data.startswith(MAGIC):
        found = list(_jks(data, password, where).trusted)
    else:
        key_and_certificates = _pkcs12(data, password, where, "ssl.truststore.password")
        found = [_der_of(each.certificate) for each in key_and_certificates.additional_certs]
    if not found:
        raise ConfigError(
            f"{where} holds no trusted certificate; one's own key and certificates belong into ssl.keystore.location",
            name="ssl.truststore.location",
        )
    return "".join(_pem(each, "CERTIFICATE") for each in found)


def own_key_pair(config: SslConfig) -> KeyPair | None:
    """Return the key and the certificates of `ssl.keystore.*`, None if there are none.

    Raises ConfigError that names the setting and the file.
    """
    key, chain = _secret(config.ssl_keystore_key), _secret(config.ssl_keystore_certificate_chain)
    location = config.ssl_keystore_location
    key_password = _secret(config.ssl_key_password)
    if key is not None or chain is not None:
        if key is None or chain is None:
            raise ConfigError(
                "ssl.keystore.key and ssl.keystore.certificate.chain belong together; give both.",
                name="ssl.keystore.certificate.chain" if chain is None else "ssl.keystore.key",
            )
        _only_one("ssl.keystore.key", "ssl.keystore.location", location)
        certificates = _certificates_in(chain, "ssl.keystore.certificate.chain")
        return KeyPair(_private_key_in(key, "ssl.keystore.key"), certificates, key_password)
    if location is None:
        return None
    data = _read("ssl.keystore.location", location)
    where = f"ssl.keystore.location {location}"
    if _PEM.search(data):
        text = data.decode("utf-8", "replace")
        return KeyPair(_private_key_in(text, where), _certificates_in(text, where), key_password)
    password = _secret(config.ssl_keystore_password)
    if password is None:
        raise ConfigError(
            f"{where} is a key store, which needs ssl.keystore.password.", name="ssl.keystore.password"
        )
    if data.startswith(MAGIC):
        return _key_pair_of_jks(data, password, key_password, where)
    return _key_pair_of_pkcs12(data, password, where)


def _key_pair_of_jks(data: bytes, password: str, key_password: str | None, where: str) -> KeyPair:
    entries = _jks(data, password, where).keys
    if not entries:
        raise ConfigError(f"{where} holds no private key.", name="ssl.keystore.location")
    entry = entries[0]
    try:
        private_key = entry.private_key(key_password or password)
    except JksError as error:
        raise ConfigError(
            f"{where}: {error}; set ssl.key.password if the key has another one than the store.",
            name="ssl.key.password",
        ) from None
    certificates = "".join(_pem(each, "CERTIFICATE") for each in entry.certificates)
    return KeyPair(_pem(private_key, "PRIVATE KEY"), certificates)


def _key_pair_of_pkcs12(data: bytes, password: str, where: str) -> KeyPair:
    found = _pkcs12(data, password, where, "ssl.keystore.password")
    # Here at the latest it is known to be installed.
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    if found.key is None or found.cert is None:
        raise ConfigError(f"{where} holds no private key with its certificate.", name="ssl.keystore.location")
    private_key = found.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode("ascii")
    chain = [found.cert, *found.additional_certs]
    return KeyPair(private_key, "".join(_pem(_der_of(each.certificate), "CERTIFICATE") for each in chain))


def _pkcs12(data: bytes, password: str | None, where: str, setting: str) -> Any:
    if data.startswith(_JCEKS_MAGIC):
        raise ConfigError(
            f"{where} is a key store of the type JCEKS, which is not read; keytool -importkeystore makes PKCS12 of it.",
            name=setting,
        )
    try:
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ImportError:
        raise ConfigError(
            f"{where} is no PEM text; for PKCS12 the package cryptography is needed: pip install 'kclient-kafka[tls]'.",
            name=setting,
        ) from None
    try:
        return load_pkcs12(data, None if password is None else password.encode())
    except ValueError as error:
        raise ConfigError(
            f"{where} cannot be read ({error}); is it PEM, PKCS12 or JKS, and {setting} its password?",
            name=setting,
        ) from None


def _jks(data: bytes, password: str | None, where: str) -> Any:
    try:
        return read_jks(data, password)
    except JksError as error:
        raise ConfigError(f"{where} cannot be read: {error}.", name=where.split(maxsplit=1)[0]) from None


def _der_of(certificate: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    der: bytes = certificate.public_bytes(Encoding.DER)
    return der


def _pem(der: bytes, kind: str) -> str:
    text = base64.encodebytes(der).decode("ascii")
    return f"-----BEGIN {kind}-----\n{text}-----END {kind}-----\n"


def _certificates_in(text: str, where: str) -> str:
    found: list[str] = [match[0] for match in _CERTIFICATE.finditer(text)]
    if not found:
        raise ConfigError(f"{where} holds no certificate in PEM.", name=where.split(maxsplit=1)[0])
    return "\n".join([*found, ""])


def _private_key_in(text: str, where: str) -> str:
    found = _PRIVATE_KEY.search(text)
    if found is None:
        raise ConfigError(f"{where} holds no private key in PEM.", name=where.split(maxsplit=1)[0])
    return found[0] + "\n"


def _secret(value: Password | None) -> str | None:
    return None if value is None else value.value


def _only_one(given: str, other: str, location: str | None) -> None:
    if location is not None:
        raise ConfigError(f"{given} and {other} exclude each other; leave one out.", name=other)


def _read(setting: str, location: str) -> bytes:
    try:
        with Path(location).open("rb") as file:
            data = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{setting} {location} cannot be read: {error.strerror}.", name=setting) from None
    if len(data) > _MOST_BYTES:
        raise ConfigError(f"{setting} {location} is larger than a key store can be.", name=setting)
    return data
