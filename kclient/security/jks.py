"""Reader of Java key stores in their old format (JKS), which Java wrote by default until version 9.

The format, as `keytool` writes it: a header, entries (1: a private key with its certificates, 2: a trusted
certificate), and a SHA-1 over the password and all of it. Private keys are hidden by Sun's own scheme, a stream of
SHA-1 digests of password and salt.
"""

from __future__ import annotations

import hashlib
import hmac
from operator import xor

import attrs

MAGIC = b"\xfe\xed\xfe\xed"
_WHITENER = b"Mighty Aphrodite"
_DIGEST_BYTES = 20
_KEY, _TRUSTED = 1, 2
# The object identifier 1.3.6.1.4.1.42.2.17.1.1, in DER: a key that is hidden by Sun's scheme.
_SUN_KEY_PROTECTOR = bytes.fromhex("060a2b060104012a02110101")
_SEQUENCE, _OCTETS = 0x30, 0x04


class JksError(ValueError):
    """The bytes are no key store, or the password is not theirs."""


@attrs.frozen
class PrivateKeyEntry:
    """A private key, hidden as it stands in the store, and its certificates, the key's own first. All in DER."""

    alias: str
    hidden_key: bytes = attrs.field(repr=False)
    certificates: tuple[bytes, ...] = attrs.field(repr=False)

    def private_key(self, password: str) -> bytes:
        """Return the key in PKCS #8. Raises JksError if the password is not that of the key."""
        hidden = _octets_of_hidden_key(self.hidden_key)
        if len(hidden) < 2 * _DIGEST_BYTES:
            raise JksError(f"the key of entry {self.alias!r} is too short")
        secret = password.encode("utf-16-be")
        block, covered = hidden[:_DIGEST_BYTES], hidden[_DIGEST_BYTES:-_DIGEST_BYTES]
        stream = bytearray()
        while len(stream) < len(covered):
            block = hashlib.sha1(secret + block).digest()
            stream += block
        plain = bytes(map(xor, covered, stream))
        if not hmac.compare_digest(hashlib.sha1(secret + plain).digest(), hidden[-_DIGEST_BYTES:]):
            raise JksError(f"the password of the key of entry {self.alias!r} is wrong")
        return plain


@attrs.frozen
class JavaKeyStore:
    """The content of a store."""

    keys: tuple[PrivateKeyEntry, ...]
    trusted: tuple[bytes, ...] = attrs.field(repr=False)
    """Trusted certificates, in DER."""


def read_jks(data: bytes, password: str | None) -> JavaKeyStore:
    """Read a store; without a password it is not checked that nobody has changed it, as in Java.

    Raises JksError.
    """
    reader = _Reader(data)
    if reader.take(4) != MAGIC:
        raise JksError("it does not begin as a Java key store does")
    version = reader.number(4)
    if version not in {1, 2}:
        raise JksError(f"its version is {version}; known are 1 and 2")
    keys: list[PrivateKeyEntry] = []
    trusted: list[bytes] = []
    for _ in range(reader.number(4)):
        kind = reader.number(4)
        alias = reader.take(reader.number(2)).decode("utf-8", "replace")
        reader.take(8)  # when it was made
        if kind == _KEY:
            hidden = reader.take(reader.number(4))
            chain = [reader.certificate(version) for _ in range(reader.number(4))]
            keys.append(PrivateKeyEntry(alias, hidden, tuple(chain)))
        elif kind == _TRUSTED:
            trusted.append(reader.certificate(version))
        else:
            raise JksError(f"entry {alias!r} is of the unknown kind {kind}")
    end = reader.at
    check = reader.take(_DIGEST_BYTES)
    if password is not None:
        found = hashlib.sha1(password.encode("utf-16-be") + _WHITENER + data[:end]).digest()
        if not hmac.compare_digest(found, check):
            raise JksError("its password is wrong, or somebody has changed it")
    return JavaKeyStore(tuple(keys), tuple(trusted))


@attrs.define
class _Reader:
    data: bytes
    at: int = 0

    def take(self, size: int) -> bytes:
        if size > len(self.data) - self.at:
            raise JksError(f"it ends too early: {size} bytes are announced at {self.at} of {len(self.data)}")
        taken = self.data[self.at : self.at + size]
        self.at += size
        return taken

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def certificate(self, version: int) -> bytes:
        if version == 2:
            kind = self.take(self.number(2))
            if kind != b"X.509":
                raise JksError(f"a certificate is of the unknown type {kind!r}")
        return self.take(self.number(4))


def _octets_of_hidden_key(der: bytes) -> bytes:
    """Return the octets of an EncryptedPrivateKeyInfo (RFC 5208)."""
    outer = _content(der, _SEQUENCE)
    algorithm = _content(outer, _SEQUENCE)
    if not algorithm.startswith(_SUN_KEY_PROTECTOR):
        raise JksError("a key is not hidden in the way of JKS")
    header = outer.index(algorithm) + len(algorithm)
    return _content(outer[header:], _OCTETS)


def _content(der: bytes, tag: int) -> bytes:
    """Return the content of the value that `der` begins with."""
    if len(der) < 2 or der[0] != tag:
        raise JksError("a key is not in DER")
    size, at = der[1], 2
    if size & 0x80:
        at += size & 0x7F
        if at > len(der):
            raise JksError("a key is not in DER")
        size = int.from_bytes(der[2:at], "big")
    if size > len(der) - at:
        raise JksError("a key ends too early")
    return der[at : at + size]
