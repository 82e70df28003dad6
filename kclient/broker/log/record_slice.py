"""RecordSlice: batches of a segment that are read when they are sent."""

from __future__ import annotations

import os

from kclient.network.transport import Transport
from kclient.record.open_files import SharedFile


class RecordSlice:
    """`len(self)` bytes of a segment's file from `position` on. Costs no memory and no descriptor while it waits.

    The file stays until the last slice of it is gone, whatever becomes of its name. Immutable. Methods raise OSError.
    """

    __slots__ = ("__weakref__", "_file", "_position", "_size", "first_batch_size")

    def __init__(self, file: SharedFile, position: int, size: int, first_batch_size: int) -> None:
        self._file = file
        self._position = position
        self._size = size
        self.first_batch_size = first_batch_size
        """Bytes that the first batch would have, were it whole."""
        file.add_reader(self)

    def __len__(self) -> int:
        return self._size

    def read(self) -> bytes:
        """All of the bytes."""
        with self._file as fd:
            return os.pread(fd, self._size, self._position)

    def write_to(self, transport: Transport, start: int) -> int:
        """Write what `transport` takes now of the bytes from `start` on; returns how many that was."""
        with self._file as fd:
            return transport.send_file(fd, self._position + start, self._size - start)
