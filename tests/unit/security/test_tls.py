"""Contexts of TLS by their settings, and when files change."""

from __future__ import annotations

import os
import ssl
import sys
from pathlib import Path

import pytest

from harness.network.certificates import Authority
from kclient.config.ssl_configs import SslConfig
from kclient.config.values import Password
from kclient.errors import ConfigError
from kclient.security import tls
from kclient.security.tls import TlsContexts, client_context
from kclient.utils.log_context import LogContext


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def test_by_default_the_name_is_checked_and_the_system_is_trusted() -> None:
    context = client_context(SslConfig())
    assert context.check_hostname
    assert context.verify_mode == ssl.CERT_REQUIRED
    assert context.minimum_version == ssl.TLSVersion.TLSv1_2
    assert context.maximum_version == ssl.TLSVersion.TLSv1_3


def test_an_empty_algorithm_leaves_out_the_name_and_nothing_else() -> None:
    context = client_context(SslConfig(ssl_endpoint_identification_algorithm=""))
    assert not context.check_hostname
    assert context.verify_mode == ssl.CERT_REQUIRED


def test_what_is_trusted_is_the_trust_store_alone(authority: Authority) -> None:
    context = client_context(SslConfig(ssl_truststore_location=str(authority.file)))
    assert context.cert_store_stats()["x509_ca"] == 1


@pytest.mark.parametrize(
    ("newest", "enabled", "versions"),
    [
        ("TLSv1.3", ["TLSv1.3"], (ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_3)),
        ("TLSv1.2", ["TLSv1.2", "TLSv1.3"], (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2)),
        ("TLS", ["TLSv1.3", "TLSv1.2"], (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)),
    ],
)
def test_versions_are_those_enabled_up_to_the_newest(
    newest: str, enabled: list[str], versions: tuple[ssl.TLSVersion, ssl.TLSVersion]
) -> None:
    context = client_context(SslConfig(ssl_protocol=newest, ssl_enabled_protocols=enabled))
    assert (context.minimum_version, context.maximum_version) == versions


def test_ciphers_are_those_named() -> None:
    config = SslConfig(ssl_cipher_suites=["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"])
    names = {cipher["name"] for cipher in client_context(config).get_ciphers()}
    assert {name for name in names if not name.startswith("TLS_")} == {"ECDHE-RSA-AES128-GCM-SHA256"}


@pytest.mark.parametrize(
    ("settings", "name", "text"),
    [
        ({"ssl_enabled_protocols": ["SSLv3"]}, "ssl.enabled.protocols", "SSLv3 cannot be used"),
        (
            {"ssl_protocol": "TLSv1.2", "ssl_enabled_protocols": ["TLSv1.3"]},
            "ssl.protocol",
            "allows none of ssl.enabled.protocols",
        ),
        ({"ssl_protocol": "SSL"}, "ssl.protocol", "'SSL' cannot be used"),
        ({"ssl_keystore_type": "BCFKS"}, "ssl.keystore.type", "known are 'jks', 'pem', 'pkcs12'"),
        (
            {"ssl_endpoint_identification_algorithm": "ldaps"},
            "ssl.endpoint.identification.algorithm",
            "'ldaps'",
        ),
        ({"ssl_cipher_suites": ["NONE"]}, "ssl.cipher.suites", "No cipher can be selected"),
        ({"kclient_ssl_crl_location": "/nowhere"}, "kclient.ssl.crl.location", "/nowhere"),
        ({"kclient_ssl_keylog_location": "/nowhere/log"}, "kclient.ssl.keylog.location", "No such file"),
        (
            {
                "ssl_truststore_certificates": Password(
                    "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"
                )
            },
            "ssl.truststore.certificates",
            "cannot be used",
        ),
    ],
)
def test_what_is_wrong_is_told_with_the_setting_to_change(
    settings: dict[str, object], name: str, text: str
) -> None:
    config = SslConfig(**settings)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=text) as caught:
        client_context(config)
    assert caught.value.name == name


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (None, "is encrypted; set ssl.key.password"),
        ("wrong", "ssl.key.password does not open the private key"),
    ],
)
def test_the_password_of_a_key_that_is_missing_or_wrong_is_told_and_not_shown(
    authority: Authority, given: str | None, text: str
) -> None:
    config = SslConfig(
        ssl_keystore_location=str(authority.issue("client", password="secret")),
        ssl_key_password=None if given is None else Password(given),
    )
    with pytest.raises(ConfigError, match=text) as caught:
        client_context(config)
    assert caught.value.name == "ssl.key.password"
    assert "secret" not in str(caught.value)
    assert "wrong" not in str(caught.value)


def test_a_key_that_does_not_belong_to_the_certificate_is_told(authority: Authority) -> None:
    one, other = (Password(authority.issue(name).read_text()) for name in ("one", "other"))
    with pytest.raises(ConfigError, match="does not belong to the certificate"):
        client_context(SslConfig(ssl_keystore_key=one, ssl_keystore_certificate_chain=other))


@pytest.mark.skipif(sys.platform != "linux", reason="memory as a file is Linux's")
def test_a_private_key_is_never_written_to_a_disk(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: object) -> None:
        raise AssertionError("a temporary file was made")

    monkeypatch.setattr(tls.tempfile, "mkstemp", refuse)
    client_context(SslConfig(ssl_keystore_location=str(authority.issue("client"))))


def test_where_there_is_no_memory_as_a_file_nothing_of_the_key_stays_on_the_disk(
    authority: Authority, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delattr(os, "memfd_create", raising=False)
    place = tmp_path / "place"
    place.mkdir()
    monkeypatch.setattr(tls.tempfile, "tempdir", str(place))
    client_context(SslConfig(ssl_keystore_location=str(authority.issue("client"))))
    assert list(place.iterdir()) == []


def contexts(config: SslConfig) -> TlsContexts:
    return TlsContexts(config, LogContext("[test] "))


def test_the_context_stays_while_no_file_changes(authority: Authority) -> None:
    made = contexts(SslConfig(ssl_truststore_location=str(authority.file)))
    assert made.current() is made.current()


def test_a_file_that_changes_holds_for_new_connections(authority: Authority) -> None:
    made = contexts(SslConfig(ssl_truststore_location=str(authority.file)))
    before = made.current()
    replacement = authority.directory / "new"
    replacement.write_text(authority.pem * 2)
    replacement.replace(authority.file)
    assert made.current() is not before
    assert made.current() is made.current()


def test_a_file_that_changes_and_cannot_be_used_is_warned_of_once_and_the_context_stays(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    made = contexts(SslConfig(ssl_truststore_location=str(authority.file)))
    before = made.current()
    authority.file.unlink()
    assert made.current() is before
    assert made.current() is before
    (warning,) = (record.getMessage() for record in caplog.records)
    assert "ssl.truststore.location" in warning
    assert "the old ones are" in warning
    authority.file.write_text(authority.pem)
    assert made.current() is not before
