"""Settings of SASL authentication, shared by clients and broker."""

from __future__ import annotations

import attrs

from kclient.config.config_def import JVM, LATER, LOW, MEDIUM
from kclient.config.declare import class_, double, integer, long, password, short, string
from kclient.config.oauth_configs import OauthConfig
from kclient.config.validators import between
from kclient.config.values import Password


@attrs.frozen(kw_only=True)
class SaslConfig(OauthConfig):
    """Settings for the client's identity and the proof of it."""

    sasl_mechanism: str = string(
        "GSSAPI",
        MEDIUM,
        "The SASL mechanism: GSSAPI, PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER.",
        support=LATER,
        off=("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER"),
    )
    sasl_jaas_config: Password | None = password(
        None,
        MEDIUM,
        "The login module with its options, in Java's JAAS notation: PlainLoginModule or ScramLoginModule with "
        "username and password, OAuthBearerLoginModule, which may have clientId, clientSecret and scope, or "
        "Krb5LoginModule with principal and keyTab, or with ticketCache.",
    )
    sasl_client_callback_handler_class: object | None = class_(
        None, MEDIUM, "An object that answers the SASL client's questions for credentials.", support=LATER
    )
    sasl_login_callback_handler_class: object | None = class_(
        None,
        MEDIUM,
        "For OAUTHBEARER, a function that returns a token: an OAuthBearerToken, or a JWT as str. It is called for the "
        "first time when the client is made, and later by a thread of its own. The name of Java's "
        "OAuthBearerLoginCallbackHandler is accepted as well.",
    )
    sasl_login_class: object | None = class_(None, MEDIUM, "An object that does the login.", support=LATER)
    sasl_kerberos_service_name: str | None = string(
        None, MEDIUM, "The name under which the brokers run in Kerberos."
    )
    sasl_kerberos_kinit_cmd: str = string(
        "/usr/bin/kinit", LOW, "The path of Kerberos' kinit command.", support=JVM
    )
    sasl_kerberos_min_time_before_relogin: int = long(
        60000, LOW, "How long a login thread waits at least between two refreshes of a ticket.", support=JVM
    )
    sasl_kerberos_ticket_renew_window_factor: float = double(
        0.8, LOW, "The part of a ticket's lifetime after which it is renewed.", support=JVM
    )
    sasl_kerberos_ticket_renew_jitter: float = double(
        0.05, LOW, "The random part added to the time of a renewal.", support=JVM
    )
    sasl_login_refresh_window_factor: float = double(
        0.8,
        LOW,
        "The part of a credential's lifetime after which it is refreshed.",
        between(0.5, 1.0),
    )
    sasl_login_refresh_window_jitter: float = double(
        0.05,
        LOW,
        "The random part, of the credential's lifetime, added to the time of a refresh.",
        between(0.0, 0.25),
    )
    sasl_login_refresh_min_period_seconds: int = short(
        60,
        LOW,
        "How long to wait at least before a credential is refreshed, in seconds.",
        between(0, 900),
    )
    sasl_login_refresh_buffer_seconds: int = short(
        300,
        LOW,
        "How long before its expiry a credential is refreshed at the latest, in seconds.",
        between(0, 3600),
    )
    sasl_login_connect_timeout_ms: int | None = integer(
        None, LOW, "How long a connection to the identity provider may take."
    )
    sasl_login_read_timeout_ms: int | None = integer(
        None, LOW, "How long an answer of the identity provider may take."
    )
    sasl_login_retry_backoff_ms: int = long(
        100, LOW, "The wait before the first new try with the identity provider."
    )
    sasl_login_retry_backoff_max_ms: int = long(
        10000, LOW, "The longest wait between tries with the identity provider."
    )
