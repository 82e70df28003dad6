"""Sources of tokens by the settings: functions, an identity provider, files."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from harness.network.identity_provider import IdentityProvider, identity_provider
from kclient.config.sasl_configs import SaslConfig
from kclient.config.values import Password
from kclient.errors import ConfigError
from kclient.security.jaas import LoginModule
from kclient.security.oauth_bearer import OAuthBearerToken
from kclient.security.token_sources import TokenSource, token_source

JAVA = "org.apache.kafka.common.security.oauthbearer."
HANDLER = "sasl.login.callback.handler.class"
RETRIEVER = "sasl.oauthbearer.jwt.retriever.class"
ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
CLIENT = {"client_credentials_client_id": "me", "client_credentials_client_secret": Password("hunter:2")}


@pytest.fixture
def provider() -> Iterator[IdentityProvider]:
    with identity_provider() as running:
        yield running


def source(options: dict[str, str] | None = None, **settings: Any) -> TokenSource:
    """Return the source of settings, which begin with sasl.oauthbearer. if not with sasl."""
    names = {
        name if name.startswith(("sasl_", "kclient_")) else f"sasl_oauthbearer_{name}": value
        for name, value in settings.items()
    }
    module = None if options is None else LoginModule("OAuthBearerLoginModule", options)
    return token_source(SaslConfig(**names), module)


def asking(
    provider: IdentityProvider, options: dict[str, str] | None = None, **settings: Any
) -> OAuthBearerToken:
    url = provider.token_url
    usual = {"token_endpoint_url": url, "kclient_sasl_oauthbearer_allowed_urls": [url]}
    return source(options, **{**usual, **settings})()


def refused(name: str, why: str, *arguments: Any, **settings: Any) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        source(*arguments, **settings)
    assert caught.value.name == name
    assert "hunter" not in str(caught.value)


@pytest.mark.parametrize("name", ["sasl_login_callback_handler_class", "jwt_retriever_class"])
def test_a_function_returns_a_token_or_a_jwt(provider: IdentityProvider, name: str) -> None:
    token = OAuthBearerToken("opaque", expires_ms=7)
    assert source(**{name: lambda: token})() is token
    assert source(**{name: provider.token})().principal == "alice"


@pytest.mark.parametrize(
    ("name", "setting"),
    [("sasl_login_callback_handler_class", HANDLER), ("jwt_retriever_class", RETRIEVER)],
)
def test_a_function_that_returns_something_else_is_told(name: str, setting: str) -> None:
    with pytest.raises(ConfigError, match=f"{setting} has to return an OAuthBearerToken.*type bytes"):
        source(**{name: lambda: b"hunter2"})()
    refused(setting, "has to be a function", **{name: object()})


def test_an_object_may_have_the_function_as_retrieve(provider: IdentityProvider) -> None:
    class Retriever:
        def retrieve(self) -> str:
            return provider.token("bob")

    assert source(jwt_retriever_class=Retriever())().principal == "bob"


@pytest.mark.parametrize(
    ("name", "setting"),
    [("sasl_login_callback_handler_class", HANDLER), ("jwt_retriever_class", RETRIEVER)],
)
def test_no_class_is_imported_by_its_name(name: str, setting: str) -> None:
    refused(setting, "no class is imported by its name, which is os.system", **{name: "os.system"})


def test_client_credentials_go_in_the_header(provider: IdentityProvider) -> None:
    token = asking(provider, scope="kafka", **CLIENT)
    assert token.principal == "alice"
    (request,) = provider.requests
    assert request.form == {"grant_type": "client_credentials", "scope": "kafka"}
    assert request.headers["authorization"] == "Basic " + base64.b64encode(b"me:hunter:2").decode()


def test_client_credentials_may_be_options_of_the_login_module(provider: IdentityProvider) -> None:
    options = {"clientId": "me", "clientSecret": "s", "scope": "k", "extension_logicalCluster": "lkc-1"}
    token = asking(
        provider, options, sasl_login_callback_handler_class=f"{JAVA}OAuthBearerLoginCallbackHandler"
    )
    assert token.extensions == {"logicalCluster": "lkc-1"}
    (request,) = provider.requests
    assert request.form["scope"] == "k"
    assert request.headers["authorization"] == "Basic " + base64.b64encode(b"me:s").decode()


def test_id_and_secret_may_be_url_encoded(provider: IdentityProvider) -> None:
    asking(provider, header_urlencode=True, **CLIENT)
    assert (
        provider.requests[0].headers["authorization"]
        == "Basic " + base64.b64encode(b"me:hunter%3A2").decode()
    )


def test_the_subject_is_in_the_claim_of_the_settings(provider: IdentityProvider) -> None:
    assert asking(provider, sub_claim_name="iss", **CLIENT).principal == provider.issuer


@pytest.mark.parametrize("missing", ["id", "secret"])
def test_a_missing_credential_is_told_with_its_setting(missing: str) -> None:
    given = {name: value for name, value in CLIENT.items() if not name.endswith(missing)}
    setting = f"sasl.oauthbearer.client.credentials.client.{missing}"
    refused(setting, f"needs {setting}", token_endpoint_url="https://issuer.test/", **given)


def test_an_address_that_is_not_https_needs_permission(tmp_path: Path) -> None:
    for url in ("http://127.0.0.1:1/token", (tmp_path / "token").as_uri()):
        refused(ENDPOINT, r"kclient\.sasl\.oauthbearer\.allowed\.urls", token_endpoint_url=url, **CLIENT)


def private_key(directory: Path) -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    path = directory / "key.pem"
    path.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    return str(path)


def test_an_assertion_takes_the_place_of_the_secret(provider: IdentityProvider, tmp_path: Path) -> None:
    asking(
        provider,
        client_credentials_client_id="me",
        assertion_private_key_file=private_key(tmp_path),
        assertion_claim_sub="me",
    )
    (request,) = provider.requests
    assert request.form.pop("client_assertion").count(".") == 2
    assert request.form == {
        "grant_type": "client_credentials",
        "client_id": "me",
        "client_assertion_type": "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
    }
    assert "authorization" not in request.headers


def test_a_secret_comes_before_an_assertion(provider: IdentityProvider, tmp_path: Path) -> None:
    asking(provider, assertion_private_key_file=private_key(tmp_path), **CLIENT)
    assert "client_assertion" not in provider.requests[0].form


def test_an_assertion_is_the_grant_of_jwt_bearer(provider: IdentityProvider, tmp_path: Path) -> None:
    asking(
        provider,
        jwt_retriever_class=f"{JAVA}JwtBearerJwtRetriever",
        assertion_private_key_file=private_key(tmp_path),
        scope="kafka",
    )
    (request,) = provider.requests
    assert request.form.pop("assertion").count(".") == 2
    assert request.form == {"grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer", "scope": "kafka"}


def test_jwt_bearer_needs_an_assertion() -> None:
    refused(
        "sasl.oauthbearer.assertion.private.key.file",
        "JwtBearerJwtRetriever needs",
        token_endpoint_url="https://issuer.test/",
        jwt_retriever_class=f"{JAVA}JwtBearerJwtRetriever",
    )


@pytest.mark.parametrize("retriever", ["DefaultJwtRetriever", "FileJwtRetriever"])
def test_a_file_is_read_each_time(provider: IdentityProvider, tmp_path: Path, retriever: str) -> None:
    path = tmp_path / "a token"
    path.write_text(provider.token() + "\n")
    url = path.as_uri()
    fetch = source(
        token_endpoint_url=url,
        jwt_retriever_class=JAVA + retriever,
        kclient_sasl_oauthbearer_allowed_urls=[url],
    )
    assert fetch().principal == "alice"
    path.write_text(provider.token("bob"))
    assert fetch().principal == "bob"
    path.unlink()
    with pytest.raises(ConfigError, match="cannot be read") as caught:
        fetch()
    assert caught.value.name == ENDPOINT


def test_a_retriever_of_files_takes_no_other_address_and_the_others_no_file(tmp_path: Path) -> None:
    refused(
        ENDPOINT,
        "has to begin with file:",
        token_endpoint_url="https://issuer.test/",
        jwt_retriever_class=f"{JAVA}FileJwtRetriever",
    )
    url = (tmp_path / "token").as_uri()
    refused(
        ENDPOINT,
        "has to begin with https:",
        token_endpoint_url=url,
        kclient_sasl_oauthbearer_allowed_urls=[url],
        jwt_retriever_class=f"{JAVA}ClientCredentialsJwtRetriever",
    )
    refused(ENDPOINT, f"needs {ENDPOINT}", jwt_retriever_class=f"{JAVA}ClientCredentialsJwtRetriever")


def test_an_unsecured_jwt_is_made_of_the_options() -> None:
    token = source(
        {
            "unsecuredLoginStringClaim_sub": "alice",
            "unsecuredLoginStringClaim_role": "admin",
            "unsecuredLoginLifetimeSeconds": "60",
            "unsecuredLoginExtension_pool": "p",
        }
    )()
    claims = json.loads(base64.urlsafe_b64decode(token.value.split(".")[1] + "=="))
    assert (token.principal, token.extensions) == ("alice", {"pool": "p"})
    assert claims["role"] == "admin"
    assert claims["exp"] - claims["iat"] == 60


@pytest.mark.parametrize("seconds", ["", "0", "-1", "1.5", "soon", "9" * 30])
def test_an_unsecured_jwt_has_a_lifetime_in_seconds(seconds: str) -> None:
    options = {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginLifetimeSeconds": seconds}
    refused("sasl.jaas.config", "unsecuredLoginLifetimeSeconds", options)


@pytest.mark.parametrize("options", [None, {}, {"clientId": "me"}])
def test_without_a_source_the_settings_that_have_one_are_told(options: dict[str, str] | None) -> None:
    refused(ENDPOINT, f"needs {ENDPOINT}, or {HANDLER} as a function", options)
