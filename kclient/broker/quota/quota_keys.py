"""The quotas that there are, who can have which, and the values that they can have (KIP-546)."""

from __future__ import annotations

import ipaddress
import math
import socket
from collections.abc import Mapping
from types import MappingProxyType

import attrs

from kclient.errors import InvalidRequestError

USER = "user"
CLIENT_ID = "client-id"
IP = "ip"
ENTITY_TYPES = frozenset({USER, CLIENT_ID, IP})

PRODUCER_BYTE_RATE = "producer_byte_rate"
CONSUMER_BYTE_RATE = "consumer_byte_rate"
REQUEST_PERCENTAGE = "request_percentage"
CONTROLLER_MUTATION_RATE = "controller_mutation_rate"
CONNECTION_CREATION_RATE = "connection_creation_rate"

_FRACTION = 1e-6  # of a whole number, that is still one: Kafka's tolerance


@attrs.frozen
class _Range:
    """The values of a quota. Immutable."""

    most: float = math.inf
    whole: bool = False


_WHOLE_LONG = _Range(float(1 << 63), whole=True)  # as doubles have it, 2**63 - 1 is 2**63
_USER_QUOTAS = MappingProxyType(
    {
        PRODUCER_BYTE_RATE: _WHOLE_LONG,
        CONSUMER_BYTE_RATE: _WHOLE_LONG,
        REQUEST_PERCENTAGE: _Range(),
        CONTROLLER_MUTATION_RATE: _Range(),
    }
)
_IP_QUOTAS = MappingProxyType({CONNECTION_CREATION_RATE: _Range(float((1 << 31) - 1), whole=True)})


def check_entity(entity: Mapping[str, str | None]) -> None:
    """Check who a quota is to be for: names by kinds, None for the default of a kind. Raises InvalidRequestError.

    May ask the resolver for the address of a host.
    """
    if not entity:
        raise InvalidRequestError("A quota must be for a user, a client id or an address")
    for kind, name in entity.items():
        if kind not in ENTITY_TYPES:
            raise InvalidRequestError(f"There are no quotas of {kind!r}, only of user, client-id and ip")
        if name == "":
            raise InvalidRequestError(f"The name of a {kind} must not be empty")
    if IP in entity:
        if len(entity) > 1:
            raise InvalidRequestError("A quota of an ip cannot be one of a user or a client-id as well")
        name = entity[IP]
        if name is not None and address_of(name) is None:
            raise InvalidRequestError(f"{name} is neither an address nor the name of a host that has one")


def check_quota(entity: Mapping[str, str | None], key: str, value: float) -> None:
    """Check that the quota called `key` can have this value for this entity. Raises InvalidRequestError."""
    allowed = (_IP_QUOTAS if IP in entity else _USER_QUOTAS).get(key)
    if allowed is None:
        raise InvalidRequestError(f"{' and '.join(sorted(entity))} can have no quota {key}")
    if value <= 0:
        raise InvalidRequestError(f"{key} must be more than 0, not {value:g}")
    if not math.isfinite(value) or value > allowed.most:
        raise InvalidRequestError(f"{key} is too large: {value:g}")
    if allowed.whole and value % 1 > _FRACTION:
        raise InvalidRequestError(f"{key} must be a whole number, not {value!r}")


def address_of(host: str) -> str | None:
    """Return the address of a host in the form in which connections have it; None if it has none.

    Asks the resolver only where `host` is no address.
    """
    try:
        return canonical(str(ipaddress.ip_address(host)))
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError, ValueError):
        return None
    # As Java, which prefers IPv4 where a host has both.
    *_, address = min(found, key=lambda each: each[0] != socket.AF_INET)
    return canonical(str(address[0]))


def canonical(address: str) -> str:
    """Return the one form of an address: IPv4 in IPv6 is IPv4."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    mapped = parsed.ipv4_mapped if isinstance(parsed, ipaddress.IPv6Address) else None
    return str(mapped or parsed)
