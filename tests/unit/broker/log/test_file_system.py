"""Files that are changed on disk, and files that are changed in memory alone: to who uses them it is the same."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.broker.directories import fingerprint
from kclient.broker.log.file_system import DISK, FileSystem, ReadOnlyFileSystem
from kclient.errors import PolicyViolationError
from kclient.record.open_files import OpenFiles


@pytest.fixture(params=[DISK, None], ids=["disk", "memory"])
def files(request: pytest.FixtureRequest) -> FileSystem:
    return request.param or ReadOnlyFileSystem()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "a").write_bytes(b"content of a")
    (tmp_path / "b").write_bytes(b"content of b")
    (tmp_path / "d").mkdir()
    return tmp_path


def seen(files: FileSystem, root: Path) -> dict[str, bytes | None]:
    return {
        path.name: None if path.name == "d" else files.read(path)
        for path in sorted(files.list(root), key=lambda path: path.name)
    }


CHANGES: list[tuple[Callable[[FileSystem, Path], object], dict[str, bytes | None]]] = [
    (
        lambda files, root: files.write(root / "a", b"CONT"),
        {"a": b"CONTent of a", "b": b"content of b", "d": None},
    ),
    (
        lambda files, root: files.write(root / "a", b"xy", 2, 4),
        {"a": b"coxy", "b": b"content of b", "d": None},
    ),
    (
        lambda files, root: files.write(root / "new", b"x", 2),
        {"a": b"content of a", "b": b"content of b", "d": None, "new": b"\0\0x"},
    ),
    (lambda files, root: files.truncate(root / "a", 3), {"a": b"con", "b": b"content of b", "d": None}),
    (lambda files, root: files.atomic_write(root / "b", b"x"), {"a": b"content of a", "b": b"x", "d": None}),
    (lambda files, root: files.replace(root / "a", root / "b"), {"b": b"content of a", "d": None}),
    (
        lambda files, root: files.replace(root / "a", root / "c"),
        {"b": b"content of b", "c": b"content of a", "d": None},
    ),
    (lambda files, root: files.remove(root / "a"), {"b": b"content of b", "d": None}),
    (
        lambda files, root: files.remove(root / "gone"),
        {"a": b"content of a", "b": b"content of b", "d": None},
    ),
    (lambda files, root: files.remove_tree(root / "d"), {"a": b"content of a", "b": b"content of b"}),
]


@pytest.mark.parametrize(("change", "after"), CHANGES)
def test_a_change_is_seen_by_who_made_it(
    files: FileSystem,
    root: Path,
    change: Callable[[FileSystem, Path], object],
    after: dict[str, bytes | None],
) -> None:
    before = fingerprint(root)
    change(files, root)
    files.sync(root / "a")
    files.sync_directory(root)
    assert seen(files, root) == after
    for name in ("a", "b", "c", "new", "gone"):
        assert files.exists(root / name) == (name in after)
        if name in after:
            assert files.size(root / name) == len(after[name] or b"")
            assert bytes(files.map(root / name, 1)[:1]) == (after[name] or b"")[:1]
        else:
            with pytest.raises(FileNotFoundError):
                files.size(root / name)
            with pytest.raises(FileNotFoundError):
                files.read(root / name)
    if not files.writable:
        assert fingerprint(root) == before


def test_what_was_removed_can_be_made_again(files: FileSystem, root: Path) -> None:
    files.remove(root / "a")
    with files.open_records(root / "a", OpenFiles(1)) as records:
        assert (records.size, records.read(0, 10)) == (0, b"")
    files.write(root / "a", b"new")
    assert files.read(root / "a") == b"new"


def test_batches_that_are_cut_off_are_seen_no_more(files: FileSystem, root: Path) -> None:
    files.replace(root / "a", root / "c")
    with files.open_records(root / "c", OpenFiles(1)) as records:
        assert records.truncate_to(7) == 5
        assert (records.size, records.read(0, 100)) == (7, b"content")
        with pytest.raises(ValueError, match="cannot be truncated"):
            records.truncate_to(8)
    if not files.writable:
        assert (root / "a").read_bytes() == b"content of a"


def test_a_directory_is_made_only_where_that_may_be(root: Path) -> None:
    DISK.make_directory(root / "x" / "y")
    assert (root / "x" / "y").is_dir()
    read_only = ReadOnlyFileSystem()
    read_only.make_directory(root / "x")
    with pytest.raises(FileNotFoundError, match="no directory"):
        read_only.make_directory(root / "z")
    assert not (root / "z").exists()


def test_who_asks_whether_it_may_write_is_told(root: Path) -> None:
    DISK.check_writable(root)
    with pytest.raises(PolicyViolationError, match="opened read-only"):
        ReadOnlyFileSystem().check_writable(root)


def test_a_file_that_may_only_be_read_is_not_opened_for_more(root: Path) -> None:
    with ReadOnlyFileSystem().open_records(root / "a", OpenFiles(1)) as records:
        assert records.file.flags & os.O_ACCMODE == os.O_RDONLY
