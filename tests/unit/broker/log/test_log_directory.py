"""One directory of logs: its lock, its owner, the partitions in it, and what takes it offline."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from kclient.broker.log.checkpoints import META_PROPERTIES, MetaProperties, write_topic_id
from kclient.broker.log.log_directory import LogDirectory
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.errors import IllegalStateError, InconsistentClusterIdError, KafkaStorageError

Make = Callable[[Path], LogDirectory]


@pytest.fixture
def make() -> Iterator[Make]:
    with ExitStack() as stack:

        def made(path: Path) -> LogDirectory:
            log_dir = LogDirectory(path)
            stack.callback(log_dir.release)
            return log_dir

        yield made


@pytest.fixture
def log_dir(make: Make, tmp_path: Path) -> LogDirectory:
    made = make(tmp_path / "logs")
    made.acquire()
    return made


def test_the_first_error_takes_a_directory_offline_and_is_told_once(log_dir: LogDirectory) -> None:
    told: list[BaseException | None] = []
    log_dir.on_offline = lambda: told.append(log_dir.offline_error)
    log_dir.check_online()
    first = OSError(errno.EIO, "broken")
    assert "writing" in str(log_dir.fail("writing", first))
    assert "reading" in str(log_dir.fail("reading", OSError(errno.ENOSPC, "full")))
    assert (told, log_dir.offline_error) == ([first], first)
    with pytest.raises(KafkaStorageError, match="broken"):
        log_dir.check_online()


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE])
def test_want_of_descriptors_is_no_fault_of_the_disk_but_opening_needs_them(
    log_dir: LogDirectory, code: int
) -> None:
    error = OSError(code, "no descriptor")
    assert isinstance(log_dir.fail("reading", error), KafkaStorageError)
    with pytest.raises(KafkaStorageError, match="opening it"):
        log_dir.fail_to_open("opening it", error)
    log_dir.check_online()
    log_dir.fail_to_open("opening it", OSError(errno.EACCES, "denied"))
    assert log_dir.offline_error is not None


def test_a_lock_is_for_one_whatever_the_name_by_which_he_comes(
    log_dir: LogDirectory, make: Make, tmp_path: Path
) -> None:
    log_dir.acquire()  # again, by its owner
    (tmp_path / "link").symlink_to(log_dir.path)
    other = make(tmp_path / "link")
    with pytest.raises(IllegalStateError, match="in use by another broker"):
        other.acquire()
    other.release()
    assert (log_dir.path / ".lock").exists(), "it was not his to remove"
    log_dir.release()
    log_dir.release()
    assert not (log_dir.path / ".lock").exists()
    other.acquire()


def test_the_directory_of_another_node_is_refused(log_dir: LogDirectory) -> None:
    MetaProperties("cluster", 2, Uuid.random()).write(log_dir.path / META_PROPERTIES)
    with pytest.raises(InconsistentClusterIdError, match="node 2"):
        log_dir.read_meta_properties(1)
    assert (log_dir.meta, log_dir.id) == (None, None)


def test_a_directory_that_does_not_say_whose_it_is_any_more_is_not_adopted(log_dir: LogDirectory) -> None:
    (log_dir.path / META_PROPERTIES).write_text("version=1\n")
    with pytest.raises(KafkaStorageError, match="restore the file"):
        log_dir.read_meta_properties(1)
    assert log_dir.offline_error is None


def test_a_directory_keeps_its_id(log_dir: LogDirectory) -> None:
    made = log_dir.complete_meta_properties(None, 1)
    assert log_dir.complete_meta_properties("other", 7) is made
    log_dir.read_meta_properties(1)
    assert log_dir.meta == made
    assert log_dir.id == made.directory_id


def test_a_directory_of_an_older_kafka_gets_an_id(log_dir: LogDirectory) -> None:
    (log_dir.path / META_PROPERTIES).write_text("version=1\ncluster.id=old\nnode.id=1\n")
    log_dir.read_meta_properties(1)
    assert log_dir.id is None
    made = log_dir.complete_meta_properties("old", 1)
    assert (made.cluster_id, made.node_id) == ("old", 1)
    assert MetaProperties.read(log_dir.path / META_PROPERTIES) == made
    assert log_dir.id == made.directory_id is not None


def test_partitions_are_found_in_order_and_all_else_is_passed_over(log_dir: LogDirectory) -> None:
    known = Uuid.random()
    for name in ("b-1", "b-0", "a-3", "b-0.1f-delete", "c-0.1f-future", "d-0.1f-stray", "notes", "e-x"):
        (log_dir.path / name).mkdir()
    (log_dir.path / "f-0").touch()
    write_topic_id(log_dir.path / "b-1", known, durable=True)
    (log_dir.path / "b-0" / "partition.metadata").write_text("damaged")
    assert [(found.topic_partition, found.topic_id) for found in log_dir.partitions()] == [
        (TopicPartition("a", 3), None),
        (TopicPartition("b", 0), None),
        (TopicPartition("b", 1), known),
    ]


def test_a_damaged_checkpoint_is_as_good_as_none(log_dir: LogDirectory) -> None:
    offsets = {TopicPartition("t", 0): 5}
    log_dir.recovery_points.write(offsets)
    assert log_dir.read_checkpoint(log_dir.recovery_points) == offsets
    log_dir.recovery_points.path.write_bytes(b"\xff\xfe")
    assert log_dir.read_checkpoint(log_dir.recovery_points) == {}
