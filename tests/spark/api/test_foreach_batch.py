"""The writer for foreachBatch: options, and the number of each micro-batch where that counts."""

from __future__ import annotations

from typing import Any, Self

import pytest

from kclient.errors import ConfigError
from kclient.spark import batch_writer

ONCE = {"kclient.delivery": "Exactly_Once", "topic": "t"}


class NotedFrame:
    """Stands for a DataFrame and its writer, which need Java."""

    def __init__(self) -> None:
        self.given: dict[str, str] = {}

    @property
    def write(self) -> Self:
        return self

    def format(self, name: str) -> Self:
        assert name == "kclient"
        return self

    def mode(self, mode: str) -> Self:
        assert mode == "append"
        return self

    def options(self, **options: str) -> Self:
        self.given = options
        return self

    def save(self) -> None:
        pass


def options_of(writer: Any, batch_id: int) -> dict[str, str]:
    frame = NotedFrame()
    writer(frame, batch_id)
    return frame.given


def test_a_micro_batch_is_written_with_the_options_given() -> None:
    assert options_of(batch_writer(topic="t"), 7) == {"topic": "t"}


def test_exactly_once_numbers_the_writes_of_the_name() -> None:
    given = {**ONCE, "kclient.write.id": "counts"}
    assert options_of(batch_writer(**given), 7) == {**given, "kclient.write.epoch": "7"}


def test_exactly_once_without_a_name_is_refused() -> None:
    for more in ({}, {"kclient.write.id": " "}):
        with pytest.raises(ConfigError, match=r"needs kclient\.write\.id") as caught:
            batch_writer(**ONCE, **more)
        assert caught.value.name == "kclient.write.id"
