"""CertificateAuthority: certificates for a test, made in a moment and worth nothing elsewhere."""

from __future__ import annotations

import datetime as dt
import ipaddress
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kclient.errors import ConfigError

if TYPE_CHECKING:
    from cryptography import x509
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey

_LIFETIME = dt.timedelta(days=30)
_SKEW = dt.timedelta(days=1)  # for clocks that are not quite right


class CertificateAuthority:
    """Signs certificates; all files are in `directory`. Not thread-safe.

    Raises ConfigError without the package cryptography, which the extra `testing` installs.
    """

    def __init__(self, directory: Path) -> None:
        try:
            from cryptography.hazmat.primitives.asymmetric import ec
        except ImportError:
            raise ConfigError(
                "Certificates are made with the package cryptography: pip install 'kclient-kafka[testing]'",
                name="security",
            ) from None
        self._directory = directory
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._certificate = self._signed("kclient test authority", self._key, authority=True)
        self.file = directory / "authority.pem"
        """The authority's own certificate, which clients trust."""
        self.file.write_bytes(_pem(self._certificate))

    @property
    def pem(self) -> str:
        """The authority's own certificate."""
        return self.file.read_text()

    def issue(self, name: str, hosts: Sequence[str] = ()) -> Path:
        """Return a file with a key and its certificate for `name`, who is reached at `hosts` (names or addresses)."""
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._signed(name, key, hosts)
        path = self._directory / f"{len(list(self._directory.iterdir()))}.pem"
        path.touch(mode=0o600)
        hidden = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        path.write_bytes(hidden + _pem(certificate))
        return path

    def _signed(
        self, name: str, key: EllipticCurvePrivateKey, hosts: Sequence[str] = (), *, authority: bool = False
    ) -> x509.Certificate:
        from cryptography import x509
        from cryptography.hazmat.primitives import hashes

        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        now = dt.datetime.now(dt.UTC)
        made = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(subject if authority else self._certificate.subject)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _SKEW)
            .not_valid_after(now + _LIFETIME)
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False
            )
        )
        if hosts:
            names = x509.SubjectAlternativeName([_general_name(host) for host in hosts])
            made = made.add_extension(names, critical=False)
        return made.sign(self._key, hashes.SHA256())


def _general_name(host: str) -> x509.GeneralName:
    from cryptography import x509

    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(certificate: x509.Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.PEM)
