"""Credentials of a client, by its settings: a password, a token or a Kerberos ticket."""

from __future__ import annotations

import attrs

from kclient.config.sasl_configs import SaslConfig
from kclient.errors import ConfigError, IllegalStateError
from kclient.security.jaas import LoginModule, parse_jaas
from kclient.security.oauth_bearer import OAuthBearerMechanism
from kclient.security.sasl import PlainMechanism, SaslCredentials, SaslMechanism
from kclient.security.scram import ScramMechanism
from kclient.security.token_login import RefreshSchedule, TokenLogin
from kclient.utils.log_context import LogContext

_JAAS = "sasl.jaas.config"
_MODULES = {
    "PLAIN": "plain.PlainLoginModule",
    "SCRAM-SHA-256": "scram.ScramLoginModule",
    "SCRAM-SHA-512": "scram.ScramLoginModule",
    "OAUTHBEARER": "oauthbearer.OAuthBearerLoginModule",
    "GSSAPI": "com.sun.security.auth.module.Krb5LoginModule",
}


@attrs.define(repr=False)
class PasswordCredentials:
    """A user and a password, for PLAIN and SCRAM."""

    mechanism: str
    _module: LoginModule

    def __attrs_post_init__(self) -> None:
        self._check(self._module.option("username"), self._module.option("password"))

    def new_mechanism(self, host: str) -> SaslMechanism:
        del host
        module = self._module  # read once, as another thread may replace it
        username, password = module.option("username"), module.option("password")
        if self.mechanism == "PLAIN":
            return PlainMechanism(username, password)
        token = module.options.get("tokenauth", "").lower() == "true"
        return ScramMechanism(self.mechanism, username, password, delegation_token=token)

    def update(self, username: str, password: str) -> None:
        self._check(username, password)
        options = {**self._module.options, "username": username, "password": password}
        self._module = LoginModule(self._module.name, options)

    def close(self) -> None:
        pass

    def _check(self, username: str, password: str) -> None:
        if self.mechanism == "PLAIN" and "\0" in username + password:
            raise ConfigError(f"{_JAAS}: PLAIN has no way to send a NUL in username or password.", name=_JAAS)


@attrs.frozen(repr=False)
class TokenCredentials:
    """The token of a login, as it is when an exchange begins, for OAUTHBEARER."""

    _login: TokenLogin
    mechanism: str = attrs.field(default="OAUTHBEARER", init=False)

    def new_mechanism(self, host: str) -> SaslMechanism:
        del host
        return OAuthBearerMechanism(self._login.token())

    def update(self, username: str, password: str) -> None:
        del username, password
        raise IllegalStateError("OAUTHBEARER has no password; the next token comes from where the first did")

    def close(self) -> None:
        self._login.close()


def sasl_credentials(config: SaslConfig, log_context: LogContext) -> SaslCredentials:
    """Return the credentials of the settings; fetches the first token for OAUTHBEARER, which may block.

    Raises ConfigError that names the setting that is wrong, and whatever there is no token for.
    """
    mechanism = config.sasl_mechanism.upper()
    if mechanism not in _MODULES:
        raise ConfigError(
            f"sasl.mechanism {config.sasl_mechanism} is none of those there are: {', '.join(_MODULES)}.",
            name="sasl.mechanism",
        )
    module = _module(config, mechanism)
    # The two below are imported where they are wanted: they bring ctypes, and a client of HTTP.
    if mechanism == "OAUTHBEARER":
        from kclient.security.token_sources import token_source

        schedule = RefreshSchedule(
            window_factor=config.sasl_login_refresh_window_factor,
            window_jitter=config.sasl_login_refresh_window_jitter,
            min_period_ms=config.sasl_login_refresh_min_period_seconds * 1000,
            buffer_ms=config.sasl_login_refresh_buffer_seconds * 1000,
        )
        return TokenCredentials(TokenLogin(token_source(config, module), schedule, log_context))
    if mechanism == "GSSAPI":
        from kclient.security.kerberos import KerberosCredentials

        return KerberosCredentials.from_config(config, module)
    if module is None:
        raise ConfigError(
            f"sasl.mechanism {mechanism} needs {_JAAS}: org.apache.kafka.common.security.{_MODULES[mechanism]} "
            'required username="..." password="...";',
            name=_JAAS,
        )
    return PasswordCredentials(mechanism, module)


def _module(config: SaslConfig, mechanism: str) -> LoginModule | None:
    if config.sasl_jaas_config is None:
        return None
    module = parse_jaas(config.sasl_jaas_config)
    wanted = _MODULES[mechanism].rpartition(".")[2]
    if module.name != wanted:
        raise ConfigError(
            f"{_JAAS}: {module.name} does not fit sasl.mechanism {mechanism}, which needs {wanted}.",
            name=_JAAS,
        )
    return module
