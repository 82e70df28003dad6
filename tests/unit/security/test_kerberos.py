"""Kerberos' part of a client: settings, and the steps of an exchange."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kclient.config.sasl_configs import SaslConfig
from kclient.config.values import Password
from kclient.errors import ConfigError, IllegalStateError, SaslAuthenticationError
from kclient.security import kerberos
from kclient.security.kerberos import KerberosMechanism
from kclient.security.sasl import SaslCredentials
from kclient.security.sasl_credentials import sasl_credentials
from kclient.utils.log_context import LogContext

KRB5 = "com.sun.security.auth.module.Krb5LoginModule required"


class ScriptedContext:
    """A context that is complete after one answer; wrapping puts a mark before the data."""

    def __init__(self) -> None:
        self.complete = False
        self.seen: list[bytes] = []

    def step(self, token: bytes) -> bytes:
        self.seen.append(token)
        self.complete = bool(token)
        return b"" if token else b"ticket"

    def wrap(self, data: bytes) -> bytes:
        return b"w" + data

    def unwrap(self, data: bytes) -> bytes:
        if data[:1] != b"w":
            raise SaslAuthenticationError("not the peer's")
        return data[1:]


def established() -> KerberosMechanism:
    """Return an exchange whose tickets have been checked."""
    exchange = KerberosMechanism(ScriptedContext())  # type: ignore[arg-type]
    assert exchange.first() == b"ticket"
    assert exchange.next(b"proof") == b""  # the last token of the context may be empty, and is sent
    assert not exchange.complete
    return exchange


def test_no_security_layer_is_chosen_after_the_tickets_were_checked() -> None:
    exchange = established()
    assert exchange.next(b"w\x07\x00\xff\xff") == b"w\x01\x00\x00\x00"
    assert exchange.complete
    assert exchange.next(b"") is None


@pytest.mark.parametrize("offer", [b"", b"\x01", b"\x06\x00\xff\xff", b"\x01\x00\x00\x00\x00"])
def test_a_broker_that_insists_on_a_layer_is_refused(offer: bytes) -> None:
    exchange = established()
    with pytest.raises(SaslAuthenticationError, match="security layer"):
        exchange.next(b"w" + offer)
    assert not exchange.complete


def test_an_offer_of_somebody_else_is_refused() -> None:
    with pytest.raises(SaslAuthenticationError, match="not the peer's"):
        established().next(b"\x01\x00\x00\x00")


Acquired = list[tuple[str | None, dict[str, str]]]


@pytest.fixture
def acquired(monkeypatch: pytest.MonkeyPatch) -> Acquired:
    """Return the credentials that are asked for, each by user and store."""
    asked: Acquired = []
    monkeypatch.setattr(kerberos, "Name", lambda text, *, service: text)
    monkeypatch.setattr(kerberos, "Credentials", lambda user, store: asked.append((user, dict(store))))
    return asked


def credentials(jaas: str | None, **settings: Any) -> SaslCredentials:
    config = SaslConfig(
        sasl_mechanism="GSSAPI",
        sasl_jaas_config=None if jaas is None else Password(f"{KRB5} {jaas};"),
        **{"sasl_kerberos_service_name": "kafka", **settings},
    )
    return sasl_credentials(config, LogContext())


def test_a_key_table_has_a_cache_of_the_clients_own(acquired: Acquired, tmp_path: Path) -> None:
    table = tmp_path / "keys"
    table.touch()
    for _ in range(2):
        credentials(f'useKeyTab=true keyTab="{table}" principal="alice@EXAMPLE.COM"')
    (user, first), (_, second) = acquired
    assert user == "alice@EXAMPLE.COM"
    assert first["client_keytab"] == second["client_keytab"] == str(table)
    assert first["ccache"].startswith("MEMORY:")
    assert first["ccache"] != second["ccache"]


@pytest.mark.parametrize(
    ("jaas", "expected"),
    [
        (None, (None, {})),
        ("useTicketCache=true", (None, {})),
        ('useTicketCache=true ticketCache="/tmp/c" principal="bob"', ("bob", {"ccache": "/tmp/c"})),
    ],
)
def test_without_a_key_table_the_tickets_are_those_of_a_cache(
    acquired: Acquired, jaas: str | None, expected: tuple[str | None, dict[str, str]]
) -> None:
    credentials(jaas)
    assert acquired == [expected]


@pytest.mark.parametrize(
    ("jaas", "service", "name", "why"),
    [
        ("useKeyTab=true", None, "sasl.kerberos.service.name", "mostly kafka"),
        ('useKeyTab=true keyTab="/k"', "kafka", "sasl.jaas.config", "needs principal"),
        ('useKeyTab=true keyTab="/nowhere/k" principal="a"', "kafka", "sasl.jaas.config", "cannot be read"),
    ],
)
def test_what_is_missing_is_told_with_its_setting(
    acquired: Acquired, jaas: str, service: str | None, name: str, why: str
) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        credentials(jaas, sasl_kerberos_service_name=service)
    assert caught.value.name == name
    assert acquired == []


def test_the_service_may_be_an_option_of_the_module(acquired: Acquired) -> None:
    credentials("serviceName=kafka", sasl_kerberos_service_name=None)
    assert len(acquired) == 1


def test_a_kdc_that_is_away_does_not_keep_a_client_from_being_made(
    acquired: Acquired, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object) -> None:
        raise ConnectionError("cannot contact any KDC")

    monkeypatch.setattr(kerberos, "Credentials", away)
    made = credentials("useTicketCache=true")
    with pytest.raises(ConnectionError, match="any KDC"):
        made.new_mechanism("broker.example")
    assert acquired == []


def test_there_is_no_password_to_replace(acquired: Acquired) -> None:
    with pytest.raises(IllegalStateError, match="key table"):
        credentials(None).update("bob", "secret")
    assert len(acquired) == 1
