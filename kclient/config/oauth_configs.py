"""Settings of SASL's OAUTHBEARER mechanism (KIP-255, KIP-768, KIP-1139, KIP-1258)."""

from __future__ import annotations

import attrs

from kclient.config.config_def import HIGH, LATER, LOW, MEDIUM
from kclient.config.declare import boolean, class_, integer, list_, long, password, string
from kclient.config.ssl_configs import SslConfig
from kclient.config.validators import NoDuplicates, between, one_of
from kclient.config.values import Password


@attrs.frozen(kw_only=True)
class OauthConfig(SslConfig):
    """Settings by which tokens are fetched, made and checked."""

    sasl_oauthbearer_token_endpoint_url: str | None = string(
        None, MEDIUM, "The address that tokens are requested from, or a file: that has one."
    )
    sasl_oauthbearer_scope: str | None = string(None, MEDIUM, "The scope to ask for with the token.")
    sasl_oauthbearer_client_credentials_client_id: str | None = string(
        None, MEDIUM, "The client's id at the identity provider."
    )
    sasl_oauthbearer_client_credentials_client_secret: Password | None = password(
        None, MEDIUM, "The client's secret at the identity provider."
    )
    sasl_oauthbearer_header_urlencode: bool = boolean(
        False, LOW, "Whether id and secret are URL-encoded in the request's header."
    )
    sasl_oauthbearer_scope_claim_name: str = string(
        "scope", LOW, "The claim of the token that holds the scope.", support=LATER
    )
    sasl_oauthbearer_sub_claim_name: str = string(
        "sub", LOW, "The claim of the token that holds the subject."
    )
    sasl_oauthbearer_jwt_retriever_class: object = class_(
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
        MEDIUM,
        "The way to get a JWT: a function that returns it, an object with such a function as `retrieve`, or the name "
        "of Java's DefaultJwtRetriever, ClientCredentialsJwtRetriever, JwtBearerJwtRetriever or FileJwtRetriever. The "
        "default one reads a file where the token endpoint is one, and asks with client credentials where it is not.",
    )
    sasl_oauthbearer_jwt_validator_class: object = class_(
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
        MEDIUM,
        "An object that checks the token.",
        support=LATER,
    )
    sasl_oauthbearer_clock_skew_seconds: int = integer(
        30, LOW, "How far clocks may be apart when a token's times are checked, in seconds.", support=LATER
    )
    sasl_oauthbearer_expected_audience: list[str] = list_(
        [], HIGH, "The audiences of which a token must name one.", NoDuplicates(), support=LATER
    )
    sasl_oauthbearer_expected_issuer: str | None = string(
        None, HIGH, "The issuer that a token must name.", support=LATER
    )
    sasl_oauthbearer_allow_unverified_audience: bool = boolean(
        False, MEDIUM, "Whether tokens are accepted without a check of their audience.", support=LATER
    )
    sasl_oauthbearer_allow_unverified_issuer: bool = boolean(
        False, MEDIUM, "Whether tokens are accepted without a check of their issuer.", support=LATER
    )
    sasl_oauthbearer_jwks_endpoint_url: str | None = string(
        None, MEDIUM, "The address of the keys that tokens are signed with.", support=LATER
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = long(
        3600000, LOW, "How long those keys are kept before they are fetched again.", support=LATER
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int = long(
        100, LOW, "The wait before the first new try to fetch those keys.", support=LATER
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int = long(
        10000, LOW, "The longest wait between tries to fetch those keys.", support=LATER
    )
    sasl_oauthbearer_assertion_algorithm: str = string(
        "RS256",
        MEDIUM,
        "The algorithm that assertions are signed with.",
        one_of("RS256", "ES256", ignore_case=True),
    )
    sasl_oauthbearer_assertion_claim_aud: str | None = string(
        None, MEDIUM, "The audience that assertions name."
    )
    sasl_oauthbearer_assertion_claim_exp_seconds: int = integer(
        300, LOW, "How long assertions are valid, in seconds.", between(0, 86400)
    )
    sasl_oauthbearer_assertion_claim_iss: str | None = string(
        None, MEDIUM, "The issuer that assertions name."
    )
    sasl_oauthbearer_assertion_claim_jti_include: bool = boolean(
        False, MEDIUM, "Whether assertions carry an id of their own."
    )
    sasl_oauthbearer_assertion_claim_nbf_seconds: int = integer(
        60,
        LOW,
        "How long before now assertions begin to be valid, in seconds.",
        between(0, 3600),
    )
    sasl_oauthbearer_assertion_claim_sub: str | None = string(
        None, MEDIUM, "The subject that assertions name."
    )
    sasl_oauthbearer_assertion_file: str | None = string(None, MEDIUM, "A file with a ready assertion.")
    sasl_oauthbearer_assertion_private_key_file: str | None = string(
        None, MEDIUM, "The private key that assertions are signed with."
    )
    sasl_oauthbearer_assertion_private_key_passphrase: Password | None = password(
        None, MEDIUM, "The passphrase of that private key."
    )
    sasl_oauthbearer_assertion_template_file: str | None = string(
        None, MEDIUM, "A JSON file with further claims for assertions."
    )
    kclient_sasl_oauthbearer_allowed_urls: list[str] = list_(
        [],
        LOW,
        "The addresses with http: or file: that sasl.oauthbearer.token.endpoint.url may have. All with https: are "
        "allowed.",
        NoDuplicates(),
    )
