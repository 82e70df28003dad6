"""Settings of SASL authentication, shared by clients and broker."""

from __future__ import annotations

import attrs

from kclient.config.config_def import Importance, Support
from kclient.config.declare import setting
from kclient.config.oauth_configs import OauthConfig
from kclient.config.validators import between
from kclient.config.values import Password, Type

_LATER = Support.LATER


@attrs.frozen(kw_only=True)
class SaslConfig(OauthConfig):
    """Settings for the client's identity and the proof of it."""

    sasl_mechanism: str = setting(
        "sasl.mechanism",
        Type.STRING,
        "GSSAPI",
        Importance.MEDIUM,
        "The SASL mechanism: GSSAPI, PLAIN, SCRAM-SHA-256, SCRAM-SHA-512 or OAUTHBEARER.",
        support=_LATER,
    )
    sasl_jaas_config: Password | None = setting(
        "sasl.jaas.config",
        Type.PASSWORD,
        None,
        Importance.MEDIUM,
        "The login module with its options, in Java's JAAS notation.",
        support=_LATER,
    )
    sasl_client_callback_handler_class: object | None = setting(
        "sasl.client.callback.handler.class",
        Type.CLASS,
        None,
        Importance.MEDIUM,
        "An object that answers the SASL client's questions for credentials.",
        support=_LATER,
    )
    sasl_login_callback_handler_class: object | None = setting(
        "sasl.login.callback.handler.class",
        Type.CLASS,
        None,
        Importance.MEDIUM,
        "An object that answers the login's questions for credentials.",
        support=_LATER,
    )
    sasl_login_class: object | None = setting(
        "sasl.login.class",
        Type.CLASS,
        None,
        Importance.MEDIUM,
        "An object that does the login.",
        support=_LATER,
    )
    sasl_kerberos_service_name: str | None = setting(
        "sasl.kerberos.service.name",
        Type.STRING,
        None,
        Importance.MEDIUM,
        "The name under which the brokers run in Kerberos.",
        support=_LATER,
    )
    sasl_kerberos_kinit_cmd: str = setting(
        "sasl.kerberos.kinit.cmd",
        Type.STRING,
        "/usr/bin/kinit",
        Importance.LOW,
        "The path of Kerberos' kinit command.",
        support=_LATER,
    )
    sasl_kerberos_min_time_before_relogin: int = setting(
        "sasl.kerberos.min.time.before.relogin",
        Type.LONG,
        60000,
        Importance.LOW,
        "How long a login thread waits at least between two refreshes of a ticket.",
        support=_LATER,
    )
    sasl_kerberos_ticket_renew_window_factor: float = setting(
        "sasl.kerberos.ticket.renew.window.factor",
        Type.DOUBLE,
        0.8,
        Importance.LOW,
        "The part of a ticket's lifetime after which it is renewed.",
        support=_LATER,
    )
    sasl_kerberos_ticket_renew_jitter: float = setting(
        "sasl.kerberos.ticket.renew.jitter",
        Type.DOUBLE,
        0.05,
        Importance.LOW,
        "The random part added to the time of a renewal.",
        support=_LATER,
    )
    sasl_login_refresh_window_factor: float = setting(
        "sasl.login.refresh.window.factor",
        Type.DOUBLE,
        0.8,
        Importance.LOW,
        "The part of a credential's lifetime after which it is refreshed.",
        validator=between(0.5, 1.0),
        support=_LATER,
    )
    sasl_login_refresh_window_jitter: float = setting(
        "sasl.login.refresh.window.jitter",
        Type.DOUBLE,
        0.05,
        Importance.LOW,
        "The random part, of the credential's lifetime, added to the time of a refresh.",
        validator=between(0.0, 0.25),
        support=_LATER,
    )
    sasl_login_refresh_min_period_seconds: int = setting(
        "sasl.login.refresh.min.period.seconds",
        Type.SHORT,
        60,
        Importance.LOW,
        "How long to wait at least before a credential is refreshed, in seconds.",
        validator=between(0, 900),
        support=_LATER,
    )
    sasl_login_refresh_buffer_seconds: int = setting(
        "sasl.login.refresh.buffer.seconds",
        Type.SHORT,
        300,
        Importance.LOW,
        "How long before its expiry a credential is refreshed at the latest, in seconds.",
        validator=between(0, 3600),
        support=_LATER,
    )
    sasl_login_connect_timeout_ms: int | None = setting(
        "sasl.login.connect.timeout.ms",
        Type.INT,
        None,
        Importance.LOW,
        "How long a connection to the identity provider may take.",
        support=_LATER,
    )
    sasl_login_read_timeout_ms: int | None = setting(
        "sasl.login.read.timeout.ms",
        Type.INT,
        None,
        Importance.LOW,
        "How long an answer of the identity provider may take.",
        support=_LATER,
    )
    sasl_login_retry_backoff_ms: int = setting(
        "sasl.login.retry.backoff.ms",
        Type.LONG,
        100,
        Importance.LOW,
        "The wait before the first new try with the identity provider.",
        support=_LATER,
    )
    sasl_login_retry_backoff_max_ms: int = setting(
        "sasl.login.retry.backoff.max.ms",
        Type.LONG,
        10000,
        Importance.LOW,
        "The longest wait between tries with the identity provider.",
        support=_LATER,
    )
