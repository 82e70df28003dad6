"""Sources of a client's tokens for OAUTHBEARER, by its settings: an application's function, a provider, or a file."""

from __future__ import annotations

import base64
import urllib.parse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from kclient.config.sasl_configs import SaslConfig
from kclient.config.ssl_configs import SslConfig
from kclient.errors import ConfigError
from kclient.security.client_assertion import ClientAssertion
from kclient.security.jaas import LoginModule
from kclient.security.jwt_claims import read_jwt, unsecured_jwt
from kclient.security.oauth_bearer import OAuthBearerToken
from kclient.security.tls import client_context
from kclient.security.token_endpoint import TokenEndpoint, check_url

TokenSource: TypeAlias = Callable[[], OAuthBearerToken]
"""A function that fetches a token, and may block for that."""

_ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
_RETRIEVER = "sasl.oauthbearer.jwt.retriever.class"
_HANDLER = "sasl.login.callback.handler.class"
_JAVA = "org.apache.kafka.common.security.oauthbearer."
_HANDLERS = {  # each in the package where it is, and in the one where it was
    f"{_JAVA}OAuthBearerLoginCallbackHandler",
    f"{_JAVA}secured.OAuthBearerLoginCallbackHandler",
}
_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_JWT_BEARER = "urn:ietf:params:oauth:grant-type:jwt-bearer"
_UNSECURED = "unsecuredLoginStringClaim_"
_UNSECURED_LIFETIME_S = 3600


def token_source(config: SaslConfig, module: LoginModule | None) -> TokenSource:
    """Return the source that the settings and the options of `sasl.jaas.config` tell of.

    Raises ConfigError that names the setting that is missing or wrong.
    """
    options = {} if module is None else module.options
    handler = config.sasl_login_callback_handler_class
    if handler is not None and not isinstance(handler, str):
        return _called(handler, _HANDLER)
    if handler is not None and handler not in _HANDLERS:
        raise ConfigError(
            f"{_HANDLER} is a function that returns a token, or Java's {_JAVA}OAuthBearerLoginCallbackHandler; no "
            f"class is imported by its name, which is {handler}.",
            name=_HANDLER,
        )
    retriever = config.sasl_oauthbearer_jwt_retriever_class
    if not isinstance(retriever, str):
        return _called(getattr(retriever, "retrieve", retriever), _RETRIEVER)
    kind = retriever.removeprefix(_JAVA)
    if kind == "DefaultJwtRetriever":
        if config.sasl_oauthbearer_token_endpoint_url is None and handler is None:
            return _unsecured(options)
        kind = "FileJwtRetriever" if _scheme(config) == "file" else "ClientCredentialsJwtRetriever"
    if kind == "FileJwtRetriever":
        return _from_file(config, options)
    if kind == "ClientCredentialsJwtRetriever":
        return _from_client_credentials(config, options)
    if kind == "JwtBearerJwtRetriever":
        return _from_assertion(config, options)
    raise ConfigError(
        f"{_RETRIEVER} is a function that returns a JWT, or Java's Default-, ClientCredentials-, JwtBearer- or "
        f"FileJwtRetriever; no class is imported by its name, which is {retriever}.",
        name=_RETRIEVER,
    )


def _called(function: object, setting: str) -> TokenSource:
    if not callable(function):
        raise ConfigError(f"{setting} has to be a function that returns a token.", name=setting)

    def fetch() -> OAuthBearerToken:
        found = function()
        if isinstance(found, str):
            return read_jwt(found)
        if not isinstance(found, OAuthBearerToken):
            raise ConfigError(
                f"The function of {setting} has to return an OAuthBearerToken, or a JWT as str, and returned "
                f"an object of type {type(found).__name__}.",
                name=setting,
            )
        return found

    return fetch


def _unsecured(options: Mapping[str, str]) -> TokenSource:
    claims = {
        name.removeprefix(_UNSECURED): value for name, value in options.items() if name.startswith(_UNSECURED)
    }
    if "sub" not in claims:
        raise ConfigError(
            f"sasl.mechanism OAUTHBEARER needs {_ENDPOINT}, or {_HANDLER} as a function that returns a token (for "
            f"development also sasl.jaas.config with {_UNSECURED}sub).",
            name=_ENDPOINT,
        )
    subject = claims.pop("sub")
    seconds = options.get("unsecuredLoginLifetimeSeconds", str(_UNSECURED_LIFETIME_S))
    if not seconds.isdecimal() or not 0 < int(seconds) < 1 << 31:
        raise ConfigError(
            "sasl.jaas.config: unsecuredLoginLifetimeSeconds has to be a number of seconds.",
            name="sasl.jaas.config",
        )
    extensions = _extensions(options, "unsecuredLoginExtension_")
    return lambda: read_jwt(unsecured_jwt(subject, int(seconds), claims), extensions=extensions)


def _from_file(config: SaslConfig, options: Mapping[str, str]) -> TokenSource:
    if _scheme(config) != "file":
        raise ConfigError(f"{_ENDPOINT} has to begin with file: for a FileJwtRetriever.", name=_ENDPOINT)
    location = Path(urllib.parse.unquote(urllib.parse.urlsplit(_endpoint_url(config)).path))

    def fetch() -> OAuthBearerToken:
        try:
            text = location.read_text(encoding="ascii")
        except (OSError, ValueError) as error:
            raise ConfigError(f"{_ENDPOINT}: {location} cannot be read: {error}", name=_ENDPOINT) from None
        return _read(config, options, text.strip())

    return fetch


def _from_client_credentials(config: SaslConfig, options: Mapping[str, str]) -> TokenSource:
    endpoint = _endpoint(config, options)
    client_id = config.sasl_oauthbearer_client_credentials_client_id or options.get("clientId")
    secret = config.sasl_oauthbearer_client_credentials_client_secret
    client_secret = options.get("clientSecret") if secret is None else secret.value
    form = {"grant_type": "client_credentials", **_scope(config, options)}
    if client_secret is None and (assertion := ClientAssertion.from_config(config)) is not None:
        if client_id is not None:
            form["client_id"] = client_id
        form["client_assertion_type"] = _ASSERTION
        return lambda: _read(config, options, endpoint.fetch({**form, "client_assertion": assertion.text()}))
    for value, name in ((client_id, "id"), (client_secret, "secret")):
        if not value:
            setting = f"sasl.oauthbearer.client.credentials.client.{name}"
            raise ConfigError(f"sasl.mechanism OAUTHBEARER needs {setting}.", name=setting)
    parts = [client_id or "", client_secret or ""]
    if config.sasl_oauthbearer_header_urlencode:
        parts = [urllib.parse.quote_plus(part) for part in parts]
    basic = base64.b64encode(":".join(parts).encode()).decode()
    return lambda: _read(config, options, endpoint.fetch(form, {"Authorization": f"Basic {basic}"}))


def _from_assertion(config: SaslConfig, options: Mapping[str, str]) -> TokenSource:
    endpoint = _endpoint(config, options)
    assertion = ClientAssertion.from_config(config)
    if assertion is None:
        setting = "sasl.oauthbearer.assertion.private.key.file"
        raise ConfigError(
            f"JwtBearerJwtRetriever needs {setting}, or sasl.oauthbearer.assertion.file.", name=setting
        )
    form = {"grant_type": _JWT_BEARER, **_scope(config, options)}
    return lambda: _read(config, options, endpoint.fetch({**form, "assertion": assertion.text()}))


def _endpoint(config: SaslConfig, options: Mapping[str, str]) -> TokenEndpoint:
    if _scheme(config) == "file":
        raise ConfigError(f"{_ENDPOINT} has to begin with https:, as it is asked for tokens.", name=_ENDPOINT)
    tls = {name: value for name, value in options.items() if name.startswith("ssl.")}
    return TokenEndpoint(
        url=_endpoint_url(config),
        connect_timeout_ms=config.sasl_login_connect_timeout_ms,
        read_timeout_ms=config.sasl_login_read_timeout_ms,
        retry_backoff_ms=config.sasl_login_retry_backoff_ms,
        retry_backoff_max_ms=config.sasl_login_retry_backoff_max_ms,
        tls=client_context(SslConfig.parse(tls)) if tls else None,
    )


def _endpoint_url(config: SaslConfig) -> str:
    url = config.sasl_oauthbearer_token_endpoint_url
    if url is None:
        raise ConfigError(f"sasl.mechanism OAUTHBEARER needs {_ENDPOINT}.", name=_ENDPOINT)
    return url


def _scheme(config: SaslConfig) -> str:
    return check_url(_endpoint_url(config), _ENDPOINT, config.kclient_sasl_oauthbearer_allowed_urls)


def _scope(config: SaslConfig, options: Mapping[str, str]) -> dict[str, str]:
    scope = config.sasl_oauthbearer_scope or options.get("scope")
    return {"scope": scope} if scope else {}


def _read(config: SaslConfig, options: Mapping[str, str], token: str) -> OAuthBearerToken:
    claim = config.sasl_oauthbearer_sub_claim_name
    return read_jwt(token, subject_claim=claim, extensions=_extensions(options, "extension_"))


def _extensions(options: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): value for name, value in options.items() if name.startswith(prefix)}
