"""ISO-8601 durations."""

from __future__ import annotations

import pytest

from kclient.config.durations import parse_duration_ms


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("P7D", 7 * 86_400_000),
        ("PT1H30M", 5_400_000),
        ("P1DT2H3M4.5S", 93_784_500),
        ("pt0.0019s", 1),
        ("PT0S", 0),
        ("PT15,25S", 15_250),
        ("PT-1M+2H", None),
        ("PT2H-1M", 7_140_000),
        ("P+1D", 86_400_000),
        (" P1D ", 86_400_000),
    ],
)
def test_durations_are_read_as_java_reads_them(text: str, expected: int | None) -> None:
    if expected is None:
        with pytest.raises(ValueError):
            parse_duration_ms(text)
    else:
        assert parse_duration_ms(text) == expected


@pytest.mark.parametrize(
    "text", ["", "P", "PT", "P1DT", "7D", "P1Y", "P1W", "P1.5D", "PT1H1H", "P-1D", "PT-0.5S", "P\u0661D"]
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_duration_ms(text)
