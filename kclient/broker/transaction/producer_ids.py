"""Identifiers for idempotent producers, none of which is ever given out twice."""

from __future__ import annotations

import threading
from pathlib import Path

from kclient.broker.log.files import atomic_write
from kclient.errors import KafkaStorageError

BLOCK_SIZE = 1000
_FILE = "producer-ids"
_MAX_ID = (1 << 63) - 1


class ProducerIds:
    """Gives out producer ids. Thread-safe.

    They come in blocks: the end of a block is on disk before its first id is given out, and a restart begins
    after it, so that ids are lost by a crash but never repeated. Raises KafkaStorageError when the file
    cannot be read or written.
    """

    def __init__(self, directory: Path) -> None:
        self._path = directory / _FILE
        self._lock = threading.Lock()
        self._next = self._limit = self._load()

    def next(self) -> int:
        """An id that nobody has had."""
        with self._lock:
            if self._next == self._limit:
                self._reserve(self._limit + BLOCK_SIZE)
            producer_id = self._next
            self._next += 1
            return producer_id

    def _load(self) -> int:
        try:
            text = self._path.read_text(encoding="ascii")
        except FileNotFoundError:
            return 0
        except (OSError, UnicodeDecodeError) as error:
            raise KafkaStorageError(f"{self._path} cannot be read: {error}") from error
        if not text.strip().isdigit() or int(text) > _MAX_ID:
            # Beginning again at 0 would give ids to new producers whose old sequences are still in the logs.
            raise KafkaStorageError(f"{self._path} does not hold a producer id")
        return int(text)

    def _reserve(self, limit: int) -> None:
        if limit > _MAX_ID:
            raise KafkaStorageError("All producer ids have been given out")
        try:
            atomic_write(self._path, f"{limit}\n".encode("ascii"))
        except OSError as error:
            raise KafkaStorageError(f"{self._path} cannot be written: {error}") from error
        self._limit = limit
