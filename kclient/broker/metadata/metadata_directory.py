"""The directory of the metadata log: where it is looked for, and how this broker's is told from a Kafka's.

Both are called `__cluster_metadata-0`. Ours begins, as every snapshot of it does, with the level of a feature of our
own. Where a Kafka's is in its place, ours is called `__kclient_metadata-0`: the other one is never changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kclient.broker.log.file_system import DISK, FileSystem
from kclient.broker.log.files import LOG_SUFFIX, TMP_SUFFIX, parse_offset_name
from kclient.broker.log.log_directory import LogDirectory
from kclient.broker.metadata.metadata_files import PART_SUFFIX, SnapshotId
from kclient.broker.metadata.metadata_store import FORMAT_FEATURE
from kclient.broker.metadata.topic_names import METADATA_TOPICS
from kclient.errors import KafkaStorageError

OLD_JOURNAL = "topics.journal"
"""The file in which topics were kept before there was a metadata log."""

_MARK = FORMAT_FEATURE.encode()
_HEAD_BYTES = 4096  # that have the first records of a file


def find_metadata_log(log_dirs: Sequence[Path], configured: Path | None) -> Path:
    """The directory of the broker's metadata log; where it belongs, if there is none yet.

    `configured` is `metadata.log.dir`. Without it the log is in any of `log_dirs`, and a new one in the first.
    Changes nothing. Raises KafkaStorageError if it is elsewhere than it should be, or there are two.
    """
    home = log_dirs[0] if configured is None else configured
    home = next((place for place in log_dirs if place.resolve() == home.resolve()), home)
    places = list(dict.fromkeys([home, *log_dirs]))
    found = [place / name for place in places for name in _names() if _is_ours(place / name)]
    if len(found) > 1:
        raise KafkaStorageError(
            f"{found[0]} and {found[1]} are both metadata logs of this broker: remove the one that is out of date"
        )
    if found:
        if configured is not None and found[0].parent != home:
            raise KafkaStorageError(
                f"The metadata log of this broker is {found[0]}, and metadata.log.dir is {configured}: move it there, "
                "or change the setting"
            )
        return found[0]
    free = next((home / name for name in _names() if _is_free(home / name)), None)
    if free is None:
        raise KafkaStorageError(f"{home} has {' and '.join(_names())} already, and neither is this broker's")
    return free


def find_foreign_logs(places: Sequence[Path]) -> list[Path]:
    """The directories of metadata logs that other brokers wrote. Raises KafkaStorageError."""
    found = [place / name for place in dict.fromkeys(places) for name in _names()]
    return [directory for directory in found if not _is_free(directory) and not _is_ours(directory)]


def find_old_journal(log_dirs: Sequence[Path]) -> Path | None:
    """The journal that a kclient wrote before there was a metadata log, None if there is none."""
    return next((place / OLD_JOURNAL for place in log_dirs if (place / OLD_JOURNAL).exists()), None)


def _names() -> list[str]:
    return [f"{topic}-0" for topic in METADATA_TOPICS]


def _files(directory: Path) -> list[Path]:
    """Return the files in a directory, none if it cannot be looked at: then it cannot be used either."""
    try:
        return list(directory.iterdir())
    except OSError:
        return []


def _is_ours(directory: Path) -> bool:
    files = _files(directory)
    snapshots = {path: found for path in files if (found := SnapshotId.parse(path.name)) is not None}
    segments = [path for path in files if (name := parse_offset_name(path.name)) and name[1] == LOG_SUFFIX]
    first = max(snapshots, key=snapshots.__getitem__) if snapshots else min(segments, default=None)
    if first is None:
        return False
    try:
        with first.open("rb") as file:
            return _MARK in file.read(_HEAD_BYTES)
    except OSError as error:
        raise KafkaStorageError(f"{first} cannot be read: {error}") from error


def _is_free(directory: Path) -> bool:
    """Return True if the log can be made here: there is nothing, or what a crash left of making it."""
    return all(path.name.endswith((TMP_SUFFIX, PART_SUFFIX)) for path in _files(directory))


def open_home(directory: Path, node_id: int, file_system: FileSystem = DISK) -> LogDirectory:
    """Lock a directory that has the metadata log and no partitions, if it is there, and read whose it is.

    The caller releases it. Raises IllegalStateError if another broker uses it,
    InconsistentClusterIdError if it is another node's, and KafkaStorageError.
    """
    home = LogDirectory(directory, file_system)
    try:
        if directory.exists():
            home.acquire()
            home.read_meta_properties(node_id)
    except OSError as error:
        home.release()
        raise _unusable(home, error) from error
    except BaseException:
        home.release()
        raise
    return home


def claim_home(home: LogDirectory, cluster_id: str, node_id: int) -> None:
    """Make the directory if need be, and write down whose it is. Raises KafkaStorageError."""
    try:
        home.acquire()
        home.complete_meta_properties(cluster_id, node_id)
    except OSError as error:
        raise _unusable(home, error) from error


def _unusable(home: LogDirectory, error: OSError) -> KafkaStorageError:
    return KafkaStorageError(f"metadata.log.dir {home.path} cannot be used: {error}")
