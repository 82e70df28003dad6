"""TransactionIndex: the aborted transactions of a segment, for readers that want committed records only."""

from __future__ import annotations

import struct
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

import attrs

from kclient.broker.log.abstract_index import CorruptIndexError
from kclient.broker.log.file_system import DISK, FileSystem
from kclient.errors import IllegalStateError

_ENTRY = struct.Struct(">hqqqq")


@attrs.frozen
class AbortedTxn:
    """A transaction that was aborted: its first offset, that of its marker, and the last stable offset after
    it.
    """

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """Entries in order of their markers. Changed by one thread at a time, read by any.

    The file is made when the first is added. Kept in memory too: aborts are rare, and a read of committed records asks
    every segment it touches.
    """

    __slots__ = ("_entries", "_file_system", "_found", "_loading", "path")

    def __init__(self, path: Path, file_system: FileSystem = DISK) -> None:
        self.path = path
        self._file_system = file_system
        self._entries: list[AbortedTxn] | None = None
        self._found: Callable[[], list[AbortedTxn]] | None = None
        # A reader's first look must not put what it found in the file over what was added meanwhile.
        self._loading = threading.Lock()

    @property
    def entries(self) -> list[AbortedTxn]:
        """All entries. Raises `CorruptIndexError` for a file that cannot be right, OSError if it cannot be
        read.
        """
        return self.load() if self._entries is None else self._entries

    def load(self) -> list[AbortedTxn]:
        """Read the entries from the file if they are not known. Raises as `entries` does."""
        with self._loading:
            if self._entries is None:
                self._entries = self._read()
            return self._entries

    def find_with(self, found: Callable[[], list[AbortedTxn]]) -> None:
        """Have `found()` say at the first look what the entries are: the file is missing, and may have been there."""
        self._found = found

    def _read(self) -> list[AbortedTxn]:
        if self._found is not None:
            return self._found()
        try:
            data = self._file_system.read(self.path)
        except FileNotFoundError:
            data = b""
        if len(data) % _ENTRY.size:
            raise CorruptIndexError(f"{self.path.name} has {len(data)} bytes, no multiple of {_ENTRY.size}")
        entries: list[AbortedTxn] = []
        for version, producer_id, first, last, stable in _ENTRY.iter_unpack(data):
            if version != 0 or first > last or (entries and last <= entries[-1].last_offset):
                raise CorruptIndexError(f"{self.path.name} has a bad entry for producer {producer_id}")
            entries.append(AbortedTxn(producer_id, first, last, stable))
        return entries

    def append(self, txn: AbortedTxn) -> None:
        """Add an aborted transaction. Raises OSError."""
        entries = self.entries
        if entries and entries[-1].last_offset >= txn.last_offset:
            raise IllegalStateError(
                f"The aborted transaction ending at {txn.last_offset} is not after "
                f"the last one of {self.path.name}, which ends at {entries[-1].last_offset}"
            )
        data = _ENTRY.pack(0, txn.producer_id, txn.first_offset, txn.last_offset, txn.last_stable_offset)
        self._file_system.write(self.path, data, len(entries) * _ENTRY.size)
        # A new list: readers iterate over the old one without a lock.
        self._entries = [*entries, txn]

    def collect(self, fetch_offset: int, upper_bound: int) -> tuple[list[AbortedTxn], bool]:
        """The entries that touch [`fetch_offset`, `upper_bound`), and whether later segments hold no more
        of them.
        """
        found = []
        for txn in self.entries:
            if txn.last_offset >= fetch_offset and txn.first_offset < upper_bound:
                found.append(txn)
            if txn.last_stable_offset >= upper_bound:
                return found, True
        return found, False

    def truncate_to(self, offset: int) -> None:
        """Drop the transactions whose marker is at `offset` or above. Raises OSError."""
        kept = [txn for txn in self.entries if txn.last_offset < offset]
        if len(kept) != len(self.entries):
            self._file_system.truncate(self.path, len(kept) * _ENTRY.size)
            self._entries = kept

    def reset(self) -> None:
        """Drop all entries, whatever the file holds. Raises OSError."""
        self._entries = []
        self._file_system.remove(self.path)

    def flush(self) -> None:
        """Force the file, if there is one, to disk. Raises OSError."""
        self._file_system.sync(self.path)

    def rename(self, path: Path) -> None:
        """Give the file, if there is one, another name. Raises OSError."""
        if self._file_system.exists(self.path):
            self._file_system.replace(self.path, path)
        self.path = path

    def delete(self) -> None:
        """Remove the file if it is there. Raises OSError."""
        self._file_system.remove(self.path)


def collect_aborted(
    indexes: Iterable[TransactionIndex], fetch_offset: int, upper_bound: int
) -> list[AbortedTxn]:
    """The transactions aborted in [`fetch_offset`, `upper_bound`), from the indexes of the segments that follow each
    other from there on: a transaction is in that of its marker, which may come long after its records.

    Raises as `TransactionIndex.entries`.
    """
    aborted: list[AbortedTxn] = []
    for index in indexes:
        found, complete = index.collect(fetch_offset, upper_bound)
        aborted += found
        if complete:
            break
    return aborted
