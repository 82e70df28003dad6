"""Names of cipher suites, held against those that this OpenSSL knows."""

from __future__ import annotations

import ssl

import pytest

from kclient.security.cipher_suites import openssl_ciphers, openssl_name


@pytest.mark.parametrize(
    ("iana", "openssl"),
    [
        ("TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
        ("TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "ECDHE-ECDSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256", "ECDHE-RSA-CHACHA20-POLY1305"),
        ("TLS_DHE_RSA_WITH_AES_256_GCM_SHA384", "DHE-RSA-AES256-GCM-SHA384"),
        ("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA384", "ECDHE-RSA-AES256-SHA384"),
        ("TLS_RSA_WITH_AES_128_GCM_SHA256", "AES128-GCM-SHA256"),
        ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256"),
    ],
)
def test_a_name_of_iana_is_that_of_openssl(iana: str, openssl: str) -> None:
    assert openssl_name(iana) == openssl
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers(openssl_ciphers([iana]))
    assert openssl in {cipher["name"] for cipher in context.get_ciphers()}


def test_suites_of_tls_1_3_are_left_to_openssl() -> None:
    assert (
        openssl_ciphers(["TLS_AES_128_GCM_SHA256", "TLS_RSA_WITH_AES_128_GCM_SHA256"]) == "AES128-GCM-SHA256"
    )


def test_a_choice_of_suites_of_tls_1_3_alone_is_refused() -> None:
    with pytest.raises(ValueError, match="always on"):
        openssl_ciphers(["TLS_AES_128_GCM_SHA256"])
