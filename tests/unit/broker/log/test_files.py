"""Durable changes of files: what a crash before left behind, and which errors can be tried again."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from kclient.broker.log.files import (
    atomic_write,
    fsync_dir,
    fsync_if_present,
    once_only,
    opened,
    parse_offset_name,
    parse_partition_dir,
    remove_if_present,
    write_all,
)
from kclient.common.topic_partition import TopicPartition


def test_a_descriptor_is_closed_also_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="test"), opened(tmp_path / "f", os.O_WRONLY | os.O_CREAT) as fd:
        raise ValueError("test")
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_all_is_written_however_little_a_call_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, position: real(fd, data[:3], position))
    with opened(tmp_path / "f", os.O_RDWR | os.O_CREAT) as fd:
        write_all(fd, b"0123456789", 2)
        write_all(fd, b"", 100)
    assert (tmp_path / "f").read_bytes() == b"\0\x000123456789"


def test_what_a_crash_left_of_a_longer_write_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "f.tmp").write_bytes(b"x" * 100)
    atomic_write(tmp_path / "f", b"new")
    assert (tmp_path / "f").read_bytes() == b"new"
    assert not (tmp_path / "f.tmp").exists()


def test_missing_files_are_as_good_as_synced_and_removed_and_a_missing_directory_is_not(
    tmp_path: Path,
) -> None:
    fsync_if_present(tmp_path / "none")
    remove_if_present(tmp_path / "none")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError):
        fsync_dir(tmp_path / "none")
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        fsync_dir(tmp_path / "file")


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENFILE])
def test_what_was_done_by_half_is_not_tried_again_for_want_of_descriptors(code: int) -> None:
    cause = OSError(code, "no descriptor")
    with pytest.raises(OSError, match="no descriptor") as raised, once_only():
        raise cause
    assert (raised.value.errno, raised.value.__cause__) == (errno.EIO, cause)


def test_other_errors_pass_as_they_are() -> None:
    full = OSError(errno.ENOSPC, "full")
    with pytest.raises(OSError, match="full") as raised, once_only():
        raise full
    assert raised.value is full


def test_names_are_taken_apart_at_their_limits() -> None:
    assert parse_offset_name("9" * 20 + ".log.swap.deleted") == (10**20 - 1, ".log.swap.deleted")
    assert parse_partition_dir("x" * 249 + "-0") == TopicPartition("x" * 249, 0)
    assert parse_partition_dir("a-1-2") == TopicPartition("a-1", 2)
    for name in ("0" * 21 + ".log", "0" * 20 + ".", "\u0663" * 20 + ".log"):
        assert parse_offset_name(name) is None
    for name in ("x" * 250 + "-0", "a-" + "1" * 11, "a-\u0663", "a-1\n"):
        assert parse_partition_dir(name) is None
