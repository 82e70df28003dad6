"""Credentials out of the settings."""

from __future__ import annotations

import pytest

from kclient.config.sasl_configs import SaslConfig
from kclient.config.values import Password
from kclient.errors import ConfigError, IllegalStateError
from kclient.security.oauth_bearer import OAuthBearerToken
from kclient.security.sasl import SaslCredentials
from kclient.security.sasl_credentials import TokenCredentials, sasl_credentials
from kclient.utils.log_context import LogContext

PLAIN = (
    'org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="hunter2";'
)
SCRAM = PLAIN.replace("plain.PlainLogin", "scram.ScramLogin")


def credentials(mechanism: str, jaas: str | None) -> SaslCredentials:
    config = SaslConfig(sasl_mechanism=mechanism, sasl_jaas_config=None if jaas is None else Password(jaas))
    return sasl_credentials(config, LogContext())


def test_the_name_of_a_mechanism_may_be_in_any_case() -> None:
    made = credentials("plain", PLAIN)
    assert made.mechanism == "PLAIN"
    assert made.new_mechanism("broker").first() == b"\0alice\0hunter2"


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_scram_begins_with_the_name(mechanism: str) -> None:
    assert credentials(mechanism, SCRAM).new_mechanism("broker").first().startswith(b"n,,n=alice,r=")


def test_a_delegation_token_is_scram_with_a_word_more() -> None:
    token = SCRAM.replace(";", ' tokenauth="true";')
    assert credentials("SCRAM-SHA-256", token).new_mechanism("broker").first().endswith(b",tokenauth=true")


@pytest.mark.parametrize(
    ("mechanism", "jaas", "name", "why"),
    [
        (
            "DIGEST-MD5",
            PLAIN,
            "sasl.mechanism",
            "DIGEST-MD5 is none of those there are: PLAIN, SCRAM-SHA-256",
        ),
        ("GSSAPI", PLAIN, "sasl.jaas.config", "which needs Krb5LoginModule"),
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


def test_another_password_is_for_the_next_exchange() -> None:
    made = credentials("PLAIN", PLAIN)
    begun = made.new_mechanism("broker")
    made.update("bob", "hunter3")
    assert begun.first() == b"\0alice\0hunter2"
    assert made.new_mechanism("broker").first() == b"\0bob\0hunter3"


def test_a_password_that_cannot_be_sent_leaves_the_old_one() -> None:
    made = credentials("PLAIN", PLAIN)
    with pytest.raises(ConfigError, match="NUL"):
        made.update("bob", "hunter\0")
    assert made.new_mechanism("broker").first() == b"\0alice\0hunter2"


def test_a_delegation_token_stays_one_when_it_is_replaced() -> None:
    made = credentials("SCRAM-SHA-256", SCRAM.replace(";", ' tokenauth="true";'))
    made.update("bob", "hunter3")
    assert made.new_mechanism("broker").first().startswith(b"n,,n=bob,")
    assert made.new_mechanism("broker").first().endswith(b",tokenauth=true")


def test_a_token_of_oauthbearer_is_sent_as_it_is_when_an_exchange_begins() -> None:
    tokens = [OAuthBearerToken(name, expires_ms=4_000_000_000_000) for name in ("t1", "t2")]
    config = SaslConfig(sasl_mechanism="OAUTHBEARER", sasl_login_callback_handler_class=lambda: tokens.pop(0))
    made = sasl_credentials(config, LogContext())
    assert isinstance(made, TokenCredentials)
    try:
        assert b"Bearer t1" in made.new_mechanism("broker").first()
        assert len(tokens) == 1
        made._login._refresh()
        assert b"Bearer t2" in made.new_mechanism("broker").first()
        with pytest.raises(IllegalStateError, match="has no password"):
            made.update("bob", "hunter3")
    finally:
        made.close()


def test_no_repr_has_a_secret() -> None:
    made = credentials("PLAIN", PLAIN)
    for each in (
        made,
        made.new_mechanism("broker"),
        credentials("SCRAM-SHA-256", SCRAM).new_mechanism("broker"),
    ):
        assert "hunter2" not in repr(each)
