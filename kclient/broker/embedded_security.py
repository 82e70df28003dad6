"""EmbeddedSecurity: the settings of both sides of an embedded broker that asks its clients who they are."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path

from kclient.broker.network.listener import SECURITY_PROTOCOLS
from kclient.broker.security.authorizer_config import STANDARD_AUTHORIZER
from kclient.broker.security.certificates import CertificateAuthority
from kclient.broker.security.principal import ANONYMOUS, USER, KafkaPrincipal, distinguished_name
from kclient.errors import ConfigError

_HOSTS = ("localhost", "127.0.0.1", "::1")
_QUOTED = str.maketrans({'"': '\\"', "\\": "\\\\"})


class EmbeddedSecurity:
    """A security protocol, the users of it, those who may do everything, and certificates that were made for it. Not
    thread-safe.

    Raises ConfigError for a protocol that is none, users with a protocol that knows none, SASL without users, and super
    users that could never come.
    """

    def __init__(
        self, protocol: str, users: Mapping[str, str], super_users: Collection[str] | None = None
    ) -> None:
        if protocol not in SECURITY_PROTOCOLS:
            raise ConfigError(
                f"security: {protocol!r} is none of {', '.join(SECURITY_PROTOCOLS)}", name="security"
            )
        self.protocol = protocol
        self._users = dict(users)
        self._sasl, self._tls = protocol.startswith("SASL"), protocol.endswith("SSL")
        if self._sasl and not users:
            raise ConfigError(f"security {protocol} needs users, by name with their passwords", name="users")
        if users and not self._sasl:
            raise ConfigError(
                f"security {protocol} asks nobody for a password; leave out users", name="users"
            )
        self._super_users = None if super_users is None else self._principals(super_users)
        self._directory: Path | None = None
        self._authority: CertificateAuthority | None = None

    def broker_settings(self) -> dict[str, object]:
        """Return the broker's settings; makes its certificate at the first call."""
        settings: dict[str, object] = {}
        if self._super_users is not None:
            settings["authorizer.class.name"] = STANDARD_AUTHORIZER
            settings["super.users"] = ";".join(self._super_users)
        if self._tls:
            authority = self._begun()
            settings["ssl.keystore.location"] = str(authority.issue("localhost", _HOSTS))
            settings["ssl.truststore.location"] = str(authority.file)
        if self._sasl:
            known = " ".join(f'user_{name}="{_quoted(password)}"' for name, password in self._users.items())
            settings["sasl.enabled.mechanisms"] = "PLAIN"
            settings[f"listener.name.{self.protocol.lower()}.plain.sasl.jaas.config"] = (
                f"PlainLoginModule required {known};"
            )
        return settings

    def client_settings(self, user: str | None = None) -> dict[str, str]:
        """Return the settings of a client: with SASL as `user` (None: the first one), with TLS alone with a certificate
        of `user` if that is given. Raises ConfigError for a user that is not known.
        """
        settings = {"security.protocol": self.protocol}
        if self._tls:
            authority = self._begun()
            settings["ssl.truststore.location"] = str(authority.file)
            if user is not None and not self._sasl:
                settings["ssl.keystore.location"] = str(authority.issue(user))
        if self._sasl:
            name = next(iter(self._users)) if user is None else user
            if name not in self._users:
                raise ConfigError(f"{name!r} is none of the users {', '.join(self._users)}", name="user")
            password = _quoted(self._users[name])
            settings["sasl.mechanism"] = "PLAIN"
            settings["sasl.jaas.config"] = (
                f'PlainLoginModule required username="{_quoted(name)}" password="{password}";'
            )
        elif user is not None and not self._tls:
            raise ConfigError("security PLAINTEXT asks nobody who it is; leave out the user", name="user")
        return settings

    def close(self) -> None:
        """Remove the certificates. Idempotent."""
        if self._directory is not None:
            shutil.rmtree(self._directory, ignore_errors=True)
            self._directory = self._authority = None

    def _principals(self, super_users: Collection[str]) -> list[str]:
        """The principals of users, as the broker will know them."""
        if isinstance(super_users, str):
            raise TypeError(f"super_users must be a list of names, not {super_users!r}")
        for name in super_users:
            if self._sasl and name not in self._users:
                raise ConfigError(f"super_users: {name!r} is none of the users", name="super_users")
            if not (self._sasl or self._tls) and name != ANONYMOUS.name:
                raise ConfigError(
                    f"super_users: security {self.protocol} knows everybody as {ANONYMOUS.name}, nobody as {name!r}",
                    name="super_users",
                )
            if ";" in name:
                raise ConfigError(
                    f"super_users: {name!r} has a semicolon, which separates names", name="super_users"
                )
        if self._sasl or not self._tls:
            return [str(KafkaPrincipal(USER, name)) for name in super_users]
        subjects = (distinguished_name([[("commonName", name)]]) for name in super_users)
        return [str(KafkaPrincipal(USER, subject)) for subject in subjects]

    def _begun(self) -> CertificateAuthority:
        if self._authority is None:
            self._directory = Path(tempfile.mkdtemp(prefix="kclient-certificates-"))
            self._authority = CertificateAuthority(self._directory)
        return self._authority


def _quoted(value: str) -> str:
    return value.translate(_QUOTED)
