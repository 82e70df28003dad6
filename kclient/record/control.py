"""Control records: the markers that end transactions, and those of the metadata log."""

from __future__ import annotations

import struct
from enum import IntEnum

import attrs

from kclient.errors import InvalidRecordError
from kclient.record.builder import MemoryRecordsBuilder
from kclient.record.record import Record

_KEY = struct.Struct(">hh")
_END_TXN_VALUE = struct.Struct(">hi")
_VERSION = 0


class ControlRecordType(IntEnum):
    """The type of a control record; UNKNOWN stands for types that are newer than this client."""

    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


def parse_type_id(key: bytes | None) -> int:
    """The number of the type in a control record's key. Raises InvalidRecordError if there is none."""
    if key is None or len(key) < _KEY.size:
        raise InvalidRecordError("The key of a control record is too short for its version and type.")
    version, type_id = _KEY.unpack_from(key)
    if version < _VERSION:
        raise InvalidRecordError(f"The key of a control record has version {version}.")
    number: int = type_id
    return number


def parse_type(key: bytes | None) -> ControlRecordType:
    """The type in a control record's key. Raises InvalidRecordError if there is none."""
    number = parse_type_id(key)
    try:
        return ControlRecordType(number)
    except ValueError:
        return ControlRecordType.UNKNOWN


@attrs.frozen
class EndTransactionMarker:
    """The end of a transaction, ABORT or COMMIT, and the epoch of the coordinator that ended it."""

    type: ControlRecordType
    coordinator_epoch: int

    @classmethod
    def parse(cls, record: Record) -> EndTransactionMarker:
        """The marker in a control record. Raises InvalidRecordError if it is none."""
        kind = parse_type(record.key)
        if kind not in (ControlRecordType.ABORT, ControlRecordType.COMMIT):
            raise InvalidRecordError(f"A control record of type {kind.name} does not end a transaction.")
        if record.value is None or len(record.value) < _END_TXN_VALUE.size:
            raise InvalidRecordError("The value of a transaction marker is too short.")
        version, epoch = _END_TXN_VALUE.unpack_from(record.value)
        if version < _VERSION:
            raise InvalidRecordError(f"The value of a transaction marker has version {version}.")
        return cls(kind, epoch)

    def batch(
        self,
        base_offset: int,
        timestamp_ms: int,
        partition_leader_epoch: int,
        producer_id: int,
        producer_epoch: int,
    ) -> bytes:
        """The batch of one record that is written to each partition of the transaction."""
        builder = MemoryRecordsBuilder(
            base_offset=base_offset,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            is_transactional=True,
            is_control=True,
            partition_leader_epoch=partition_leader_epoch,
        )
        key = _KEY.pack(_VERSION, self.type)
        builder.append(timestamp_ms, key, _END_TXN_VALUE.pack(_VERSION, self.coordinator_epoch))
        return builder.close()
