"""Settings of SASL's OAUTHBEARER mechanism (KIP-255, KIP-768, KIP-1139, KIP-1258)."""

from __future__ import annotations

import attrs

from kclient.config.config_def import Importance, Support
from kclient.config.declare import setting
from kclient.config.ssl_configs import SslConfig
from kclient.config.validators import NoDuplicates, between, one_of
from kclient.config.values import Password, Type

_LATER = Support.LATER


@attrs.frozen(kw_only=True)
class OauthConfig(SslConfig):
    """Settings by which tokens are fetched, made and checked."""

    sasl_oauthbearer_token_endpoint_url: str | None = setting(
        "sasl.oauthbearer.token.endpoint.url",
        Type.STRING,
        None,
        Importance.MEDIUM,
        "The address that tokens are requested from.",
        support=_LATER,
    )
    sasl_oauthbearer_scope: str | None = setting(
        "sasl.oauthbearer.scope",
        Type.STRING,
        None,
        Importance.MEDIUM,
        "The scope to ask for with the token.",
        support=_LATER,
    )
    sasl_oauthbearer_client_credentials_client_id: str | None = setting(
        "sasl.oauthbearer.client.credentials.client.id",
        Type.STRING,
        None,
        Importance.MEDIUM,
        "The client's id at the identity provider.",
        support=_LATER,
    )
    sasl_oauthbearer_client_credentials_client_secret: Password | None = setting(
        "sasl.oauthbearer.client.credentials.client.secret",
        Type.PASSWORD,
        None,
        Importance.MEDIUM,
        "The client's secret at the identity provider.",
        support=_LATER,
    )
    sasl_oauthbearer_header_urlencode: bool = setting(
        "sasl.oauthbearer.header.urlencode",
        Type.BOOLEAN,
        False,
        Importance.LOW,
        "Whether id and secret are URL-encoded in the request's header.",
        support=_LATER,
    )
    sasl_oauthbearer_scope_claim_name: str = setting(
        "sasl.oauthbearer.scope.claim.name",
        Type.STRING,
        "scope",
        Importance.LOW,
        "The claim of the token that holds the scope.",
        support=_LATER,
    )
    sasl_oauthbearer_sub_claim_name: str = setting(
        "sasl.oauthbearer.sub.claim.name",
        Type.STRING,
        "sub",
        Importance.LOW,
        "The claim of the token that holds the subject.",
        support=_LATER,
    )
    sasl_oauthbearer_jwt_retriever_class: object = setting(
        "sasl.oauthbearer.jwt.retriever.class",
        Type.CLASS,
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtRetriever",
        Importance.MEDIUM,
        "An object that gets the token.",
        support=_LATER,
    )
    sasl_oauthbearer_jwt_validator_class: object = setting(
        "sasl.oauthbearer.jwt.validator.class",
        Type.CLASS,
        "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
        Importance.MEDIUM,
        "An object that checks the token.",
        support=_LATER,
    )
    sasl_oauthbearer_clock_skew_seconds: int = setting(
        "sasl.oauthbearer.clock.skew.seconds",
        Type.INT,
        30,
        Importance.LOW,
        "How far clocks may be apart when a token's times are checked, in seconds.",
        support=_LATER,
    )
    sasl_oauthbearer_expected_audience: list[str] = setting(
        "sasl.oauthbearer.expected.audience",
        Type.LIST,
        [],
        Importance.HIGH,
        "The audiences of which a token must name one.",
        validator=NoDuplicates(),
        support=_LATER,
    )
    sasl_oauthbearer_expected_issuer: str | None = setting(
        "sasl.oauthbearer.expected.issuer",
        Type.STRING,
        None,
        Importance.HIGH,
        "The issuer that a token must name.",
        support=_LATER,
    )
    sasl_oauthbearer_allow_unverified_audience: bool = setting(
        "sasl.oauthbearer.allow.unverified.audience",
        Type.BOOLEAN,
        False,
        Importance.MEDIUM,
        "Whether tokens are accepted without a check of their audience.",
        support=_LATER,
    )
    sasl_oauthbearer_allow_unverified_issuer: bool = setting(
        "sasl.oauthbearer.allow.unverified.issuer",
        Type.BOOLEAN,
        False,
        Importance.MEDIUM,
        "Whether tokens are accepted without a check of their issuer.",
        support=_LATER,
    )
    sasl_oauthbearer_jwks_endpoint_url: str | None = setting(
        "sasl.oauthbearer.jwks.endpoint.url",
        Type.STRING,
        None,
        Importance.MEDIUM,
        "The address of the keys that tokens are signed with.",
        support=_LATER,
    )
    sasl_oauthbearer_jwks_endpoint_refresh_ms: int = setting(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms",
        Type.LONG,
        3600000,
        Importance.LOW,
        "How long those keys are kept before they are fetched again.",
        support=_LATER,
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_ms: int = setting(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
        Type.LONG,
        100,
        Importance.LOW,
        "The wait before the first new try to fetch those keys.",
        support=_LATER,
    )
    sasl_oauthbearer_jwks_endpoint_retry_backoff_max_ms: int = setting(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms",
        Type.LONG,
        10000,
        Importance.LOW,
        "The longest wait between tries to fetch those keys.",
        support=_LATER,
    )
    sasl_oauthbearer_assertion_algorithm: str = setting(
        "sasl.oauthbearer.assertion.algorithm",
        Type.STRING,
        "RS256",
        Importance.MEDIUM,
        "The algorithm that assertions are signed with.",
        validator=one_of("RS256", "ES256", ignore_case=True),
        support=_LATER,
    )
    sasl_oauthbearer_assertion_claim_aud: str | None = setting(
        "sasl.oauthbearer.assertion.claim.aud",
        Type.STRING,
        None,
        Importance.MEDIUM,
        "The audience that assertions name.",
        support=_LATER,
    )
    sasl_oauthbearer_assertion_claim_exp_seconds: int = setting(
        "sasl.oauthbearer.assertion.claim.exp.seconds",
        Type.INT,
        300,
        Importance.LOW,
        "How long assertions are valid, in seconds.",
        validator=between(0, 86400),
        support=_LATER,
    )
    sasl_oauthbearer_assertion_claim_iss: str | None = setting(
        "sasl.oauthbearer.assertion.claim.iss",
        Type.STRING,
        None,
        Importance.MEDIUM,
        "The issuer that assertions name.",
        support=_LATER,
    )
    sasl_oauthbearer_assertion_claim_jti_include: bool = setting(
        "sasl.oauthbearer.assertion.claim.jti.include",
        Type.BOOLEAN,
        False,
        Importance.MEDIUM,
        "Whether assertions carry an id of their own.",
        support=_LATER,
    )
    sasl_oauthbearer_assertion_claim_nbf_seconds: int = setting(
        "sasl.oauthbearer.assertion.claim.nbf.seconds",
        Type.INT,
        60,
        Importance.LOW,
        "How long before now assertions begin to be valid, in seconds.",
        validator=between(0, 3600),
        support=_LATER,
    )
    sasl_oauthbearer_assertion_claim_sub: str | None = setting(
        "sasl.oauthbearer.assertion.claim.sub",
        Type.STRING,
        None,
        Importance.MEDIUM,
        "The subject that assertions name.",
        support=_LATER,
    )
    sasl_oauthbearer_assertion_file: str | None = setting(
        "sasl.oauthbearer.assertion.file",
        Type.STRING,
        None,
        Importance.MEDIUM,
        "A file with a ready assertion.",
        support=_LATER,
    )
    sasl_oauthbearer_assertion_private_key_file: str | None = setting(
        "sasl.oauthbearer.assertion.private.key.file",
        Type.STRING,
        None,
        Importance.MEDIUM,
        "The private key that assertions are signed with.",
        support=_LATER,
    )
    sasl_oauthbearer_assertion_private_key_passphrase: Password | None = setting(
        "sasl.oauthbearer.assertion.private.key.passphrase",
        Type.PASSWORD,
        None,
        Importance.MEDIUM,
        "The passphrase of that private key.",
        support=_LATER,
    )
    sasl_oauthbearer_assertion_template_file: str | None = setting(
        "sasl.oauthbearer.assertion.template.file",
        Type.STRING,
        None,
        Importance.MEDIUM,
        "A JSON file with further claims for assertions.",
        support=_LATER,
    )
