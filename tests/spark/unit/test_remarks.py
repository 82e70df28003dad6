"""Remarks on options: each once for the same options, however often Spark plans the query."""

from __future__ import annotations

import pytest

from kclient.spark import remarks
from kclient.spark.remarks import warn_once


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remarks, "_said", set())


def test_a_remark_is_said_once_for_the_same_options(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(3):
        warn_once(["one", "two"], {"checkpointlocation": "a"})
    assert [(each.levelname, each.message) for each in caplog.records] == [
        ("WARNING", "one"),
        ("WARNING", "two"),
    ]


def test_another_query_is_told_of_for_itself(caplog: pytest.LogCaptureFixture) -> None:
    for place in ("a", "b"):
        warn_once(["one"], {"checkpointlocation": place})
    assert len(caplog.records) == 2


def test_writes_that_differ_in_their_number_alone_are_one(caplog: pytest.LogCaptureFixture) -> None:
    for number in range(3):
        warn_once(["one"], {"kclient.write.epoch": str(number), "topic": "t"})
    assert len(caplog.records) == 1


def test_what_was_said_is_forgotten_before_it_is_too_much(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remarks, "_MOST", 2)
    for topic in ("a", "b", "c", "a"):
        warn_once(["one"], {"topic": topic})
    assert len(caplog.records) == 4
    assert len(remarks._said) == 2
