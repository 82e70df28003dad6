"""Settings of TLS, shared by clients and broker."""

from __future__ import annotations

import attrs

from kclient.config.config_def import Importance, Support
from kclient.config.declare import Config, setting
from kclient.config.validators import NoDuplicates
from kclient.config.values import Password, Type

_LATER = Support.LATER
_JVM = Support.JVM


@attrs.frozen(kw_only=True)
class SslConfig(Config):
    """Settings by which TLS connections are made and checked."""

    ssl_protocol: str = setting(
        "ssl.protocol",
        Type.STRING,
        "TLSv1.3",
        Importance.MEDIUM,
        "The TLS version to prefer.",
        support=_LATER,
    )
    ssl_enabled_protocols: list[str] = setting(
        "ssl.enabled.protocols",
        Type.LIST,
        ["TLSv1.2", "TLSv1.3"],
        Importance.MEDIUM,
        "The TLS versions that connections may use.",
        validator=NoDuplicates(),
        support=_LATER,
    )
    ssl_cipher_suites: list[str] = setting(
        "ssl.cipher.suites",
        Type.LIST,
        [],
        Importance.LOW,
        "The cipher suites that connections may use; empty leaves the choice to OpenSSL.",
        validator=NoDuplicates(),
        support=_LATER,
    )
    ssl_endpoint_identification_algorithm: str = setting(
        "ssl.endpoint.identification.algorithm",
        Type.STRING,
        "https",
        Importance.LOW,
        "How the host name is checked against the broker's certificate; empty turns the check off.",
        support=_LATER,
    )
    ssl_truststore_type: str = setting(
        "ssl.truststore.type",
        Type.STRING,
        "JKS",
        Importance.MEDIUM,
        "The format of the trusted certificates: PEM, PKCS12 or JKS.",
        support=_LATER,
    )
    ssl_truststore_location: str | None = setting(
        "ssl.truststore.location",
        Type.STRING,
        None,
        Importance.HIGH,
        "The file with the certificates of the authorities to trust.",
        support=_LATER,
    )
    ssl_truststore_password: Password | None = setting(
        "ssl.truststore.password",
        Type.PASSWORD,
        None,
        Importance.HIGH,
        "The password of the file with the trusted certificates.",
        support=_LATER,
    )
    ssl_truststore_certificates: Password | None = setting(
        "ssl.truststore.certificates",
        Type.PASSWORD,
        None,
        Importance.HIGH,
        "The trusted certificates themselves, as PEM text.",
        support=_LATER,
    )
    ssl_keystore_type: str = setting(
        "ssl.keystore.type",
        Type.STRING,
        "JKS",
        Importance.MEDIUM,
        "The format of the client's own key and certificates: PEM, PKCS12 or JKS.",
        support=_LATER,
    )
    ssl_keystore_location: str | None = setting(
        "ssl.keystore.location",
        Type.STRING,
        None,
        Importance.HIGH,
        "The file with the client's own key and certificates.",
        support=_LATER,
    )
    ssl_keystore_password: Password | None = setting(
        "ssl.keystore.password",
        Type.PASSWORD,
        None,
        Importance.HIGH,
        "The password of the file with the client's own key.",
        support=_LATER,
    )
    ssl_keystore_key: Password | None = setting(
        "ssl.keystore.key",
        Type.PASSWORD,
        None,
        Importance.HIGH,
        "The client's own private key itself, as PEM text.",
        support=_LATER,
    )
    ssl_keystore_certificate_chain: Password | None = setting(
        "ssl.keystore.certificate.chain",
        Type.PASSWORD,
        None,
        Importance.HIGH,
        "The client's own certificate and those of its issuers, as PEM text.",
        support=_LATER,
    )
    ssl_key_password: Password | None = setting(
        "ssl.key.password",
        Type.PASSWORD,
        None,
        Importance.HIGH,
        "The password of the client's own private key.",
        support=_LATER,
    )
    ssl_engine_factory_class: object | None = setting(
        "ssl.engine.factory.class",
        Type.CLASS,
        None,
        Importance.LOW,
        "An object that makes the TLS contexts instead of the settings here.",
        support=_LATER,
    )
    ssl_provider: str | None = setting(
        "ssl.provider",
        Type.STRING,
        None,
        Importance.MEDIUM,
        "The name of Java's security provider for TLS.",
        support=_JVM,
    )
    ssl_keymanager_algorithm: str = setting(
        "ssl.keymanager.algorithm",
        Type.STRING,
        "SunX509",
        Importance.LOW,
        "The algorithm of Java's key manager factory.",
        support=_JVM,
    )
    ssl_trustmanager_algorithm: str = setting(
        "ssl.trustmanager.algorithm",
        Type.STRING,
        "PKIX",
        Importance.LOW,
        "The algorithm of Java's trust manager factory.",
        support=_JVM,
    )
    ssl_secure_random_implementation: str | None = setting(
        "ssl.secure.random.implementation",
        Type.STRING,
        None,
        Importance.LOW,
        "The name of Java's random number generator for TLS.",
        support=_JVM,
    )
