"""Records and kinds of timestamps."""

from __future__ import annotations

import pytest

import kclient.record
from kclient.record import TimestampType, increment_sequence


def test_timestamp_types_have_kafkas_names() -> None:
    for kind in TimestampType:
        assert TimestampType.for_name(kind.label) is kind
    with pytest.raises(ValueError, match="CreateTime"):
        TimestampType.for_name("createTime")


def test_sequences_wrap_to_zero() -> None:
    assert increment_sequence(0, 5) == 5
    assert increment_sequence(2**31 - 1, 1) == 0
    assert increment_sequence(2**31 - 1, 10) == 9


def test_the_exported_names_are_there() -> None:
    assert all(hasattr(kclient.record, name) for name in kclient.record.__all__)
