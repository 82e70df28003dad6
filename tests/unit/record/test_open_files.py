"""Files that share a few descriptors."""

from __future__ import annotations

import errno
import gc
import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from kclient.record.open_files import OpenFiles, SharedFile


def made(directory: Path, files: OpenFiles, count: int) -> list[SharedFile]:
    for number in range(count):
        (directory / str(number)).write_bytes(b"%d" % number)
    return [SharedFile(files, directory / str(number), os.O_RDONLY) for number in range(count)]


def content(file: SharedFile) -> bytes:
    with file as fd:
        return os.pread(fd, 10, 0)


def are_open(shared: Sequence[SharedFile]) -> list[bool]:
    return [file.fd >= 0 for file in shared]


def test_no_more_stay_open_than_the_limit_says(tmp_path: Path) -> None:
    files = OpenFiles(3)
    shared = made(tmp_path, files, 10)
    for _ in range(2):
        assert [content(file) for file in shared] == [b"%d" % number for number in range(10)]
        assert files.count == 3
    assert are_open(shared) == [False] * 7 + [True] * 3


def test_the_one_unused_for_longest_is_closed_first(tmp_path: Path) -> None:
    files = OpenFiles(2)
    first, second, third = shared = made(tmp_path, files, 3)
    for file in (first, second, first, third):
        content(file)
    assert are_open(shared) == [True, False, True]


def test_one_in_use_is_not_closed_and_makes_the_limit_wait(tmp_path: Path) -> None:
    files = OpenFiles(1)
    shared = made(tmp_path, files, 3)
    with ExitStack() as stack:
        fds = [stack.enter_context(file) for file in (*shared, *shared)]
        assert [os.pread(fd, 10, 0) for fd in fds] == [b"0", b"1", b"2"] * 2
    assert files.count == 1


def test_when_descriptors_run_out_others_are_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = OpenFiles(100)
    shared = made(tmp_path, files, 4)
    real = os.open

    def scarce(path: Path, flags: int, mode: int) -> int:
        if files.count >= 2:
            raise OSError(errno.EMFILE, "Too many open files")
        return real(path, flags, mode)

    monkeypatch.setattr(os, "open", scarce)
    assert [content(file) for file in shared] == [b"0", b"1", b"2", b"3"]
    with shared[0], shared[1], pytest.raises(OSError, match="Too many open files"):
        content(shared[2])


def test_closed_it_is_open_only_while_it_is_used(tmp_path: Path) -> None:
    files = OpenFiles(10)
    (file,) = made(tmp_path, files, 1)
    with file as fd:
        file.close()
        assert os.pread(fd, 10, 0) == b"0"
    assert files.count == 0
    assert content(file) == b"0"
    assert files.count == 0
    file.close()


def test_under_its_new_name_it_is_found_again(tmp_path: Path) -> None:
    files = OpenFiles(1)
    first, second = made(tmp_path, files, 2)
    content(first)
    first.rename(tmp_path / "renamed")
    content(second)
    assert content(first) == b"0"


@pytest.mark.parametrize("has_reader", [True, False])
def test_a_removed_file_is_kept_for_its_readers_and_no_longer(tmp_path: Path, has_reader: bool) -> None:
    class Reader:
        pass

    files = OpenFiles(10)
    (file,) = made(tmp_path, files, 1)
    reader = Reader()
    if has_reader:
        file.add_reader(reader)
    file.outlive_removal()
    file.close()
    file.path.unlink()
    assert files.count == has_reader
    if has_reader:
        assert content(file) == b"0"
    del file
    gc.collect()
    assert files.count == 0
