"""ListenerSecurity: from a listener's settings to what its connections need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import attrs

from kclient.broker.network.listener import Listener
from kclient.broker.security.channel_builder import ServerChannelBuilder
from kclient.broker.security.listener_config import ListenerConfig
from kclient.broker.security.mechanisms import PlainServer, ServerMechanism
from kclient.broker.security.oauth_bearer import UnsecuredOAuthBearerServer
from kclient.broker.security.principal import PrincipalMapping
from kclient.broker.security.sasl_authenticator import SaslServerSettings
from kclient.broker.security.scram import ScramCredential, ScramServer
from kclient.config.values import Password
from kclient.errors import ConfigError
from kclient.network.transport import Buffer
from kclient.protocol.header import RequestHeader
from kclient.security.jaas import parse_jaas
from kclient.security.scram import HASHES
from kclient.security.tls import TlsContexts, server_context
from kclient.utils.log_context import LogContext
from kclient.utils.time import Time

_USER_OPTION = "user_"
_UNSECURED_OPTION = "unsecured"

ScramCredentials = Callable[[str, str], "ScramCredential | None"]
"""The credential of a mechanism and a user, None if there is none."""


@attrs.frozen(kw_only=True)
class ListenerSecurity:
    """Makes the channel builders of a listener, one for each processor. Thread-safe."""

    listener: Listener
    config: ListenerConfig
    jaas: Mapping[str, Password]
    """Options of SASL mechanisms, by their names in lower case."""
    scram_credentials: ScramCredentials
    answer_versions: Callable[[RequestHeader], list[Buffer]]
    time: Time
    log_context: LogContext

    def check(self) -> None:
        """Raise ConfigError for settings that no connection could be made with."""
        PrincipalMapping.parse(self.config.ssl_principal_mapping_rules)
        if self.listener.uses_tls:
            server_context(self.config, self.config.ssl_client_auth)
        if self.listener.uses_sasl:
            self._mechanisms()

    def builder(self, on_refused: Callable[[str], None]) -> ServerChannelBuilder:
        """Return a builder for the channels of one thread. Raises ConfigError."""
        config, tls, sasl = self.config, None, None
        if self.listener.uses_tls:
            make = partial(server_context, client_auth=config.ssl_client_auth)
            tls = TlsContexts(config, self.log_context, make=make)
        if self.listener.uses_sasl:
            sasl = SaslServerSettings(
                mechanisms=self._mechanisms(),
                answer_versions=self.answer_versions,
                max_reauth_ms=config.connections_max_reauth_ms,
            )
        return ServerChannelBuilder(
            time=self.time,
            tls=tls,
            sasl=sasl,
            mapping=PrincipalMapping.parse(config.ssl_principal_mapping_rules),
            on_refused=on_refused,
        )

    def _mechanisms(self) -> dict[str, Callable[[], ServerMechanism]]:
        names = self.config.sasl_enabled_mechanisms
        if not names:
            raise ConfigError(
                f"sasl.enabled.mechanisms is empty, and {self.listener} is a listener with SASL: name the mechanisms",
                name="sasl.enabled.mechanisms",
            )
        return {name: self._mechanism(name) for name in names}

    def _mechanism(self, name: str) -> Callable[[], ServerMechanism]:
        if name == "PLAIN":
            return partial(PlainServer, self._plain_users())
        if name in HASHES:
            return partial(ScramServer, name, partial(self.scram_credentials, name))
        if name == "OAUTHBEARER":
            self._check_unsecured()
            return partial(UnsecuredOAuthBearerServer, self.time)
        raise ConfigError(
            f"sasl.enabled.mechanisms: {name} is not served; PLAIN, {', '.join(HASHES)} and OAUTHBEARER are",
            name="sasl.enabled.mechanisms",
        )

    def _plain_users(self) -> dict[str, str]:
        setting, options = self._options("PLAIN")
        users = {
            name.removeprefix(_USER_OPTION): password
            for name, password in options.items()
            if name.startswith(_USER_OPTION)
        }
        if not users:
            raise ConfigError(f'{setting} names no users: user_NAME="PASSWORD" is one', name=setting)
        return users

    def _check_unsecured(self) -> None:
        setting, options = self._options("OAUTHBEARER")
        if options.get(_UNSECURED_OPTION) != "true":
            raise ConfigError(
                "Tokens of OAUTHBEARER cannot be checked with an identity provider yet. For development those without "
                f"a signature are taken, in which anybody can name any user, if {setting} has the option "
                f'{_UNSECURED_OPTION}="true"',
                name=setting,
            )

    def _options(self, mechanism: str) -> tuple[str, Mapping[str, str]]:
        """Return the name of the setting with a mechanism's options, and the options."""
        known = mechanism.lower()
        setting = f"listener.name.{self.listener.name.lower()}.{known}.sasl.jaas.config"
        text = self.jaas.get(known)
        if text is None:
            raise ConfigError(f"{setting} is not set: it has the options of {mechanism}", name=setting)
        return setting, parse_jaas(text).options
