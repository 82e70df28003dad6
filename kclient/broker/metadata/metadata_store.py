"""MetadataStore: the metadata as it is now, and the log that it is replayed from."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from pathlib import Path

import attrs

from kclient.broker.metadata.image.metadata_delta import MetadataDelta
from kclient.broker.metadata.image.metadata_image import MetadataImage
from kclient.broker.metadata.metadata_log import MetadataLog
from kclient.common.uuid import Uuid
from kclient.errors import KafkaStorageError, PolicyViolationError
from kclient.protocol.messages.metadata_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
)
from kclient.protocol.schema import Message
from kclient.utils.time import Time

log = logging.getLogger(__name__)

FORMAT_FEATURE = "kclient.metadata"
"""The feature by which a log of this broker's is known; its level is the version of what is written."""
FORMAT_LEVEL = 1

_WORTHWHILE = 1000  # records that are read sooner than a snapshot is written


class MetadataStore:
    """The image of a log in a directory. Used by one thread at a time; `image` may be read by any.

    Made, it has read the log and changed nothing; after `start` changes are taken. Everything raises
    KafkaStorageError for files that cannot be read or written, are damaged or of something newer.
    """

    def __init__(self, directory: Path, time: Time, *, snapshot_bytes: int) -> None:
        self._log = MetadataLog(directory, time)
        self._snapshot_bytes = self._next_snapshot_bytes = snapshot_bytes
        self._read_records = 0
        self.image = self._load()
        """The metadata as the log has it."""

    @property
    def directory(self) -> Path:
        """The directory of the log."""
        return self._log.directory

    @property
    def found(self) -> bool:
        """True if there is anything in the log."""
        return self._log.end_offset > 0

    @property
    def end_offset(self) -> int:
        """The offset that the next record will get."""
        return self._log.end_offset

    def start(self) -> None:
        """Take changes from now on, in an epoch of their own. Writes a snapshot if the log is long for what it says."""
        self._log.start()
        if self._read_records > _WORTHWHILE and self._read_records > 2 * sum(1 for _ in self.image.records()):
            self._write_snapshot()

    def commit(self, records: Sequence[Message]) -> MetadataDelta:
        """Write records, as one, and take them into the image; returns what they changed.

        Nothing is written if they contradict what is there.
        """
        delta = MetadataDelta(self.image)
        for record in records:
            delta.replay(record)
        after = delta.apply()
        self._log.append(records)
        self.image = after
        if self._log.bytes_since_snapshot >= self._next_snapshot_bytes:
            self._write_snapshot()
        return delta

    def forget_deleted(self, topic_id: Uuid) -> None:
        """Remember a deleted topic no longer: its files are gone."""
        self.image = attrs.evolve(self.image, topics=self.image.topics.without_deleted(topic_id))

    def close(self) -> None:
        """Close the log. Idempotent."""
        self._log.close()

    def _load(self) -> MetadataImage:
        delta = MetadataDelta(MetadataImage())
        open_transaction: list[Message] | None = None
        for batch in self._log.read():
            self._read_records += len(batch)
            for record in batch:
                match record:
                    case BeginTransactionRecord():
                        open_transaction = []
                    case EndTransactionRecord():
                        self._replay(delta, open_transaction or ())
                        open_transaction = None
                    case AbortTransactionRecord():
                        open_transaction = None
                    case _ if open_transaction is not None:
                        open_transaction.append(record)
                    case _:
                        self._replay(delta, (record,))
        return delta.apply()

    def _replay(self, delta: MetadataDelta, records: Iterable[Message]) -> None:
        for record in records:
            if (
                isinstance(record, FeatureLevelRecord)
                and record.name == FORMAT_FEATURE
                and record.feature_level > FORMAT_LEVEL
            ):
                raise KafkaStorageError(
                    f"{self.directory} was written by a newer kclient: {FORMAT_FEATURE} is {record.feature_level}, "
                    f"and this one knows {FORMAT_LEVEL}"
                )
            try:
                delta.replay(record)
            except KafkaStorageError as error:
                raise KafkaStorageError(f"{self.directory} cannot be read: {error}") from error

    def _write_snapshot(self) -> None:
        """Write a snapshot. That it fails is no fault of the change before it: the log has everything."""
        try:
            self._log.write_snapshot(self.image.records())
        except KafkaStorageError as error:
            log.warning("The metadata log goes on without a snapshot: %s", error)
        self._next_snapshot_bytes = self._log.bytes_since_snapshot + self._snapshot_bytes


class ReadOnlyMetadataStore(MetadataStore):
    """The image of a log that stays as it is, or of none.

    What a broker has to say of its own start is taken into the image alone; that is the first change, and the only one.
    """

    _started = False

    def start(self) -> None:
        pass

    def commit(self, records: Sequence[Message]) -> MetadataDelta:
        """Take the records of a start into the image. Raises PolicyViolationError for any others."""
        if self._started:
            raise PolicyViolationError(
                f"{self.directory.parent} was opened read-only (kclient.read.only): nothing can be changed"
            )
        self._started = True
        delta = MetadataDelta(self.image)
        for record in records:
            delta.replay(record)
        self.image = delta.apply()
        return delta
