"""Checkpoint files: small text files that say how far something has got.

All have the same shape: a version, the number of entries, one entry a line. They are replaced atomically, so
a damaged one means a damaged disk or an editor; `read` says so and the caller decides what the lack of it
means.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from kclient.broker.log.file_system import DISK, FileSystem
from kclient.broker.log.files import PARTITION_METADATA
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid

RECOVERY_POINT_CHECKPOINT = "recovery-point-offset-checkpoint"
LOG_START_OFFSET_CHECKPOINT = "log-start-offset-checkpoint"
HIGH_WATERMARK_CHECKPOINT = "replication-offset-checkpoint"
CLEANER_OFFSET_CHECKPOINT = "cleaner-offset-checkpoint"
LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
CLEAN_SHUTDOWN_MARKER = ".kafka_cleanshutdown"
META_PROPERTIES = "meta.properties"
_NODE_ID_BY_VERSION = {"0": "broker.id", "1": "node.id"}

_MAX_BYTES = 256 * 1024 * 1024


class MalformedCheckpointError(ValueError):
    """A checkpoint file that does not hold what it should."""


def _read_text(path: Path, file_system: FileSystem) -> str | None:
    try:
        if file_system.size(path) > _MAX_BYTES:
            raise MalformedCheckpointError(f"{path} is too big for a checkpoint")
        return file_system.read(path).decode()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError as error:
        raise MalformedCheckpointError(f"{path} is not text: {error}") from error


@attrs.frozen
class CheckpointFile:
    """Version 0 of the common format, over lines. Not thread-safe: one writer at a time."""

    path: Path
    file_system: FileSystem = DISK

    def read(self, *kinds: Callable[[str], Any]) -> list[tuple[Any, ...]]:
        """The words of each entry, each as the value that one of `kinds` makes of it; empty if the file is missing.

        Raises `MalformedCheckpointError`.
        """
        text = _read_text(self.path, self.file_system)
        if text is None:
            return []
        lines = text.splitlines()
        if len(lines) < 2 or lines[0].strip() != "0" or not lines[1].strip().isdecimal():
            raise MalformedCheckpointError(f"{self.path} does not begin with a version 0 and a count")
        entries = [line.split() for line in lines[2:] if line.strip()]
        if len(entries) != int(lines[1]):
            raise MalformedCheckpointError(f"{self.path} has {len(entries)} entries and announces {lines[1]}")
        found = []
        for entry in entries:
            try:
                found.append(tuple(kind(entry[place]) for place, kind in enumerate(kinds)))
            except (IndexError, ValueError) as error:
                raise MalformedCheckpointError(f"{self.path} has a bad entry: {' '.join(entry)}") from error
        return found

    def write(self, entries: Sequence[str]) -> None:
        """Replace the contents durably. Raises OSError."""
        lines = ["0", str(len(entries)), *entries]
        self.file_system.atomic_write(self.path, ("\n".join(lines) + "\n").encode())


@attrs.define
class OffsetCheckpoint:
    """An offset for each partition of a log directory. Not thread-safe: one writer at a time."""

    path: Path
    file_system: FileSystem = DISK
    _written: Mapping[TopicPartition, int] | None = attrs.field(default=None, init=False, eq=False)

    def read(self) -> dict[TopicPartition, int]:
        """All offsets; none if the file is missing, or empty, as Kafka makes it.

        Raises `MalformedCheckpointError`.
        """
        if _read_text(self.path, self.file_system) == "":
            return {}
        entries = CheckpointFile(self.path, self.file_system).read(str, int, int)
        return {TopicPartition(topic, partition): offset for topic, partition, offset in entries}

    def write(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Replace all offsets durably. Raises OSError."""
        self._written = None
        CheckpointFile(self.path, self.file_system).write(
            [f"{tp.topic} {tp.partition} {offset}" for tp, offset in sorted(offsets.items())]
        )
        self._written = offsets

    def write_if_changed(self, offsets: Mapping[TopicPartition, int]) -> None:
        """Do as `write`, but leave the disk alone if these offsets were the last to be written."""
        if offsets != self._written:
            self.write(offsets)


@attrs.frozen
class EpochCheckpoint:
    """The first offset of each leader epoch of one log, in order."""

    path: Path
    file_system: FileSystem = DISK

    def read(self) -> list[tuple[int, int]]:
        """Pairs of epoch and start offset; empty if the file is missing.

        Raises `MalformedCheckpointError`.
        """
        epochs: list[tuple[int, int]] = []
        for epoch, start in CheckpointFile(self.path, self.file_system).read(int, int):
            if epochs and (epoch <= epochs[-1][0] or start <= epochs[-1][1]):
                raise MalformedCheckpointError(f"{self.path} is out of order at epoch {epoch}")
            epochs.append((epoch, start))
        return epochs

    def write(self, epochs: Sequence[tuple[int, int]]) -> None:
        """Replace all entries durably. Raises OSError."""
        CheckpointFile(self.path, self.file_system).write([f"{epoch} {start}" for epoch, start in epochs])


@attrs.frozen
class CleanShutdownMarker:
    """There is nothing to recover if this file is there."""

    path: Path
    file_system: FileSystem = DISK

    def take(self) -> bool:
        """Remove the marker, valid for one start only; return True if the last shutdown was clean. Raises OSError."""
        if not self.file_system.exists(self.path):
            return False
        self.file_system.remove(self.path)
        # A power failure must not bring it back: what is written from now on would not be checked.
        self.file_system.sync_directory(self.path.parent)
        return True

    def write(self) -> None:
        """Leave the marker. Raises OSError."""
        # Kafka keeps the epoch that the controller gave the broker here; -1 is its value for none.
        self.file_system.atomic_write(self.path, json.dumps({"version": 0, "brokerEpoch": -1}).encode())


def read_topic_id(directory: Path, file_system: FileSystem = DISK) -> Uuid | None:
    """The id of the topic that a partition's directory belongs to (KIP-516), None if it names none.

    Raises `MalformedCheckpointError`.
    """
    path = directory / PARTITION_METADATA
    text = _read_text(path, file_system)
    if text is None:
        return None
    fields = dict(line.split(":", 1) for line in text.splitlines() if ":" in line)
    try:
        return Uuid.from_base64(fields["topic_id"].strip())
    except (KeyError, ValueError) as error:
        raise MalformedCheckpointError(f"{path} names no topic id") from error


def write_topic_id(directory: Path, topic_id: Uuid, *, durable: bool, file_system: FileSystem = DISK) -> None:
    """Write down which topic a partition's directory belongs to. Raises OSError."""
    content = f"version: 0\ntopic_id: {topic_id}\n".encode()
    file_system.atomic_write(directory / PARTITION_METADATA, content, durable=durable)


@attrs.frozen
class MetaProperties:
    """The cluster, node and directory id that a log directory has.

    `directory_id` is None if the file names none, as Kafka's did before 3.7. Version 0 of the file is that of brokers
    with ZooKeeper.
    """

    cluster_id: str
    node_id: int
    directory_id: Uuid | None

    @classmethod
    def read(cls, path: Path) -> MetaProperties | None:
        """Parse the file, None if it is missing. Raises `MalformedCheckpointError`."""
        text = _read_text(path, DISK)
        if text is None:
            return None
        fields = dict(
            line.strip().split("=", 1)
            for line in text.splitlines()
            if "=" in line and not line.lstrip().startswith("#")
        )
        try:
            version = fields["version"]
            if version not in _NODE_ID_BY_VERSION:
                raise MalformedCheckpointError(f"{path} has version {version}, only 0 and 1 are known")
            directory = fields.get("directory.id")
            return cls(
                cluster_id=fields["cluster.id"],
                node_id=int(fields[_NODE_ID_BY_VERSION[version]]),
                directory_id=None if directory is None else Uuid.from_base64(directory),
            )
        except (KeyError, ValueError) as error:
            raise MalformedCheckpointError(f"{path} is not a meta.properties file: {error}") from error

    def write(self, path: Path, file_system: FileSystem = DISK) -> None:
        """Replace the file durably. Raises OSError."""
        fields = {
            "cluster.id": self.cluster_id,
            "directory.id": self.directory_id,
            "node.id": self.node_id,
            "version": 1,
        }
        file_system.atomic_write(
            path, "".join(f"{name}={value}\n" for name, value in fields.items()).encode()
        )
