"""Assertions that a client signs, read back as an identity provider would."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)

from kclient.config.oauth_configs import OauthConfig
from kclient.config.values import Password
from kclient.errors import ConfigError
from kclient.security.client_assertion import ClientAssertion

RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
EC = ec.generate_private_key(ec.SECP256R1())


def key_file(directory: Path, key: Any = RSA, encryption: KeySerializationEncryption | None = None) -> Path:
    path = directory / "key.pem"
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption()))
    return path


def assertion(**settings: Any) -> ClientAssertion | None:
    return ClientAssertion.from_config(
        OauthConfig(**{f"sasl_oauthbearer_assertion_{name}": value for name, value in settings.items()})
    )


def read(made: ClientAssertion | None, key: Any = RSA, algorithm: str = "RS256") -> dict[str, Any]:
    assert made is not None
    options: Any = {"verify_aud": False}
    claims: dict[str, Any] = jwt.decode(made.text(), key.public_key(), [algorithm], options)
    return claims


def test_without_a_key_or_a_file_there_is_none() -> None:
    assert assertion() is None


@pytest.mark.parametrize(("key", "algorithm"), [(RSA, "RS256"), (EC, "ES256")])
def test_it_is_signed_and_says_what_the_settings_say(tmp_path: Path, key: Any, algorithm: str) -> None:
    made = assertion(
        private_key_file=str(key_file(tmp_path, key)),
        algorithm=algorithm.lower(),
        claim_aud="https://issuer.test",
        claim_iss="me",
        claim_sub="alice",
        claim_exp_seconds=100,
        claim_nbf_seconds=10,
    )
    claims = read(made, key, algorithm)
    assert (claims["aud"], claims["iss"], claims["sub"]) == ("https://issuer.test", "me", "alice")
    assert (claims["exp"] - claims["iat"], claims["iat"] - claims["nbf"]) == (100, 10)
    assert "jti" not in claims


def test_each_has_an_id_of_its_own_if_that_is_wanted(tmp_path: Path) -> None:
    made = assertion(private_key_file=str(key_file(tmp_path)), claim_jti_include=True)
    assert read(made)["jti"] != read(made)["jti"]


def test_a_template_has_further_claims_and_the_settings_come_first(tmp_path: Path) -> None:
    template = tmp_path / "template.json"
    template.write_text(json.dumps({"header": {"kid": "k1"}, "payload": {"sub": "x", "role": "r", "exp": 1}}))
    made = assertion(private_key_file=str(key_file(tmp_path)), template_file=str(template), claim_sub="alice")
    claims = read(made)
    assert (claims["sub"], claims["role"]) == ("alice", "r")
    assert claims["exp"] > 1
    assert made is not None
    assert jwt.get_unverified_header(made.text())["kid"] == "k1"


@pytest.mark.parametrize("text", ["not json", "[]", '{"header": []}', '{"payload": 7}'])
def test_a_template_of_another_shape_is_refused(tmp_path: Path, text: str) -> None:
    template = tmp_path / "template.json"
    template.write_text(text)
    with pytest.raises(ConfigError) as caught:
        assertion(private_key_file=str(key_file(tmp_path)), template_file=str(template))
    assert caught.value.name == "sasl.oauthbearer.assertion.template.file"


def test_a_key_may_be_encrypted(tmp_path: Path) -> None:
    path = str(key_file(tmp_path, encryption=BestAvailableEncryption(b"hunter2")))
    assert read(assertion(private_key_file=path, private_key_passphrase=Password("hunter2")))
    for wrong in (None, Password("hunter3")):
        with pytest.raises(ConfigError, match="no private key in PEM, or") as caught:
            assertion(private_key_file=path, private_key_passphrase=wrong)
        assert caught.value.name == "sasl.oauthbearer.assertion.private.key.file"
        assert "hunter" not in str(caught.value)


def test_a_key_of_another_kind_does_not_fit_the_algorithm(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="the key does not fit ES256") as caught:
        assertion(private_key_file=str(key_file(tmp_path)), algorithm="ES256")
    assert caught.value.name == "sasl.oauthbearer.assertion.algorithm"


def test_a_ready_assertion_is_read_each_time(tmp_path: Path) -> None:
    path = tmp_path / "assertion"
    path.write_text("a.b.c\n")
    made = assertion(file=str(path))
    assert made is not None
    assert made.text() == "a.b.c"
    path.write_text("d.e.f")
    assert made.text() == "d.e.f"


@pytest.mark.parametrize("name", ["file", "private_key_file"])
def test_a_file_that_is_missing_is_told_with_its_setting(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        assertion(**{name: str(tmp_path / "none")})
    assert caught.value.name == f"sasl.oauthbearer.assertion.{name.replace('_', '.')}"


def test_no_repr_has_a_secret() -> None:
    assert "hunter2" not in repr(ClientAssertion(OauthConfig()))
