"""SASL mechanisms of a client, without their I/O: tokens out, challenges in."""

from __future__ import annotations

from typing import Protocol

import attrs

from kclient.config.sasl_configs import SaslConfig
from kclient.errors import ConfigError
from kclient.security.jaas import LoginModule, parse_jaas
from kclient.security.scram import ScramMechanism

_MODULES = {
    "PLAIN": "PlainLoginModule",
    "SCRAM-SHA-256": "ScramLoginModule",
    "SCRAM-SHA-512": "ScramLoginModule",
}


class SaslMechanism(Protocol):
    """One exchange. Used once, by one thread."""

    @property
    def complete(self) -> bool:
        """True once this side has nothing more to send, and nothing to check."""

    def first(self) -> bytes:
        """Return the first token."""

    def next(self, challenge: bytes) -> bytes | None:
        """Return the answer to a challenge, None if the exchange is over. Raises SaslAuthenticationError."""


@attrs.define(repr=False)
class PlainMechanism:
    """PLAIN (RFC 4616): user and password as they are, so the connection should be TLS."""

    _username: str
    _password: str
    complete: bool = attrs.field(default=False, init=False)

    def first(self) -> bytes:
        return f"\0{self._username}\0{self._password}".encode()

    def next(self, challenge: bytes) -> bytes | None:
        del challenge  # always empty
        self.complete = True
        return None


@attrs.frozen(repr=False)
class SaslCredentials:
    """The identity of a client and how it is proven. Immutable."""

    mechanism: str
    """Its name, as "SCRAM-SHA-512"."""
    _module: LoginModule

    @classmethod
    def from_config(cls, config: SaslConfig) -> SaslCredentials:
        """Return the credentials of the settings. Raises ConfigError that names the setting that is wrong."""
        mechanism = config.sasl_mechanism.upper()
        if mechanism not in _MODULES:
            raise ConfigError(
                f"sasl.mechanism {config.sasl_mechanism} is not implemented yet; set it to one of "
                f"{', '.join(_MODULES)}.",
                name="sasl.mechanism",
            )
        wanted = _MODULES[mechanism]
        if config.sasl_jaas_config is None:
            package = "plain" if wanted == "PlainLoginModule" else "scram"
            raise ConfigError(
                f"sasl.mechanism {mechanism} needs sasl.jaas.config: org.apache.kafka.common.security.{package}."
                f'{wanted} required username="..." password="...";',
                name="sasl.jaas.config",
            )
        module = parse_jaas(config.sasl_jaas_config)
        if module.name != wanted:
            raise ConfigError(
                f"sasl.jaas.config: {module.name} does not fit sasl.mechanism {mechanism}, which needs {wanted}.",
                name="sasl.jaas.config",
            )
        made = cls(mechanism, module)
        made.new_mechanism()
        return made

    def new_mechanism(self) -> SaslMechanism:
        """Return the mechanism for one exchange."""
        username, password = self._module.option("username"), self._module.option("password")
        if self.mechanism == "PLAIN":
            if "\0" in username + password:
                raise ConfigError(
                    "sasl.jaas.config: PLAIN has no way to send a NUL in username or password.",
                    name="sasl.jaas.config",
                )
            return PlainMechanism(username, password)
        token = self._module.options.get("tokenauth", "").lower() == "true"
        return ScramMechanism(self.mechanism, username, password, delegation_token=token)
