"""Metadata records as the values of a log's records.

Before each message stand three unsigned varints: the version of this frame, the number of the record's type, the
message's version. Kafka's MetadataRecordSerde has the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from kclient.errors import SchemaError, UnsupportedVersionError
from kclient.protocol.codec import append, decode
from kclient.protocol.messages.metadata_records import (
    RECORD_TYPES,
    BrokerRegistrationChangeRecord,
    NoOpRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)
from kclient.protocol.schema import Message
from kclient.protocol.wire import read_unsigned_varint, unsigned_varint

METADATA_VERSION = 25
"""The level of `metadata.version` (4.0-IV3) that the versions of the records below belong to."""

_WRITTEN: Mapping[type[Message], int] = MappingProxyType(
    {
        RegisterBrokerRecord: 3,
        BrokerRegistrationChangeRecord: 2,
        PartitionRecord: 1,
        PartitionChangeRecord: 1,
    }
)
"""The versions that are written, where they are not 0."""

_IGNORED = frozenset({10, 21, 26})
"""Records of Kafka's controllers that are nothing to this broker: delegation tokens, the migration from ZooKeeper."""

_FRAME_VERSION = 1
_FRAMES: Mapping[type[Message], bytes] = MappingProxyType(
    {
        record: b"".join(map(unsigned_varint, (_FRAME_VERSION, number, _WRITTEN.get(record, 0))))
        for number, record in RECORD_TYPES.items()
    }
)


def encode_record(record: Message) -> bytes:
    """The value of a metadata record, in the version that this broker writes. Raises as `codec.append` does."""
    kind = type(record)
    out = bytearray(_FRAMES[kind])
    append(record, _WRITTEN.get(kind, 0), out)
    return bytes(out)


def decode_record(value: bytes | None) -> Message:
    """The metadata record in a value.

    Raises UnsupportedVersionError, naming it, for a frame, a record or a version that is not known, and SchemaError
    for what is no record.
    """
    if value is None:
        raise SchemaError("A metadata record has no value")
    try:
        frame, pos = read_unsigned_varint(value, 0)
        if frame != _FRAME_VERSION:
            raise UnsupportedVersionError(f"Metadata record with frame version {frame} is not known")
        number, pos = read_unsigned_varint(value, pos)
        version, pos = read_unsigned_varint(value, pos)
    except IndexError as error:
        raise SchemaError("A metadata record is cut off in its frame") from error
    if number in _IGNORED:
        return NoOpRecord()
    kind = RECORD_TYPES.get(number)
    if kind is None:
        raise UnsupportedVersionError(f"Metadata record of type {number} is not known")
    if not kind.MIN_VERSION <= version <= kind.MAX_VERSION:
        raise UnsupportedVersionError(f"{kind.__name__} of version {version} is not known")
    return decode(kind, version, value, pos)
