"""The work of both comparisons around their measuring."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Self

import attrs
import pytest

from benchmarks import command


class Kafka:
    bootstrap_servers = "nowhere:1"

    def __init__(self, **_: object) -> None: ...
    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...


@attrs.define
class Comparison:
    servers: str
    tell: Callable[[str], None]
    failed: list[str] = attrs.Factory(list)


@pytest.fixture(autouse=True)
def no_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command.real_kafka(), "RealKafka", Kafka)


def test_what_was_measured_is_shown_and_the_code_is_0(capsys: pytest.CaptureFixture[str]) -> None:
    shown: list[Comparison] = []
    assert command.run(Comparison, lambda made: made.tell("measuring"), shown.append) == 0
    assert [made.servers for made in shown] == ["nowhere:1"]
    assert capsys.readouterr().err.endswith(" s  measuring\n")


def test_a_failure_is_named_and_the_code_is_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.run(Comparison, lambda made: made.failed.append("produce broke"), lambda _: None) == 1
    assert capsys.readouterr().err == "FAILED: produce broke\n"


def test_what_was_measured_before_a_ctrl_c_is_shown_and_called_interrupted() -> None:
    def measure(_: Comparison) -> None:
        raise KeyboardInterrupt

    shown: list[Comparison] = []
    assert command.run(Comparison, measure, shown.append) == 130
    assert shown[0].failed == ["interrupted; this is what was measured before"]


@pytest.mark.parametrize("text", ["0", "-1"])
def test_a_count_is_positive(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=f"{text} is not a positive number"):
        command.positive(text)
