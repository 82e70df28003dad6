"""Listener: an address that a broker listens on, and the security protocol that is spoken there."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import attrs

from kclient.errors import ConfigError
from kclient.utils.text import host_and_port

SECURITY_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_LISTENER = re.compile(
    r"(?P<name>[A-Za-z0-9_-]+)://(?:\[(?P<v6>[0-9a-fA-F:.]+)\]|(?P<host>[^:/\[\]]*)):(?P<port>\d{1,5})"
)
_MAPPED = re.compile(r"(?P<name>[A-Za-z0-9_-]+):(?P<protocol>[A-Za-z_]+)")
_MAP = "listener.security.protocol.map"


@attrs.frozen
class Endpoint:
    """The address at which clients reach a broker. An IPv6 host has no brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return host_and_port(self.host, self.port)


@attrs.frozen
class Listener:
    """A name, an address and a security protocol. Immutable."""

    name: str
    endpoint: Endpoint
    security_protocol: str = "PLAINTEXT"

    def __str__(self) -> str:
        return f"{self.name}://{self.endpoint}"

    @property
    def uses_tls(self) -> bool:
        """True if connections are encrypted."""
        return self.security_protocol.endswith("SSL")

    @property
    def uses_sasl(self) -> bool:
        """True if clients prove by SASL who they are."""
        return self.security_protocol.startswith("SASL")


def parse_protocol_map(entries: Sequence[str]) -> dict[str, str]:
    """Parse `NAME:PROTOCOL` entries into security protocols by the names of listeners in upper case.

    The names of the protocols stand for themselves. Raises ConfigError.
    """
    protocols = {name: name for name in SECURITY_PROTOCOLS}
    for entry in entries:
        found = _MAPPED.fullmatch(entry)
        if found is None or found["protocol"].upper() not in SECURITY_PROTOCOLS:
            raise ConfigError(
                f"{_MAP}: {entry!r} is not of the form NAME:PROTOCOL with one of {', '.join(SECURITY_PROTOCOLS)}",
                name=_MAP,
            )
        protocols[found["name"].upper()] = found["protocol"].upper()
    return protocols


def parse_listener(setting: str, text: str, protocols: Mapping[str, str]) -> Listener:
    """Parse `NAME://HOST:PORT`, where a name is one of `protocols`. Raises ConfigError naming the `setting`."""
    found = _LISTENER.fullmatch(text)
    if found is None or int(found["port"]) > 65535:
        raise ConfigError(f"{setting}: {text!r} is not of the form PLAINTEXT://HOST:PORT", name=setting)
    name = found["name"].upper()
    protocol = protocols.get(name)
    if protocol is None:
        raise ConfigError(
            f"{setting}: {name} is no security protocol ({', '.join(SECURITY_PROTOCOLS)}) and not in {_MAP}",
            name=setting,
        )
    endpoint = Endpoint(found["v6"] or found["host"] or "", int(found["port"]))
    return Listener(name, endpoint, protocol)
