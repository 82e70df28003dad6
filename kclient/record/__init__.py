"""Records and record batches: in memory, in files, of every magic; shared by client and broker.

Importing this package installs codecs, old formats and Kafka's errors in `kclient._accel`; whoever takes the hot path's
types from here has them complete.
"""

from __future__ import annotations

import typing

from kclient._accel import BatchBuilder, BatchResult, RecordReader, end_of_batches
from kclient.record.install_hooks import install_hooks
from kclient.record.record import Record, TimestampType, increment_sequence
from kclient.utils import lazy

if typing.TYPE_CHECKING:
    from kclient.record.batch import RecordBatch
    from kclient.record.builder import MemoryRecordsBuilder
    from kclient.record.control import ControlRecordType, EndTransactionMarker
    from kclient.record.file_records import FileRecords, FoundOffset, FoundTimestamp
    from kclient.record.legacy import LegacyBatch
    from kclient.record.memory_records import Batch, BatchHeader, batch_headers, iter_batches
else:
    # A client has the hot path's types alone.
    __getattr__, __dir__ = lazy.names(
        __name__,
        {
            "kclient.record.batch": ("RecordBatch",),
            "kclient.record.builder": ("MemoryRecordsBuilder",),
            "kclient.record.control": ("ControlRecordType", "EndTransactionMarker"),
            "kclient.record.file_records": ("FileRecords", "FoundOffset", "FoundTimestamp"),
            "kclient.record.legacy": ("LegacyBatch",),
            "kclient.record.memory_records": ("Batch", "BatchHeader", "batch_headers", "iter_batches"),
        },
    )

install_hooks()

__all__ = [
    "Batch",
    "BatchBuilder",
    "BatchHeader",
    "BatchResult",
    "ControlRecordType",
    "EndTransactionMarker",
    "FileRecords",
    "FoundOffset",
    "FoundTimestamp",
    "LegacyBatch",
    "MemoryRecordsBuilder",
    "Record",
    "RecordBatch",
    "RecordReader",
    "TimestampType",
    "batch_headers",
    "end_of_batches",
    "increment_sequence",
    "iter_batches",
]
