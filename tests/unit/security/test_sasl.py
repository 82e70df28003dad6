"""Credentials out of the settings, and PLAIN."""

from __future__ import annotations

import pytest

from kclient.config.sasl_configs import SaslConfig
from kclient.config.values import Password
from kclient.errors import ConfigError
from kclient.security.sasl import SaslCredentials

PLAIN = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="hunter2";'
)
SCRAM = PLAIN.replace("plain.PlainLogin", "scram.ScramLogin")


def credentials(mechanism: str, jaas: str | None) -> SaslCredentials:
    config = SaslConfig(sasl_mechanism=mechanism, sasl_jaas_config=None if jaas is None else Password(jaas))
    return SaslCredentials.from_config(config)


def test_plain_is_one_token() -> None:
    exchange = credentials("plain", PLAIN).new_mechanism()
    assert exchange.first() == b"\0alice\0hunter2"
    assert not exchange.complete
    assert exchange.next(b"") is None
    assert exchange.complete


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram_begins_with_the_name(mechanism: str) -> None:
    assert credentials(mechanism, SCRAM).new_mechanism().first().startswith(b"n,,n=alice,r=")


def test_a_delegation_token_is_scram_with_a_word_more() -> None:
    token = SCRAM.replace(";", ' tokenauth="true";')
    assert credentials("SCRAM-SHA-256", token).new_mechanism().first().endswith(b",tokenauth=true")


@pytest.mark.parametrize(
    ("mechanism", "jaas", "name", "why"),
    [
        ("GSSAPI", PLAIN, "sasl.mechanism", "GSSAPI is not implemented yet; set it to one of PLAIN"),
        ("PLAIN", None, "sasl.jaas.config", 'PlainLoginModule required username="..." password="...";'),
        ("SCRAM-SHA-256", None, "sasl.jaas.config", "scram.ScramLoginModule required"),
        ("SCRAM-SHA-256", PLAIN, "sasl.jaas.config", "which needs ScramLoginModule"),
        (
            "PLAIN",
            "com.sun.security.auth.module.JndiLoginModule required;",
            "sasl.jaas.config",
            "does not fit",
        ),
        (
            "PLAIN",
            'PlainLoginModule required username="alice";',
            "sasl.jaas.config",
            "needs the option password",
        ),
        ("PLAIN", PLAIN.replace("hunter2", r"\0"), "sasl.jaas.config", "NUL"),
    ],
)
def test_what_is_wrong_is_told_with_the_setting_and_no_secret(
    mechanism: str, jaas: str | None, name: str, why: str
) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        credentials(mechanism, jaas)
    assert caught.value.name == name
    assert "hunter2" not in str(caught.value)


def test_no_repr_has_a_secret() -> None:
    made = credentials("PLAIN", PLAIN)
    for each in (made, made.new_mechanism(), credentials("SCRAM-SHA-256", SCRAM).new_mechanism()):
        assert "hunter2" not in repr(each)
