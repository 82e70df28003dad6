"""JAAS notation, as it is copied out of Java's configurations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.config.values import Password
from kclient.errors import ConfigError
from kclient.security.jaas import LoginModule, jaas_text, parse_jaas

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.mark.parametrize(
    "text",
    [
        f'{PLAIN} required username="alice" password="a secret";',
        f"{PLAIN} required username='alice' password='a secret' ;",
        f'  {PLAIN}\n  REQUIRED\n  username = "alice"\n  password="a secret"\n;\n',
        f'{PLAIN} /* from the wiki */ required // a remark\n username="alice" password="a secret";',
        f'{PLAIN} required username=alice password="a\\040secret";',
    ],
)
def test_a_module_and_its_options_are_read(text: str) -> None:
    module = parse_jaas(Password(text))
    assert module.name == "PlainLoginModule"
    assert dict(module.options) == {"username": "alice", "password": "a secret"}


def test_marks_in_quotation_marks_and_escapes_are_characters() -> None:
    module = parse_jaas(Password(r'M required password="a;b=\"c\"\\d\n" other="";'))
    assert dict(module.options) == {"password": 'a;b="c"\\d\n', "other": ""}


def test_a_module_may_have_no_options() -> None:
    assert dict(parse_jaas(Password("M optional;")).options) == {}


@given(st.dictionaries(st.text(), st.text()))
def test_a_module_that_is_written_is_read_as_the_same(options: dict[str, str]) -> None:
    module = LoginModule("PlainLoginModule", options)
    assert parse_jaas(Password(jaas_text(module))) == module


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "it is a login module, a flag"),
        ('M username="hunter2";', "the second word is one of"),
        ('M required username="hunter2"', "after the option username"),
        ('M required username="hunter2" password;', "after the option username"),
        ('M required ="hunter2";', "after the flag"),
        ('M required username="hunter2;', "quotation mark is not closed"),
        ('M required username="hunter2"; N required;', "more behind the semicolon"),
    ],
)
def test_what_is_wrong_is_said_without_what_may_be_secret(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        parse_jaas(Password(text))
    assert caught.value.name == "sasl.jaas.config"
    assert "hunter2" not in str(caught.value)


def test_an_option_that_is_missing_is_named() -> None:
    module = parse_jaas(Password('M required username="hunter2";'))
    assert "hunter2" not in repr(module)
    with pytest.raises(ConfigError, match=r"M needs the option password="):
        module.option("password")


@given(st.text(alphabet="M =;\"'\\a1/*\n", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        parse_jaas(Password(text))
    except ConfigError:
        pass
