"""Names of certificates as Kafka writes them, and the rules that make users of them."""

from __future__ import annotations

import pytest

from kclient.broker.security.principal import KafkaPrincipal, PrincipalMapping, distinguished_name
from kclient.errors import ConfigError


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        ([[("countryName", "DE")], [("organizationName", "A")], [("commonName", "c")]], "CN=c,O=A,C=DE"),
        ([[("organizationName", "A, Inc.")], [("commonName", 'a"b+c')]], 'CN=a\\"b\\+c,O=A\\, Inc.'),
        ([[("commonName", "#1 ")]], "CN=\\#1\\ "),
        ([[("commonName", "a"), ("userId", "7")]], "CN=a+UID=7"),
        ([], ""),
    ],
)
def test_the_last_part_of_a_subject_comes_first_and_marks_are_escaped(
    subject: list[list[tuple[str, str]]], name: str
) -> None:
    assert distinguished_name(subject) == name


@pytest.mark.parametrize(
    ("rules", "name"),
    [
        ("DEFAULT", "CN=Alice,OU=ops,O=Acme"),
        ("", "CN=Alice,OU=ops,O=Acme"),
        ("RULE:^CN=(.*?),OU=ops.*$/$1@ops/", "Alice@ops"),
        ("RULE:CN=(.*?),.*/$1/L", "alice"),
        ("RULE:CN=(.*?),.*/$1/U, DEFAULT", "ALICE"),
        ("RULE:CN=(bob),.*/$1/,RULE:.*OU=(.*?),O=(.*)/$2-$1/,DEFAULT", "Acme-ops"),
        ("RULE:CN=(bob),.*/$1/", "CN=Alice,OU=ops,O=Acme"),
    ],
)
def test_the_first_rule_that_fits_makes_the_user(rules: str, name: str) -> None:
    assert PrincipalMapping.parse(rules).user("CN=Alice,OU=ops,O=Acme") == KafkaPrincipal("User", name)


@pytest.mark.parametrize(
    "rules", ["RULE:a/b", "default", "RULE:(/x/", "RULE:a/$1/", "DEFAULT DEFAULT", "RULE:a/b/X"]
)
def test_rules_that_are_none_are_refused_with_the_name_of_the_setting(rules: str) -> None:
    with pytest.raises(ConfigError) as caught:
        PrincipalMapping.parse(rules)
    assert caught.value.name == "ssl.principal.mapping.rules"
