"""Certificates for tests: an authority, and what it signs, as the files that settings name."""

from __future__ import annotations

import datetime as dt
import ssl
from ipaddress import ip_address
from pathlib import Path

import trustme
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)


def self_signed(directory: Path, address: str) -> Path:
    """Return the file of a key and a certificate for `address` that nobody else has signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, address)])
    now = dt.datetime.now(dt.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=2))
        .not_valid_after(now + dt.timedelta(days=2))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = directory / "self-signed.pem"
    path.write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        + certificate.public_bytes(Encoding.PEM)
    )
    return path


class Authority:
    """Signs certificates; its files are in `directory`."""

    def __init__(self, directory: Path) -> None:
        self._authority = trustme.CA()
        self.directory = directory
        self.file = directory / "authority.pem"
        """Its own certificate."""
        self._authority.cert_pem.write_to_path(str(self.file))

    @property
    def pem(self) -> str:
        """Its own certificate."""
        return self._authority.cert_pem.bytes().decode()

    def issue(self, *names: str, expired: bool = False, password: str | None = None) -> Path:
        """Return the file of a key (in PKCS #8, hidden by `password`) and its certificate for `names`."""
        now = dt.datetime.now(dt.UTC)
        until = now - dt.timedelta(days=1) if expired else None
        since = now - dt.timedelta(days=2)
        made = self._authority.issue_cert(*names, not_before=since, not_after=until)
        key = load_pem_private_key(made.private_key_pem.bytes(), None)
        hidden = NoEncryption() if password is None else BestAvailableEncryption(password.encode())
        number = len(list(self.directory.iterdir()))
        path = self.directory / f"{number}.pem"
        certificates = b"".join(each.bytes() for each in made.cert_chain_pems)
        path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, hidden) + certificates)
        return path

    def revoke(self, pair: Path) -> Path:
        """Return the file of a list in which the certificate of `pair` is revoked."""
        certificate = x509.load_pem_x509_certificate(
            pair.read_bytes().partition(b"-----END PRIVATE KEY-----")[2]
        )
        now = dt.datetime.now(dt.UTC)
        entry = (
            x509.RevokedCertificateBuilder()
            .serial_number(certificate.serial_number)
            .revocation_date(now - dt.timedelta(hours=1))
            .build()
        )
        made = (
            x509.CertificateRevocationListBuilder()
            .issuer_name(certificate.issuer)
            .last_update(now - dt.timedelta(hours=1))
            .next_update(now + dt.timedelta(days=1))
            .add_revoked_certificate(entry)
        )
        key = load_pem_private_key(self._authority.private_key_pem.bytes(), None)
        path = self.directory / "revoked.pem"
        path.write_bytes(made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))  # type: ignore[arg-type]
        return path

    def server_context(self, pair: Path, *, client_certificate: bool = False) -> ssl.SSLContext:
        """Return the context of a server with the key and certificate of `pair`."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(pair)
        if client_certificate:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(self.file)
        return context
