"""DescribeLogDirs: sizes of partitions, disks, and directories that failed."""

from __future__ import annotations

import errno
import shutil
from typing import Any, NoReturn

import pytest

from harness.broker.handlers import Handlers
from harness.broker.logs import append_alone
from harness.broker.wire import batch
from kclient.broker.apis.describe_log_dirs import describe_log_dirs
from kclient.protocol.messages.describe_log_dirs import DescribableLogDirTopic, DescribeLogDirsRequest

STORAGE_ERROR = 56


def describe(handlers: Handlers, wanted: dict[str, list[int]] | None) -> Any:
    topics = None
    if wanted is not None:
        topics = [DescribableLogDirTopic(topic=name, partitions=numbers) for name, numbers in wanted.items()]
    (result,) = handlers.ask(describe_log_dirs, DescribeLogDirsRequest(topics=topics), 4).results
    return result


def told(result: Any) -> list[tuple[str, list[int]]]:
    return [(topic.name, [part.partition_index for part in topic.partitions]) for topic in result.topics]


@pytest.fixture
def filled(handlers: Handlers) -> Handlers:
    for name in ("b", "a"):
        handlers.topics.create(name, 11 if name == "a" else 2)
    return handlers


def test_all_partitions_are_told_in_order_if_no_topics_are_named(filled: Handlers) -> None:
    assert told(describe(filled, None)) == [("a", list(range(11))), ("b", [0, 1])]


def test_only_partitions_that_are_named_and_there_are_told(filled: Handlers) -> None:
    assert told(describe(filled, {"b": [1, 7, 1], "a": [10, -1], "none": [0]})) == [("a", [10]), ("b", [1])]


def test_an_empty_list_of_topics_asks_for_the_disk_alone(filled: Handlers) -> None:
    result = describe(filled, {})
    assert (result.error_code, result.topics) == (0, [])
    assert result.total_bytes >= result.usable_bytes > 0


def test_the_size_of_a_partition_is_that_of_its_records(filled: Handlers) -> None:
    first, second = batch(b"x" * 1000), batch(b"y")
    for records in (first, second):
        append_alone(filled.led("b", 1).log, records)
    (topic,) = describe(filled, {"b": [0, 1]}).topics
    assert [part.partition_size for part in topic.partitions] == [0, len(first) + len(second)]


def test_the_directory_is_named_by_its_full_path(filled: Handlers) -> None:
    assert describe(filled, {}).log_dir == str(filled.topics.root.resolve())


def test_a_directory_that_failed_is_told_with_an_error_and_without_its_partitions(filled: Handlers) -> None:
    (log_dir,) = filled.topics.logs.log_dirs
    log_dir.fail("a test", OSError(errno.EIO, "broken"))
    result = describe(filled, None)
    assert (result.error_code, result.topics, result.usable_bytes) == (STORAGE_ERROR, [], -1)
    assert result.log_dir == str(filled.topics.root.resolve())


def test_a_disk_whose_size_cannot_be_told_is_no_error(
    filled: Handlers, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(_: object) -> NoReturn:
        raise OSError(errno.EACCES, "not for you")

    monkeypatch.setattr(shutil, "disk_usage", unknown)
    result = describe(filled, {"b": [0]})
    assert (result.error_code, result.total_bytes, result.usable_bytes) == (0, -1, -1)
    assert told(result) == [("b", [0])]
