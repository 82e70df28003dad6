"""Settings of TLS, shared by clients and broker."""

from __future__ import annotations

import attrs

from kclient.config.config_def import HIGH, JVM, LATER, LOW, MEDIUM
from kclient.config.declare import Config, class_, list_, password, string
from kclient.config.validators import NoDuplicates
from kclient.config.values import Password


@attrs.frozen(kw_only=True)
class SslConfig(Config):
    """Settings by which TLS connections are made and checked."""

    ssl_protocol: str = string(
        "TLSv1.3",
        MEDIUM,
        "The newest TLS version that connections may use: TLSv1.2, TLSv1.3, or TLS for the newest there is.",
    )
    ssl_enabled_protocols: list[str] = list_(
        ["TLSv1.2", "TLSv1.3"],
        MEDIUM,
        "The TLS versions that connections may use: TLSv1.2, TLSv1.3 or both.",
        NoDuplicates(),
    )
    ssl_cipher_suites: list[str] = list_(
        [],
        LOW,
        "The cipher suites of TLS 1.2 that connections may use, by the names of IANA or OpenSSL; empty leaves the "
        "choice to OpenSSL, as it always has it for TLS 1.3.",
        NoDuplicates(),
    )
    ssl_endpoint_identification_algorithm: str = string(
        "https",
        LOW,
        "How the host name is checked against the broker's certificate: https; empty turns the check off.",
    )
    ssl_truststore_type: str = string(
        "JKS",
        MEDIUM,
        "The format of the trusted certificates: PEM, PKCS12 or JKS. What a file holds decides, whatever is said here.",
    )
    ssl_truststore_location: str | None = string(
        None,
        HIGH,
        "The file with the certificates of the authorities to trust; without it those of the system are trusted. "
        "Read again for new connections when it changes.",
    )
    ssl_truststore_password: Password | None = password(
        None, HIGH, "The password of the file with the trusted certificates."
    )
    ssl_truststore_certificates: Password | None = password(
        None, HIGH, "The trusted certificates themselves, as PEM text."
    )
    ssl_keystore_type: str = string(
        "JKS",
        MEDIUM,
        "The format of the client's own key and certificates: PEM, PKCS12 or JKS. What a file holds decides, whatever "
        "is said here.",
    )
    ssl_keystore_location: str | None = string(
        None,
        HIGH,
        "The file with the client's own key and certificates. Read again for new connections when it changes.",
    )
    ssl_keystore_password: Password | None = password(
        None, HIGH, "The password of the file with the client's own key."
    )
    ssl_keystore_key: Password | None = password(
        None, HIGH, "The client's own private key itself, as PEM text."
    )
    ssl_keystore_certificate_chain: Password | None = password(
        None, HIGH, "The client's own certificate and those of its issuers, as PEM text."
    )
    ssl_key_password: Password | None = password(None, HIGH, "The password of the client's own private key.")
    kclient_ssl_crl_location: str | None = string(
        None,
        LOW,
        "A file with certificate revocation lists, in PEM; a broker's certificate must not be in them.",
    )
    kclient_ssl_keylog_location: str | None = string(
        None,
        LOW,
        "A file to which the secrets of connections are added, with which Wireshark reads what was captured of them. "
        "Whoever has it can read everything.",
    )
    ssl_engine_factory_class: object | None = class_(
        None, LOW, "An object that makes the TLS contexts instead of the settings here.", support=LATER
    )
    ssl_provider: str | None = string(
        None, MEDIUM, "The name of Java's security provider for TLS.", support=JVM
    )
    ssl_keymanager_algorithm: str = string(
        "SunX509", LOW, "The algorithm of Java's key manager factory.", support=JVM
    )
    ssl_trustmanager_algorithm: str = string(
        "PKIX", LOW, "The algorithm of Java's trust manager factory.", support=JVM
    )
    ssl_secure_random_implementation: str | None = string(
        None, LOW, "The name of Java's random number generator for TLS.", support=JVM
    )
