"""TopicStore: the topics on disk, in a journal.

One line for each change: the CRC-32C of the rest in hexadecimal, a space, and a JSON object. A created or
changed topic is written whole, with the log directory of each partition, a deleted one by name and identifier.
A line is on disk before the change is told to anyone, so a topic that was acknowledged is there after a crash,
and one whose deletion was acknowledged never comes back. A torn last line is cut off: nobody was told of it.
Every start of the broker writes the journal anew, without what is out of date: a deletion is remembered for as
long as a log directory that has files of the topic is missing.
"""

from __future__ import annotations

import json
import logging
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import attrs

from kclient._accel import crc32c
from kclient.broker.log.files import atomic_write, write_all
from kclient.broker.metadata.cache import TopicImage
from kclient.common.uuid import Uuid
from kclient.errors import KafkaStorageError

log = logging.getLogger(__name__)

JOURNAL = "topics.journal"
_HEADER = b"kclient topics 1\n"


@attrs.frozen
class DeletedTopic:
    """A topic whose deletion was decided; files that remain of it in `directories` are to be removed."""

    name: str
    directories: frozenset[Uuid]


def journal_directory(directories: Sequence[Path]) -> Path:
    """The one of the log directories that has the journal, the first if none has. Raises KafkaStorageError."""
    found = [directory for directory in directories if os.path.exists(directory / JOURNAL)]
    if len(found) > 1:
        raise KafkaStorageError(
            f"{found[0]} and {found[1]} both have a {JOURNAL}: remove the one that is out of date"
        )
    return found[0] if found else directories[0]


class TopicStore:
    """Reads the journal when made, and appends to it after `start`. Thread-safe; the changes are the
    controller's.

    Raises KafkaStorageError when the file cannot be read or written, or is damaged before its last line.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / JOURNAL
        self._lock = threading.Lock()
        self._descriptor = -1
        self._position = 0
        self.found = False
        """True if there was a journal."""
        self.topics: dict[str, TopicImage] = {}
        """The topics as they were when the journal was read."""
        self.deleted: dict[Uuid, DeletedTopic] = {}
        """The topics that were deleted, by id."""
        self.directories: dict[Uuid, str] = {}
        """Paths of the log directories when they were last seen."""
        try:
            self._read()
        except OSError as error:
            raise KafkaStorageError(f"{self._path} cannot be read: {error}") from error

    def start(self, topics: Iterable[TopicImage], live: Mapping[Uuid, str]) -> None:
        """Write the journal anew with `topics`, and take changes from now on.

        `live` are the log directories in use and where they are; no files of deleted topics are left in them.
        """
        places = set(live.values())
        gone = {known: path for known, path in self.directories.items() if path not in places}
        self.directories = {**gone, **live}
        self.deleted = {
            topic_id: topic for topic_id, topic in self.deleted.items() if topic.directories - live.keys()
        }
        lines = [
            _line({"directories": {str(known): path for known, path in self.directories.items()}}),
            *(_delete_line(topic_id, topic) for topic_id, topic in self.deleted.items()),
            *map(_put_line, topics),
        ]
        try:
            atomic_write(self._path, b"".join([_HEADER, *lines]))
            self._descriptor = os.open(self._path, os.O_WRONLY)
            self._position = os.fstat(self._descriptor).st_size
        except OSError as error:
            raise KafkaStorageError(f"{self._path} cannot be written: {error}") from error

    def put(self, topic: TopicImage) -> None:
        """Record a new topic, or a topic's new settings or number of partitions."""
        self._append(_put_line(topic))

    def delete(self, topic: TopicImage) -> None:
        """Record that the topic is deleted."""
        self._append(_delete_line(topic.id, DeletedTopic(topic.name, frozenset(topic.directories))))

    def close(self) -> None:
        """Close the file. Idempotent."""
        with self._lock:
            if self._descriptor >= 0:
                os.close(self._descriptor)
                self._descriptor = -1

    def _append(self, line: bytes) -> None:
        with self._lock:
            if self._descriptor < 0:
                raise KafkaStorageError(f"{self._path} is closed")
            try:
                write_all(self._descriptor, line, self._position)
                os.fsync(self._descriptor)
            except OSError as error:
                self._cut_back()
                raise KafkaStorageError(f"{self._path} cannot be written: {error}") from error
            self._position += len(line)

    def _cut_back(self) -> None:
        """The next line must not follow half of this one."""
        try:
            os.ftruncate(self._descriptor, self._position)
        except OSError:
            log.exception("%s cannot be cut back; no topic can be changed until the next start", self._path)
            os.close(self._descriptor)
            self._descriptor = -1

    def _read(self) -> None:
        try:
            content = self._path.read_bytes()
        except FileNotFoundError:
            return
        self.found = True
        if not content.startswith(_HEADER):
            raise KafkaStorageError(f"{self._path} is not a journal of topics")
        lines = content[len(_HEADER) :].split(b"\n")
        for number, line in enumerate(lines, 2):
            if not line:
                continue
            change = _parse(line)
            if change is None:
                if all(not later for later in lines[number - 1 :]):
                    log.warning("%s ends in the middle of a change, which is left out", self._path)
                    return
                raise KafkaStorageError(f"{self._path} is damaged in line {number}")
            self._apply(change)

    def _apply(self, change: dict[str, Any]) -> None:
        if "directories" in change:
            self.directories = {
                Uuid.from_base64(known): path for known, path in change["directories"].items()
            }
        elif "delete" in change:
            self.topics.pop(change["delete"], None)
            holders = frozenset(map(Uuid.from_base64, change.get("dirs", ())))
            self.deleted[Uuid.from_base64(change["id"])] = DeletedTopic(change["delete"], holders)
        else:
            count = change["partitions"]
            directories = [Uuid.ZERO] * count
            for known, partitions in change.get("dirs", {}).items():
                for partition in partitions:
                    directories[partition] = Uuid.from_base64(known)
            topic = TopicImage(
                change["topic"],
                Uuid.from_base64(change["id"]),
                count,
                MappingProxyType(dict(change["configs"])),
                tuple(directories),
            )
            self.topics[topic.name] = topic


def _put_line(topic: TopicImage) -> bytes:
    directories: dict[str, list[int]] = {}
    for partition, known in enumerate(topic.directories):
        directories.setdefault(str(known), []).append(partition)
    return _line(
        {
            "topic": topic.name,
            "id": str(topic.id),
            "partitions": topic.partition_count,
            "configs": dict(topic.configs),
            "dirs": directories,
        }
    )


def _delete_line(topic_id: Uuid, topic: DeletedTopic) -> bytes:
    return _line({"delete": topic.name, "id": str(topic_id), "dirs": sorted(map(str, topic.directories))})


def _line(change: dict[str, Any]) -> bytes:
    body = json.dumps(change, separators=(",", ":")).encode()
    return b"%08x %s\n" % (crc32c(body), body)


def _parse(line: bytes) -> dict[str, Any] | None:
    checksum, _, body = line.partition(b" ")
    try:
        if int(checksum, 16) != crc32c(body):
            return None
        change = json.loads(body)
    except ValueError:
        return None
    return change if isinstance(change, dict) else None
