"""Settings of one listener: its own before those of all, and what is refused."""

from __future__ import annotations

import pytest

from kclient.broker.config import BrokerConfig
from kclient.config.values import Password
from kclient.errors import ConfigError

BASE = {"log.dirs": "/nowhere", "listeners": "SSL://a:1,SASL_SSL://a:2"}


def test_a_listeners_own_settings_come_before_those_of_all() -> None:
    config = BrokerConfig.parse(
        {
            **BASE,
            "ssl.client.auth": "required",
            "ssl.keystore.location": "/all.pem",
            "listener.name.sasl_ssl.ssl.client.auth": "none",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": "secret words",
        }
    )
    first, second = config.listeners_with_security()
    assert (first.uses_sasl, second.uses_sasl, second.uses_tls) == (False, True, True)
    assert [config.listener_config(each).ssl_client_auth for each in (first, second)] == ["required", "none"]
    assert [config.listener_config(each).ssl_keystore_location for each in (first, second)] == [
        "/all.pem"
    ] * 2
    assert config.jaas(first) == {}
    assert config.jaas(second) == {"plain": Password("secret words")}
    assert "secret words" not in repr(config)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("listener.name.ssl.num.io.threads", "3", "cannot be set for a listener alone"),
        ("listener.name.ssl.ssl.client.auth", "maybe", "ssl.client.auth"),
        ("listener.name.other.ssl.client.auth", "none", "no such listener"),
        ("listener.security.protocol.map", "A:B:C", "NAME:PROTOCOL"),
    ],
)
def test_what_no_listener_can_have_is_refused(name: str, value: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        BrokerConfig.parse({**BASE, name: value})


def test_what_is_given_in_two_places_for_one_listener_holds_together_and_nothing_twice() -> None:
    name = "listener.name.sasl_ssl.ssl.client.auth"
    jaas = "listener.name.sasl_ssl.plain.sasl.jaas.config"
    config = BrokerConfig.parse({**BASE, name: "required"}, {jaas: "words"})
    _, second = config.listeners_with_security()
    assert (config.listener_config(second).ssl_client_auth, set(config.jaas(second))) == (
        "required",
        {"plain"},
    )
    with pytest.raises(ConfigError, match="given twice"):
        BrokerConfig.parse({**BASE, name: "required"}, {name: "none"})


def test_what_is_no_configuration_is_refused_as_by_clients() -> None:
    with pytest.raises(ConfigError, match="must be a mapping or the path"):
        BrokerConfig.parse(5)  # type: ignore[arg-type]
