"""Names of the files of a log, and the few ways in which they are made durable."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.record.open_files import OUT_OF_DESCRIPTORS

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TXN_INDEX_SUFFIX = ".txnindex"
SNAPSHOT_SUFFIX = ".snapshot"

PARTITION_METADATA = "partition.metadata"

DELETED_SUFFIX = ".deleted"
"""Out of the log, waiting to be unlinked."""
CLEANED_SUFFIX = ".cleaned"
"""Being written by compaction: worth nothing until it is complete."""
SWAP_SUFFIX = ".swap"
"""Complete result of a compaction, about to take the place of the segments it was made from."""
TMP_SUFFIX = ".tmp"

DELETE_DIR_SUFFIX = "-delete"
FUTURE_DIR_SUFFIX = "-future"
STRAY_DIR_SUFFIX = "-stray"

_OFFSET_NAME = re.compile(r"([0-9]{20})(\..+)")
_PARTITION_DIR = re.compile(r"(?P<topic>[a-zA-Z0-9._-]{1,249})-(?P<partition>[0-9]{1,10})")


def offset_name(offset: int, suffix: str) -> str:
    """A file's name for an offset: twenty digits, so that names sort as offsets do, and the suffix."""
    return f"{offset:020d}{suffix}"


def segment_paths(directory: Path, base_offset: int, suffix: str = "") -> list[Path]:
    """The files of a segment: batches, offset index, time index and transaction index."""
    kinds = (LOG_SUFFIX, INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)
    return [directory / offset_name(base_offset, kind + suffix) for kind in kinds]


def parse_offset_name(name: str) -> tuple[int, str] | None:
    """Offset and suffix (all of it, such as `.log.swap`) of a file's name, None for any other name."""
    match = _OFFSET_NAME.fullmatch(name)
    return None if match is None else (int(match[1]), match[2])


def partition_dir_name(topic_partition: TopicPartition) -> str:
    """The name of a partition's directory."""
    return f"{topic_partition.topic}-{topic_partition.partition}"


def parse_partition_dir(name: str) -> TopicPartition | None:
    """The partition whose directory is called `name`, None if it is not a partition's directory."""
    match = _PARTITION_DIR.fullmatch(name)
    return None if match is None else TopicPartition(match["topic"], int(match["partition"]))


def delete_dir_name(topic_partition: TopicPartition) -> str:
    """A new, unique name for the directory of a partition that is being deleted (at most 255 characters)."""
    suffix = f".{Uuid.random().bytes.hex()}{DELETE_DIR_SUFFIX}"
    return partition_dir_name(topic_partition)[: 255 - len(suffix)] + suffix


@contextmanager
def opened(path: Path, flags: int) -> Iterator[int]:
    """A descriptor of the file, closed at the end. Raises OSError."""
    fd = os.open(path, flags, 0o644)
    try:
        yield fd
    finally:
        os.close(fd)


def fsync_dir(path: Path) -> None:
    """Make creations, renames and removals in directory `path` durable."""
    with opened(path, os.O_RDONLY | os.O_DIRECTORY) as fd:
        os.fsync(fd)


def make_dirs(path: Path) -> None:
    """Make a directory, and those above it that are missing, and make them durable. Raises OSError."""
    missing = [one for one in (path, *path.parents) if not one.exists()]
    path.mkdir(parents=True, exist_ok=True)
    for made in missing:
        fsync_dir(made.parent)


def fsync_if_present(path: Path) -> None:
    """Force a file that may be missing to disk."""
    try:
        with opened(path, os.O_RDWR) as fd:
            os.fsync(fd)
    except FileNotFoundError:
        pass


def write_all(fd: int, data: bytes | bytearray | memoryview, position: int) -> None:
    """Write all of `data` at `position`, however many calls it takes."""
    view = memoryview(data)
    while view:
        written = os.pwrite(fd, view, position)
        position += written
        view = view[written:]


def atomic_write(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replace the file by `data` so that after a crash at any moment it holds the old or the new contents,
    whole.

    Unless `durable`, that of the machine excepted: whoever does so forces file and directory to disk later. Raises
    OSError; a temporary file left by a crash is overwritten by the next call.
    """
    temporary = path.with_name(path.name + TMP_SUFFIX)
    with opened(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as fd:
        write_all(fd, data, 0)
        if durable:
            os.fsync(fd)
    temporary.replace(path)
    if durable:
        fsync_dir(path.parent)


def remove_if_present(path: Path) -> None:
    """Unlink a file that may be missing."""
    try:
        path.unlink()
    except FileNotFoundError:
        pass


@contextmanager
def once_only() -> Iterator[None]:
    """An OSError in the block leaves things halfway: it cannot be tried again, as want of descriptors else could."""
    try:
        yield
    except OSError as error:
        if error.errno in OUT_OF_DESCRIPTORS:
            raise OSError(errno.EIO, str(error)) from error
        raise
