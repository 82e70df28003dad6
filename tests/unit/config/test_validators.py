"""Validators of single values."""

from __future__ import annotations

import logging

import pytest

from kclient.config.validators import (
    Levels,
    NoDuplicates,
    NonEmpty,
    OffsetReset,
    ResourceName,
    Validator,
    at_least,
    between,
    one_of,
)


@pytest.mark.parametrize(
    ("validator", "value"),
    [
        (at_least(0), 0),
        (between(0.5, 1.0), 0.5),
        (between(0.5, 1.0), 1.0),
        (one_of("a", "b"), "b"),
        (NonEmpty(), "x"),
        (ResourceName(), "a.B_9-"),
        (ResourceName(), "x" * 249),
        (Levels(1, 9, -1), -1),
        (Levels(1, 9, -1), 9),
        (OffsetReset(), "none"),
        (OffsetReset(), "by_duration:PT1H"),
        (NoDuplicates(), ["a", "b"]),
    ],
)
def test_a_good_value_stays_as_it_is(validator: Validator, value: object) -> None:
    assert validator(value) == value


@pytest.mark.parametrize(
    ("validator", "value"),
    [
        (at_least(0), -1),
        (between(0.5, 1.0), 1.01),
        (between(0.5, 1.0), 0.49),
        (one_of("a", "b"), "B"),
        (NonEmpty(), ""),
        (ResourceName(), ""),
        (ResourceName(), "."),
        (ResourceName(), ".."),
        (ResourceName(), "x" * 250),
        (ResourceName(), "a/b"),
        (ResourceName(), "é"),
        (Levels(1, 9, -1), 0),
        (Levels(1, 9, -1), 10),
        (OffsetReset(), "Latest"),
        (OffsetReset(), "earliest:PT1H"),
        (OffsetReset(), "by_duration"),
        (OffsetReset(), "by_duration:"),
        (OffsetReset(), "by_duration:1h"),
        (OffsetReset(), "by_duration:-P1D"),
    ],
)
def test_a_bad_value_is_refused(validator: Validator, value: object) -> None:
    with pytest.raises(ValueError):
        validator(value)


def test_a_word_in_any_case_becomes_the_declared_one() -> None:
    assert one_of("PLAINTEXT", "SSL", ignore_case=True)("Ssl") == "SSL"


def test_repeats_in_a_list_are_left_out_with_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="kclient"):
        assert NoDuplicates()(["b", "a", "b"]) == ["b", "a"]
    assert "'b' more than once" in caplog.text
