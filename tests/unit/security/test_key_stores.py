"""Trusted certificates and own keys out of every form in which settings give them."""

from __future__ import annotations

import builtins
import ssl
from pathlib import Path

import pytest

from harness.network.certificates import Authority
from kclient.config.ssl_configs import SslConfig
from kclient.config.values import Password
from kclient.errors import ConfigError
from kclient.security.key_stores import own_key_pair, trusted_certificates

DATA = Path(__file__).parent / "data"
CERTIFICATE = ssl.PEM_cert_to_DER_cert((DATA / "certificate.pem").read_text())
STORE_PASSWORD = Password("storepass")


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.mark.parametrize("name", ["trust.jks", "trust.p12", "certificate.pem"])
def test_a_trust_store_is_read_by_its_content(name: str, tmp_path: Path) -> None:
    file = tmp_path / "store.jks"
    file.write_bytes((DATA / name).read_bytes())
    config = SslConfig(ssl_truststore_location=str(file), ssl_truststore_password=STORE_PASSWORD)
    found = trusted_certificates(config)
    assert found is not None
    assert ssl.PEM_cert_to_DER_cert(found) == CERTIFICATE


def test_trusted_certificates_may_be_the_setting_itself(authority: Authority) -> None:
    config = SslConfig(ssl_truststore_certificates=Password(f"some text\n{authority.pem}\n{authority.pem}"))
    assert trusted_certificates(config) == authority.pem * 2


def test_without_a_trust_store_there_are_no_certificates_of_ours() -> None:
    assert trusted_certificates(SslConfig()) is None


@pytest.mark.parametrize("name", ["key.jks", "key.p12"])
def test_a_key_store_gives_the_key_and_its_certificates(name: str) -> None:
    config = SslConfig(
        ssl_keystore_location=str(DATA / name),
        ssl_keystore_password=STORE_PASSWORD,
        ssl_key_password=Password("keypass1"),
    )
    pair = own_key_pair(config)
    assert pair is not None
    assert pair.private_key.startswith("-----BEGIN PRIVATE KEY-----")
    assert "BEGIN CERTIFICATE" in pair.certificates
    assert pair.password is None
    assert "PRIVATE" not in repr(pair)


def test_a_pem_file_gives_the_key_as_hidden_as_it_is(authority: Authority) -> None:
    file = authority.issue("client", password="secret")
    config = SslConfig(ssl_keystore_location=str(file), ssl_key_password=Password("secret"))
    pair = own_key_pair(config)
    assert pair is not None
    assert pair.private_key.startswith("-----BEGIN ENCRYPTED PRIVATE KEY-----")
    assert pair.password == "secret"


def test_a_key_and_its_certificates_may_be_the_settings_themselves(authority: Authority) -> None:
    text = Password(authority.issue("client").read_text())
    pair = own_key_pair(SslConfig(ssl_keystore_key=text, ssl_keystore_certificate_chain=text))
    assert pair is not None
    assert "CERTIFICATE" not in pair.private_key
    assert "PRIVATE" not in pair.certificates


def test_without_a_key_store_there_is_no_key() -> None:
    assert own_key_pair(SslConfig()) is None


@pytest.mark.parametrize(
    ("settings", "name", "text"),
    [
        (
            {"ssl_truststore_location": "/nowhere"},
            "ssl.truststore.location",
            "/nowhere cannot be read: No such",
        ),
        ({"ssl_keystore_location": "/nowhere"}, "ssl.keystore.location", "/nowhere cannot be read: No such"),
        (
            {"ssl_keystore_location": str(DATA / "key.jks")},
            "ssl.keystore.password",
            "needs ssl.keystore.password",
        ),
        (
            {"ssl_keystore_location": str(DATA / "key.jks"), "ssl_keystore_password": STORE_PASSWORD},
            "ssl.key.password",
            "set ssl.key.password",
        ),
        (
            {"ssl_keystore_location": str(DATA / "key.jks"), "ssl_keystore_password": Password("x")},
            "ssl.keystore.location",
            "password is wrong",
        ),
        (
            {"ssl_keystore_location": str(DATA / "key.p12"), "ssl_keystore_password": Password("x")},
            "ssl.keystore.password",
            "cannot be read",
        ),
        (
            {"ssl_keystore_location": str(DATA / "trust.jks"), "ssl_keystore_password": STORE_PASSWORD},
            "ssl.keystore.location",
            "holds no private key",
        ),
        (
            {"ssl_truststore_location": str(DATA / "key.jks"), "ssl_truststore_password": STORE_PASSWORD},
            "ssl.truststore.location",
            "holds no trusted certificate",
        ),
        (
            {"ssl_truststore_certificates": Password("none")},
            "ssl.truststore.certificates",
            "no certificate in PEM",
        ),
        (
            {"ssl_truststore_certificates": Password("none"), "ssl_truststore_location": "/nowhere"},
            "ssl.truststore.location",
            "exclude each other",
        ),
        ({"ssl_keystore_key": Password("none")}, "ssl.keystore.certificate.chain", "belong together"),
        (
            {"ssl_keystore_location": str(DATA / "certificate.pem")},
            "ssl.keystore.location",
            "no private key in PEM",
        ),
    ],
)
def test_what_is_wrong_is_told_with_the_setting_to_change(
    settings: dict[str, object], name: str, text: str
) -> None:
    config = SslConfig(**settings)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=text) as caught:
        _ = trusted_certificates(config), own_key_pair(config)
    assert caught.value.name == name
    assert "storepass" not in str(caught.value)


def test_a_file_that_is_too_large_for_a_store_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "large"
    with file.open("wb") as opened:
        opened.truncate(1 << 40)
    with pytest.raises(ConfigError, match="larger than a key store can be"):
        trusted_certificates(SslConfig(ssl_truststore_location=str(file)))


def test_a_store_of_the_type_jceks_is_refused_with_a_way_out(tmp_path: Path) -> None:
    file = tmp_path / "store.jceks"
    file.write_bytes(b"\xce\xce\xce\xce" + bytes(100))
    with pytest.raises(ConfigError, match="keytool -importkeystore"):
        trusted_certificates(SslConfig(ssl_truststore_location=str(file)))


def test_pkcs12_without_the_package_for_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *more: object) -> object:
        if name.startswith("cryptography"):
            raise ImportError(name)
        return real(name, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    trusted = SslConfig(
        ssl_truststore_location=str(DATA / "trust.p12"), ssl_truststore_password=STORE_PASSWORD
    )
    own = SslConfig(ssl_keystore_location=str(DATA / "key.p12"), ssl_keystore_password=STORE_PASSWORD)
    what_to_do = r"pip install 'kclient-kafka\[tls\]'"
    with pytest.raises(ConfigError, match=what_to_do):
        trusted_certificates(trusted)
    with pytest.raises(ConfigError, match=what_to_do):
        own_key_pair(own)
