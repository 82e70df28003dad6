"""bootstrap.servers: from the setting to addresses, and from names to IP addresses.

A server is `host:port`, with brackets around an IPv6 address, or a URL whose scheme has a resolver:
`embedded://NAME` and `embedded:///path` start a broker inside this process. Resolvers are found by name at
run time because they stand above this package.
"""

from __future__ import annotations

import importlib
import ipaddress
import re
import socket
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, cast

import attrs

from kclient.errors import BootstrapError, ConfigError, ConnectionFailure
from kclient.utils.log_context import LogContext
from kclient.utils.text import host_and_port

if TYPE_CHECKING:
    from kclient.network.proxy import ProxyAddress

SETTING = "bootstrap.servers"
PROXY_SETTING = "kclient.proxy.url"
_RESOLVERS = {"embedded": "kclient.broker.embedded:resolve"}
_HOST_AND_PORT = re.compile(r"(?:[A-Z_]+://)?(?:\[([0-9A-Fa-f:.]+(?:%[^\]\s]+)?)\]|([^:\s\[\]/]+)):(\S+)")
_URL = re.compile(r"([a-z][a-z0-9+.-]*)://.*")


@attrs.frozen
class BootstrapAddress:
    """A host name or IP address, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return host_and_port(self.host, self.port)


def parse_address(text: str) -> BootstrapAddress:
    """`host:port`, `[v6]:port` or `PROTOCOL://host:port`; raises ConfigError that says what is wrong with
    it.
    """
    match = _HOST_AND_PORT.fullmatch(text)
    if match is None:
        if ":" not in text:
            raise ConfigError(f"{SETTING}: {text!r} has no port; write {text}:9092", name=SETTING)
        if text.count(":") > 1 and "[" not in text:
            raise ConfigError(
                f"{SETTING}: {text!r} is not host:port; put an IPv6 address in brackets, as in [::1]:9092",
                name=SETTING,
            )
        raise ConfigError(f"{SETTING}: {text!r} is not host:port", name=SETTING)
    v6, host, port_text = match.groups()
    if v6 is not None and not _is_ipv6(v6):
        raise ConfigError(f"{SETTING}: {v6!r} in {text!r} is not an IPv6 address", name=SETTING)
    if not (port_text.isascii() and port_text.isdigit() and 0 < int(port_text) <= 65535):
        raise ConfigError(f"{SETTING}: the port of {text!r} must be a number from 1 to 65535", name=SETTING)
    return BootstrapAddress(v6 or host, int(port_text))


def expand_servers(servers: Sequence[str]) -> list[BootstrapAddress]:
    """Every address of the setting in order, without repeats; URLs are handed to their resolvers.

    Raises ConfigError for an empty list, a bad address or an unknown scheme, and whatever a resolver raises.
    """
    addresses: dict[BootstrapAddress, None] = {}
    for server in servers:
        server = server.strip()
        url = _URL.fullmatch(server)
        if url is None:
            if server:
                addresses[parse_address(server)] = None
            continue
        for text in _resolver(url[1], server)(server):
            addresses[parse_address(text)] = None
    if not addresses:
        raise ConfigError(
            f"{SETTING} names no server; give host:port, or embedded://NAME for a broker inside this process",
            name=SETTING,
        )
    return list(addresses)


def resolve_host(host: str) -> list[str]:
    """The IP addresses of `host` in the resolver's order, without repeats. Blocks. Raises OSError if none."""
    return list(dict.fromkeys(_addrinfo(host)))


def validate_proxy_resolvable(proxy: ProxyAddress) -> None:
    """Check that the name of the proxy resolves now; those of brokers are resolved by it. Raises BootstrapError."""
    try:
        resolve_host(proxy.host)
    except OSError as error:
        raise BootstrapError(
            f"The host name of {PROXY_SETTING} does not resolve ({proxy.host}: {error.strerror or error}); check "
            "the name and DNS",
            connection=ConnectionFailure(proxy=str(proxy), step="dns", attempts=1, setting=PROXY_SETTING),
        ) from None


def validate_resolvable(
    addresses: Sequence[BootstrapAddress], lookup: str, log_context: LogContext
) -> list[BootstrapAddress]:
    """Check that at least one name resolves now; names are resolved again whenever they are connected to.

    With `lookup` = resolve_canonical_bootstrap_servers_only every name is replaced by the canonical names of
    all its addresses, as Kerberos needs. Raises BootstrapError that names host and step if no name resolves;
    a name that fails beside others that do not is kept and warned of.
    """
    usable: dict[BootstrapAddress, None] = {}
    failures: list[str] = []
    for address in addresses:
        try:
            found = resolve_host(address.host)
        except OSError as error:
            failures.append(f"{address.host}: {error.strerror or error}")
            usable[address] = None
            continue
        if lookup == "resolve_canonical_bootstrap_servers_only":
            for ip in found:
                usable[BootstrapAddress(socket.getfqdn(ip), address.port)] = None
        else:
            usable[address] = None
    if len(failures) == len(addresses):
        raise BootstrapError(
            f"No host name of {SETTING} resolves ({'; '.join(failures)}); check the names and DNS",
            connection=ConnectionFailure(
                host=addresses[-1].host, port=addresses[-1].port, step="dns", attempts=1, setting=SETTING
            ),
        )
    log = log_context.logger(__name__)
    for failure in failures:
        log.warning("%s: a host name does not resolve now (%s)", SETTING, failure)
    return list(usable)


def _addrinfo(host: str) -> list[str]:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except UnicodeError as error:
        raise OSError(f"{host!r} cannot be a host name: {error}") from error
    return [_with_scope(cast("tuple[Any, ...]", entry[4])) for entry in found]


def _with_scope(sockaddr: tuple[Any, ...]) -> str:
    ip = cast(str, sockaddr[0])
    # A link-local address means nothing without its interface.
    return f"{ip}%{sockaddr[3]}" if len(sockaddr) == 4 and sockaddr[3] and "%" not in ip else ip


def _is_ipv6(text: str) -> bool:
    try:
        ipaddress.IPv6Address(text)
    except ValueError:
        return False
    return True


def _resolver(scheme: str, server: str) -> Callable[[str], Sequence[str]]:
    dotted = _RESOLVERS.get(scheme)
    if dotted is None:
        known = ", ".join(f"{name}://" for name in sorted(_RESOLVERS))
        raise ConfigError(f"{SETTING}: {server!r} has an unknown scheme; known is {known}", name=SETTING)
    module, _, function = dotted.partition(":")
    return cast("Callable[[str], Sequence[str]]", getattr(importlib.import_module(module), function))
