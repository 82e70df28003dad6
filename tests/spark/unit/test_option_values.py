"""Values of options: numbers, truth values, times and choices, as they are written and as they are not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kclient.errors import ConfigError
from kclient.spark.option_values import (
    one_of,
    optional_positive,
    parse_boolean,
    parse_duration,
    parse_whole_number,
)


def number(text: str, at_least: int = 0) -> int:
    return parse_whole_number({"somename": text}, "someName", 5, at_least=at_least)


@pytest.mark.parametrize(
    "read",
    [
        lambda given: parse_whole_number(given, "someName", 5, at_least=9),
        lambda given: parse_duration(given, "someName", 5),
        lambda given: 5 if parse_boolean(given, "someName", True) else 0,
        lambda given: 5 if one_of(given, "someName", ("first", "second")) == "first" else 0,
        lambda given: 5 if optional_positive(given, "someName") is None else 0,
    ],
)
def test_what_is_not_given_has_its_default_unchecked(read: Callable[[dict[str, str]], int]) -> None:
    # Spark gives names in lower case.
    assert read({}) == read({"othername": "x"}) == read({"someName": "x"}) == 5


@pytest.mark.parametrize(
    ("text", "value"),
    [("0", 0), ("-0", 0), ("+7", 7), (" 7\n", 7), ("007", 7), (str(2**63 - 1), 2**63 - 1)],
)
def test_a_whole_number_has_digits_and_perhaps_a_sign(text: str, value: int) -> None:
    assert number(text) == value


@pytest.mark.parametrize(
    "text", ["", " ", "-1", "1.0", "1e3", "1_000", "0x1", "+-1", "٣", "²", str(2**63), "9" * 5000]
)
def test_what_is_no_number_of_64_bits_is_refused(text: str) -> None:
    with pytest.raises(
        ConfigError, match=r"^someName: '.*' is not a whole number of at least 0\.$"
    ) as caught:
        number(text)
    assert caught.value.name == "someName"


def test_the_least_number_is_allowed_and_may_be_negative() -> None:
    assert number("-2", -2) == -2
    assert optional_positive({"somename": "1"}, "someName") == 1
    for text, at_least in (("-3", -2), ("1", 2)):
        with pytest.raises(ConfigError, match=f"at least {at_least}"):
            number(text, at_least)
    with pytest.raises(ConfigError, match="at least 1"):
        optional_positive({"somename": "0"}, "someName")


@pytest.mark.parametrize(("text", "value"), [("true", True), (" FALSE ", False), ("True", True)])
def test_a_truth_value_is_read_in_any_case(text: str, value: bool) -> None:
    assert parse_boolean({"somename": text}, "someName", not value) is value


@pytest.mark.parametrize("text", ["", "1", "yes", "tru"])
def test_another_word_is_no_truth_value(text: str) -> None:
    with pytest.raises(ConfigError, match=f"someName: '{text}' is neither true nor false"):
        parse_boolean({"somename": text}, "someName", False)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("0", 0),
        ("250", 250),
        ("250ms", 250),
        ("30 s", 30_000),
        (" 15M ", 900_000),
        ("15min", 900_000),
        ("2H", 7_200_000),
        ("1d", 86_400_000),
    ],
)
def test_a_time_has_a_unit_or_is_in_ms(text: str, ms: int) -> None:
    assert parse_duration({"somename": text}, "someName", 1) == ms


@pytest.mark.parametrize("text", ["", "s", "-1s", "1.5s", "5 parsecs", "1h30m", "1us", "٣s", "1" * 16])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not a time such as") as caught:
        parse_duration({"somename": text}, "someName", 1)
    assert caught.value.name == "someName"


def test_a_choice_is_given_back_as_it_is_written_in_the_list() -> None:
    choices = ("processing", "availableNow")
    assert one_of({"somename": " AVAILABLENOW "}, "someName", choices) == "availableNow"
    for text in ("", "available", "once"):
        wrong: Any = {"somename": text}
        with pytest.raises(ConfigError, match=f"'{text}' is none of processing, availableNow"):
            one_of(wrong, "someName", choices)
