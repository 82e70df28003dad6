"""GSSAPI: a Kerberos ticket as the proof of who a client is (RFC 4752)."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Mapping
from pathlib import Path

import attrs

from kclient.config.sasl_configs import SaslConfig
from kclient.errors import ConfigError, IllegalStateError, SaslAuthenticationError
from kclient.security.gssapi_library import Context, Credentials, Name
from kclient.security.jaas import LoginModule
from kclient.security.sasl import SaslMechanism

_JAAS = "sasl.jaas.config"
_SERVICE = "sasl.kerberos.service.name"
_NO_LAYER = 1  # of the security layers that SASL could put over the connection, Kafka has none
_caches = itertools.count(1)


@attrs.define(eq=False, repr=False)
class KerberosMechanism:
    """One exchange. Used once, by one thread; the first step may block for the KDC."""

    _context: Context
    complete: bool = attrs.field(default=False, init=False)

    def first(self) -> bytes:
        return self._context.step(b"")

    def next(self, challenge: bytes) -> bytes | None:
        if self.complete:
            return None
        if not self._context.complete:
            # The last token may be empty; the broker then answers with its layers.
            return self._context.step(challenge)
        offer = self._context.unwrap(challenge)
        if len(offer) != 4 or not offer[0] & _NO_LAYER:
            raise SaslAuthenticationError(
                "The broker wants a security layer of SASL, which Kafka does not have"
            )
        self.complete = True
        # The layer, no bytes for frames of it, and no user but the one of the ticket.
        return self._context.wrap(bytes([_NO_LAYER, 0, 0, 0]))


@attrs.frozen(repr=False)
class KerberosCredentials:
    """The tickets of a user, from a key table or a cache. Belongs to one thread."""

    _service: str
    _user: str | None
    _store: Mapping[str, str]
    mechanism: str = attrs.field(default="GSSAPI", init=False)

    @classmethod
    def from_config(cls, config: SaslConfig, module: LoginModule | None) -> KerberosCredentials:
        """Return the credentials that the settings and the options of Java's Krb5LoginModule tell of.

        Without `sasl.jaas.config` they are those of the user that runs the program. Raises ConfigError that names the
        setting that is wrong or missing.
        """
        options = {} if module is None else module.options
        service = config.sasl_kerberos_service_name or options.get("serviceName")
        if not service:
            raise ConfigError(
                f"sasl.mechanism GSSAPI needs {_SERVICE}, which is mostly kafka.", name=_SERVICE
            )
        store: dict[str, str] = {}
        if _is_true(options, "useKeyTab"):
            if not options.get("principal"):
                raise ConfigError(f'{_JAAS}: useKeyTab needs principal="user@REALM".', name=_JAAS)
            if options.get("keyTab"):
                store["client_keytab"] = _readable(options["keyTab"])
            # The library keeps the tickets there, and fetches others in time.
            store["ccache"] = f"MEMORY:kclient-{next(_caches)}"
        elif options.get("ticketCache"):
            store["ccache"] = options["ticketCache"]
        made = cls(service, options.get("principal"), store)
        with contextlib.suppress(ConnectionError):  # a KDC that is away may come back
            made._credentials()
        return made

    def new_mechanism(self, host: str) -> SaslMechanism:
        service = Name(f"{self._service}@{host}", service=True)
        return KerberosMechanism(Context(self._credentials(), service))

    def update(self, username: str, password: str) -> None:
        del username, password
        raise IllegalStateError("GSSAPI has no password; a new key table is read from its file")

    def close(self) -> None:
        pass

    def _credentials(self) -> Credentials:
        try:
            return Credentials(None if self._user is None else Name(self._user, service=False), self._store)
        except SaslAuthenticationError as error:
            who = self._user or "the user of the ticket cache"
            raise SaslAuthenticationError(
                f"No ticket for {who}: {error} (the principal with its keyTab, or the ticketCache, of {_JAAS})"
            ) from None


def _readable(key_table: str) -> str:
    try:
        with Path(key_table.removeprefix("FILE:")).open("rb"):
            return key_table
    except OSError as error:
        raise ConfigError(f"{_JAAS}: the keyTab cannot be read: {error}", name=_JAAS) from None


def _is_true(options: Mapping[str, str], name: str) -> bool:
    return options.get(name, "").lower() == "true"
