from __future__ import annotations

import logging
import socket
import sys
import types

import pytest

from kclient.client import bootstrap
from kclient.client.bootstrap import BootstrapAddress, expand_servers, parse_address, validate_resolvable
from kclient.errors import BootstrapError, ConfigError, ConnectionFailure
from kclient.utils.log_context import LogContext

IDENTITY = LogContext("[Producer clientId=p] ")


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("localhost:9092", "localhost", 9092),
        ("[::1]:9092", "::1", 9092),
        ("[fe80::1%eth0]:1", "fe80::1%eth0", 1),
        ("PLAINTEXT://kafka-1.example.com:65535", "kafka-1.example.com", 65535),
        ("SASL_SSL://[2001:db8::1]:9093", "2001:db8::1", 9093),
        ("under_score:9092", "under_score", 9092),
    ],
)
def test_an_address_is_host_and_port(text: str, host: str, port: int) -> None:
    assert parse_address(text) == BootstrapAddress(host, port)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("localhost", "has no port; write localhost:9092"),
        ("::1:9092", "brackets"),
        ("localhost:", "not host:port"),
        ("localhost:0", "1 to 65535"),
        ("localhost:65536", "1 to 65535"),
        ("localhost:-1", "1 to 65535"),
        ("localhost:\uff19092", "1 to 65535"),
        ("localhost:abc", "1 to 65535"),
        ("[zz]:9092", "not host:port"),
        ("[1.2.3.4]:9092", "not an IPv6 address"),
        ("a b:9092", "not host:port"),
        (":9092", "not host:port"),
    ],
)
def test_a_wrong_address_is_refused_with_the_setting_and_the_reason(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as caught:
        parse_address(text)
    assert caught.value.name == "bootstrap.servers"
    assert "bootstrap.servers" in str(caught.value)


def test_servers_keep_their_order_without_repeats_and_blanks() -> None:
    assert list(map(str, expand_servers([" b:1", "a:2", "b:1", "", "[::1]:3"]))) == ["b:1", "a:2", "[::1]:3"]


@pytest.mark.parametrize("servers", [[], ["", " "]])
def test_no_server_at_all_says_what_to_use_for_local_work(servers: list[str]) -> None:
    with pytest.raises(ConfigError, match="embedded://NAME"):
        expand_servers(servers)


def test_an_unknown_scheme_is_refused() -> None:
    with pytest.raises(ConfigError, match="unknown scheme; known is embedded://"):
        expand_servers(["http://localhost:9092"])


def test_a_url_is_handed_to_the_resolver_of_its_scheme(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("a_resolver")
    asked: list[str] = []

    def resolve(url: str) -> list[str]:
        asked.append(url)
        return ["127.0.0.1:1234"]

    module.resolve = resolve  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "a_resolver", module)
    monkeypatch.setitem(bootstrap._RESOLVERS, "embedded", "a_resolver:resolve")
    assert expand_servers(["embedded://x", "embedded:///tmp/y"]) == [BootstrapAddress("127.0.0.1", 1234)]
    assert asked == ["embedded://x", "embedded:///tmp/y"]


@pytest.fixture
def dns(monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    table: dict[str, list[str]] = {}

    def getaddrinfo(host: str, *args: object, **kwargs: object) -> list[object]:
        if host not in table:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [(socket.AF_INET, 0, 0, "", (ip, 0)) for ip in table[host]]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return table


def test_no_name_that_resolves_is_an_error_that_names_host_step_and_setting(
    dns: dict[str, list[str]],
) -> None:
    with pytest.raises(
        BootstrapError, match=r"nowhere: Name or service not known.*check the names"
    ) as caught:
        validate_resolvable([BootstrapAddress("nowhere", 9092)], "use_all_dns_ips", IDENTITY)
    assert caught.value.connection == ConnectionFailure(
        host="nowhere", port=9092, step="dns", attempts=1, setting="bootstrap.servers"
    )


def test_a_name_that_does_not_resolve_beside_one_that_does_is_kept_and_warned_of(
    dns: dict[str, list[str]], caplog: pytest.LogCaptureFixture
) -> None:
    dns["here"] = ["10.0.0.1"]
    addresses = [BootstrapAddress("nowhere", 1), BootstrapAddress("here", 2)]
    with caplog.at_level(logging.WARNING):
        assert validate_resolvable(addresses, "use_all_dns_ips", IDENTITY) == addresses
    [line] = caplog.messages
    assert line.startswith("[Producer clientId=p] bootstrap.servers: ")
    assert "nowhere" in line


def test_canonical_lookup_replaces_a_name_by_the_names_of_all_its_addresses(
    dns: dict[str, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    dns["all"] = ["10.0.0.1", "10.0.0.2"]
    monkeypatch.setattr(socket, "getfqdn", lambda ip: f"host-{ip[-1]}")
    found = validate_resolvable(
        [BootstrapAddress("all", 9)], "resolve_canonical_bootstrap_servers_only", IDENTITY
    )
    assert found == [BootstrapAddress("host-1", 9), BootstrapAddress("host-2", 9)]


def test_a_name_that_no_resolver_can_even_ask_for_does_not_resolve() -> None:
    with pytest.raises(OSError, match="cannot be a host name"):
        bootstrap.resolve_host("a" * 70 + ".example")
