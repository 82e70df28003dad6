"""ConfigKey and ConfigDef by themselves: values, defaults of their own, and names that are nearly right."""

from __future__ import annotations

from typing import Any

import pytest

from kclient.config.config_def import JVM, LATER, LOW, REQUIRED, ConfigDef, ConfigKey
from kclient.config.validators import at_least
from kclient.config.values import Type
from kclient.errors import ConfigError


def key(name: str = "a.b", kind: Type = Type.INT, default: Any = 5, **fields: Any) -> ConfigKey:
    return ConfigKey(name, kind, default, LOW, "Doc.", **fields)


def test_a_value_gets_its_type_and_is_held_against_the_validator() -> None:
    assert key(validator=at_least(0)).parse("7") == 7
    with pytest.raises(ConfigError, match=r"^a\.b: '-1' is not valid: ") as raised:
        key(validator=at_least(0)).parse("-1")
    assert raised.value.name == "a.b"


def test_a_secret_that_is_not_valid_is_not_shown() -> None:
    def refuse(value: object) -> object:
        raise ValueError("it is bad")

    with pytest.raises(ConfigError, match="the value given is not valid: it is bad") as raised:
        key(kind=Type.PASSWORD, default=None, validator=refuse).parse("hunter2")
    assert "hunter2" not in str(raised.value)


def test_none_is_a_value_only_where_it_is_the_default() -> None:
    assert key(default=None).parse(None) is None
    for default in (5, REQUIRED):
        with pytest.raises(ConfigError, match=r"a\.b must not be None"):
            key(default=default).parse(None)
    assert key(kind=Type.CLASS, default=REQUIRED).parse(None) is None


def test_a_default_list_is_not_shared() -> None:
    made = key(kind=Type.LIST, default=["x"])
    made.default_value().append("y")
    assert made.default_value() == ["x"]


def test_what_has_no_default_says_what_is_missing() -> None:
    with pytest.raises(ConfigError, match=r"^a\.b is not set\.$"):
        key(default=REQUIRED).default_value()
    with pytest.raises(ConfigError, match=r"^name it$"):
        key(default=REQUIRED, missing="name it").default_value()
    assert repr(REQUIRED) == "REQUIRED"


def test_what_comes_later_takes_its_default_and_off_and_says_so_of_others() -> None:
    later = key(kind=Type.STRING, default="on", support=LATER, off=("off",))
    assert [later.parse("on"), later.parse("off")] == ["on", "off"]
    with pytest.raises(
        ConfigError, match=r"^a\.b=other is not implemented yet; leave it out or set it to off\.$"
    ):
        later.parse("other")
    with pytest.raises(ConfigError, match=r"^a\.b is not implemented yet; leave it out\.$"):
        key(support=LATER).parse(6)


def test_the_default_of_a_jvm_only_setting_is_not_warned_of(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kclient.config.config_def._warned", set())
    key(support=JVM).parse(5)
    assert caplog.messages == []
    key(support=JVM).parse(6)
    key(support=JVM).parse(7)
    assert len(caplog.messages) == 1


def test_given_values_and_defaults_make_one_picture() -> None:
    made = ConfigDef("tester", [key("a.b"), key("c", default=[1], kind=Type.LIST)])
    assert made.parse({"a.b": "1"}) == {"a.b": 1, "c": [1]}
    assert ("a.b" in made, "a_b" in made, made["c"].name) == (True, False, "c")
    assert [each.name for each in made] == ["a.b", "c"]


@pytest.mark.parametrize("name", ["long.name.ms", "long_name_ms", " long.name.ms ", "long_name_ms\n"])
def test_a_name_may_have_dots_or_underscores_but_not_both(name: str) -> None:
    made = ConfigDef("tester", [key("long.name.ms")])
    assert made.dotted(name) == "long.name.ms"
    with pytest.raises(ConfigError, match=r"not a setting of the tester\. Did you mean 'long\.name\.ms'"):
        made.dotted("long.name_ms")


def test_upper_case_is_another_name_with_a_hint() -> None:
    with pytest.raises(ConfigError, match=r"Did you mean 'long\.name\.ms'\?"):
        ConfigDef("tester", [key("long.name.ms")]).dotted("LONG_NAME_MS")


@pytest.mark.parametrize("name", [None, 5, b"long.name.ms", ("a",)])
def test_what_is_no_text_is_no_name(name: object) -> None:
    with pytest.raises(ConfigError, match="must be a string, not"):
        ConfigDef("tester", []).dotted(name)
