"""Folders of micro-batches: when one is written, and where. That Spark then replaces it is seen in test_parsing."""

from __future__ import annotations

from typing import Any, Self

import pytest

from kclient.spark.pipelines.sinks import BatchFolders


class NotedFrame:
    """Stands for a DataFrame and its writer, which need Java: `written` is what was chosen, path last."""

    def __init__(self, rows: int = 1, error: Exception | None = None) -> None:
        self._rows = rows
        self._error = error
        self.written: list[Any] = []

    def isEmpty(self) -> bool:
        return self._rows == 0

    @property
    def write(self) -> Self:
        return self

    def mode(self, mode: str) -> Self:
        self.written.append(mode)
        return self

    def partitionBy(self, *columns: str) -> Self:
        self.written.append(columns)
        return self

    def parquet(self, path: str) -> None:
        if self._error is not None:
            raise self._error
        self.written.append(path)


def write(folders: BatchFolders, frame: NotedFrame, batch_id: int) -> list[Any]:
    folders.write(frame, batch_id)  # type: ignore[arg-type]
    return frame.written


@pytest.mark.parametrize("path", ["s3://b/out", "s3://b/out/"])
def test_a_micro_batch_replaces_the_folder_of_its_number(path: str) -> None:
    assert write(BatchFolders(path), NotedFrame(), 7) == ["overwrite", (), "s3://b/out/batch=7"]


def test_within_its_folder_rows_lie_by_the_columns_asked_for() -> None:
    folders = BatchFolders("/out", ("date", "hour"))
    assert write(folders, NotedFrame(), 0) == ["overwrite", ("date", "hour"), "/out/batch=0"]


def test_only_the_first_of_a_run_writes_a_folder_without_rows() -> None:
    folders = BatchFolders("/out")
    assert write(folders, NotedFrame(0), 7)[-1] == "/out/batch=7"
    assert write(folders, NotedFrame(0), 8) == []
    assert write(folders, NotedFrame(1), 9)[-1] == "/out/batch=9"
    assert write(folders, NotedFrame(0), 10) == []


def test_a_first_one_that_failed_is_still_the_first() -> None:
    # What it has left of its files must not stay when it is tried again and has no rows.
    folders = BatchFolders("/out")
    with pytest.raises(OSError, match="full"):
        write(folders, NotedFrame(5, OSError("full")), 7)
    assert write(folders, NotedFrame(0), 7)[-1] == "/out/batch=7"
