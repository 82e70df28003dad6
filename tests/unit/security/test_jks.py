"""Java's old key stores, as `keytool -storetype JKS` wrote them."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import load_der_private_key
from cryptography.x509 import load_der_x509_certificate
from hypothesis import given
from hypothesis import strategies as st

from kclient.security.jks import JksError, read_jks

# keytool -genkeypair -alias client -keyalg EC -storetype JKS -storepass storepass -keypass keypass1
# keytool -importcert -alias authority -storetype JKS -storepass storepass
DATA = Path(__file__).parent / "data"
KEY = (DATA / "key.jks").read_bytes()
TRUST = (DATA / "trust.jks").read_bytes()
CERTIFICATE = ssl.PEM_cert_to_DER_cert((DATA / "certificate.pem").read_text())


def test_a_private_key_is_had_with_its_own_password_and_fits_its_certificate() -> None:
    (entry,) = read_jks(KEY, "storepass").keys
    assert entry.alias == "client"
    assert entry.certificates == (CERTIFICATE,)
    key = load_der_private_key(entry.private_key("keypass1"), None)
    assert key.public_key() == load_der_x509_certificate(CERTIFICATE).public_key()


def test_a_wrong_password_of_the_key_is_told() -> None:
    (entry,) = read_jks(KEY, "storepass").keys
    with pytest.raises(JksError, match="password of the key of entry 'client' is wrong"):
        entry.private_key("storepass")


def test_trusted_certificates_are_read() -> None:
    store = read_jks(TRUST, "storepass")
    assert store.keys == ()
    assert store.trusted == (CERTIFICATE,)


def test_a_store_without_a_password_is_read_unchecked() -> None:
    assert read_jks(TRUST, None).trusted == (CERTIFICATE,)


@pytest.mark.parametrize("data", [TRUST[:-1] + b"x", TRUST[:60] + b"x" + TRUST[61:]])
def test_a_changed_store_is_refused(data: bytes) -> None:
    with pytest.raises(JksError, match="wrong, or somebody has changed it"):
        read_jks(data, "storepass")


def test_a_wrong_password_of_the_store_is_told() -> None:
    with pytest.raises(JksError, match="its password is wrong"):
        read_jks(TRUST, "other")


def test_other_bytes_are_no_store() -> None:
    with pytest.raises(JksError, match="does not begin as"):
        read_jks(b"-----BEGIN CERTIFICATE-----", None)
    with pytest.raises(JksError, match="version is 3"):
        read_jks(KEY[:7] + b"\x03" + KEY[8:], None)


def test_a_store_that_ends_too_early_or_announces_too_much_is_refused() -> None:
    for size in range(4, len(KEY)):
        with pytest.raises(JksError):
            read_jks(KEY[:size], None)
    entry = b"\0\0\0\x02" + b"\0\0" + bytes(8) + b"\0\x05X.509" + b"\xff" * 4
    with pytest.raises(JksError, match="4294967295 bytes are announced"):
        read_jks(KEY[:12] + entry, None)


@given(st.binary(max_size=200), st.integers(0, len(KEY)))
def test_no_bytes_do_anything_but_be_read_or_refused(noise: bytes, at: int) -> None:
    try:
        for entry in read_jks(KEY[:at] + noise + KEY[at + len(noise) :], None).keys:
            entry.private_key("keypass1")
    except JksError:
        pass
