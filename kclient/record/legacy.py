"""Magic 0 and 1: every record is a message of its own, and a compressed one holds others.

Read for old data, written for tests and for topics that old clients read. There is no producer state, and only the
producer's or the broker's word on time (magic 1).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator

from kclient.compress import CompressionType, decompress
from kclient.errors import CorruptRecordError, InvalidRecordError
from kclient.record import constants as c
from kclient.record.record import Record, TimestampType

_OFFSET_AND_SIZE = struct.Struct(">qi")
_I32 = struct.Struct(">i")
_I64 = struct.Struct(">q")
_CRC_AT = 12
_MAGIC_AT = 16
_ATTRIBUTES_AT = 17
_TIMESTAMP_AT = 18
_KEY_SIZE_AT = {c.MAGIC_0: 18, c.MAGIC_1: 26}
_WRAPPING_CODECS = (CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4)


class LegacyBatch:
    """A message of magic 0 or 1 over `view`, which begins with it and may go on after it.

    The outer offset of a compressed message is that of its last record. Nothing is copied and nothing written; as
    safe to share between threads as the bytes are. The constructor raises CorruptRecordError if there is no room.
    """

    __slots__ = ("view",)

    producer_id = c.NO_PRODUCER_ID
    producer_epoch = c.NO_PRODUCER_EPOCH
    base_sequence = c.NO_SEQUENCE
    last_sequence = c.NO_SEQUENCE
    is_transactional = False
    is_control = False
    partition_leader_epoch = c.NO_LEADER_EPOCH
    delete_horizon_ms = None
    count = None

    def __init__(self, view: memoryview) -> None:
        if len(view) < c.HEADER_UP_TO_MAGIC:
            raise CorruptRecordError(f"{len(view)} bytes are too few for a message.")
        size = c.LOG_OVERHEAD + _I32.unpack_from(view, c.LENGTH_AT)[0]
        if not c.LOG_OVERHEAD + c.SMALLEST_LENGTH <= size <= len(view):
            raise CorruptRecordError(
                f"A message says that it has {size} bytes, which cannot be: there are {len(view)}."
            )
        self.view = view[:size]

    @property
    def magic(self) -> int:
        """0 or 1."""
        return self.view[_MAGIC_AT]

    @property
    def size_in_bytes(self) -> int:
        """Size of the whole message."""
        return len(self.view)

    @property
    def checksum(self) -> int:
        """The CRC-32 that the message carries."""
        return int.from_bytes(self.view[_CRC_AT:_MAGIC_AT], "big")

    @property
    def is_valid(self) -> bool:
        """True if the checksum is that of the bytes."""
        return self.checksum == zlib.crc32(self.view[_MAGIC_AT:])

    @property
    def attributes(self) -> int:
        """The attribute bits."""
        return self.view[_ATTRIBUTES_AT]

    @property
    def compression_type(self) -> CompressionType:
        """The codec. Raises UnsupportedCompressionTypeError for an unknown one."""
        return CompressionType.for_id(self.attributes & c.CODEC_MASK)

    @property
    def timestamp_type(self) -> TimestampType:
        """The type of the timestamps: NO_TIMESTAMP_TYPE in magic 0, which has none."""
        if self.magic == c.MAGIC_0:
            return TimestampType.NO_TIMESTAMP_TYPE
        return TimestampType(self.attributes >> 3 & 1)

    @property
    def max_timestamp_ms(self) -> int:
        """The message's timestamp, -1 in magic 0."""
        if self.magic == c.MAGIC_0:
            return c.NO_TIMESTAMP
        return self._timestamp()

    @property
    def base_offset(self) -> int:
        """Offset of the first record, for which a compressed message has to be decompressed."""
        if self.compression_type is CompressionType.NONE:
            return self.last_offset
        return next(iter(self._inner(c.DEFAULT_DECOMPRESS_MAX_BYTES)))[0]

    @property
    def last_offset(self) -> int:
        """Offset of the last record."""
        offset: int = _I64.unpack_from(self.view, 0)[0]
        return offset

    @property
    def next_offset(self) -> int:
        """The offset after the last."""
        return self.last_offset + 1

    def ensure_valid(self) -> None:
        """Raise CorruptRecordError unless the checksum is right."""
        if not self.is_valid:
            raise CorruptRecordError(f"The message at offset {self.last_offset} does not match its checksum.")

    def records(
        self, max_bytes: int = c.DEFAULT_DECOMPRESS_MAX_BYTES, check_crc: bool = False
    ) -> Iterator[Record]:
        """The records, decompressed to at most `max_bytes`; `check_crc` looks at the checksums of inner messages.

        Raises InvalidRecordError for malformed messages and DecompressionError for damage of the compression.
        """
        if self.compression_type is CompressionType.NONE:
            yield self.as_record(self.last_offset, self.timestamp_type, self.max_timestamp_ms)
            return
        for offset, message in self._inner(max_bytes):
            if message.attributes & c.CODEC_MASK:
                raise InvalidRecordError(
                    f"The message at offset {offset} is compressed, inside a compressed one."
                )
            if check_crc:
                message.ensure_valid()
            if self.timestamp_type is TimestampType.LOG_APPEND_TIME:
                timestamp = self.max_timestamp_ms
            else:
                timestamp = message.max_timestamp_ms
            yield message.as_record(offset, self.timestamp_type, timestamp)

    def _timestamp(self) -> int:
        if len(self.view) < _TIMESTAMP_AT + _I64.size:
            raise InvalidRecordError(
                f"The message at offset {self.last_offset} has no room for its timestamp."
            )
        timestamp: int = _I64.unpack_from(self.view, _TIMESTAMP_AT)[0]
        return timestamp

    def _fields(self) -> tuple[memoryview | None, memoryview | None]:
        """Key and value."""
        key, at = self._sized(_KEY_SIZE_AT[self.magic])
        value, _ = self._sized(at)
        return key, value

    def _sized(self, at: int) -> tuple[memoryview | None, int]:
        view = self.view
        if len(view) - at < _I32.size:
            raise InvalidRecordError(
                f"The message at offset {self.last_offset} is too short for its key and value."
            )
        size = _I32.unpack_from(view, at)[0]
        at += _I32.size
        if size < 0:
            return None, at
        if size > len(view) - at:
            raise InvalidRecordError(
                f"The message at offset {self.last_offset} is too short for its key and value."
            )
        return view[at : at + size], at + size

    def as_record(self, offset: int, kind: TimestampType, timestamp_ms: int) -> Record:
        """The message's own key and value with this offset and time."""
        key, value = self._fields()
        return Record(
            offset,
            timestamp_ms,
            kind,
            None if key is None else bytes(key),
            None if value is None else bytes(value),
            (),
            c.NO_SEQUENCE,
            self.size_in_bytes,
        )

    def _inner(self, max_bytes: int) -> list[tuple[int, LegacyBatch]]:
        """The messages inside a compressed one, with their absolute offsets. Never empty."""
        where = f"The compressed message at offset {self.last_offset}"
        codec = self.compression_type
        if codec not in _WRAPPING_CODECS:
            raise InvalidRecordError(f"{where} uses {codec.label}, which its format does not know.")
        _, payload = self._fields()
        if payload is None:
            raise InvalidRecordError(f"{where} has no value.")
        data = memoryview(decompress(codec, payload, max_bytes, self.magic))
        found: list[tuple[int, LegacyBatch]] = []
        pos = 0
        while len(data) - pos >= _OFFSET_AND_SIZE.size:
            offset, size = _OFFSET_AND_SIZE.unpack_from(data, pos)
            if size < c.SMALLEST_LENGTH:
                raise CorruptRecordError(f"{where} holds one of {size} bytes.")
            if len(data) - pos - c.LOG_OVERHEAD < size:
                break
            message = LegacyBatch(data[pos:])
            if message.magic != self.magic:
                raise InvalidRecordError(f"{where} holds one of magic {message.magic}.")
            found.append((offset, message))
            pos += message.size_in_bytes
        if not found:
            raise InvalidRecordError(f"{where} holds no others.")
        return found if self.magic == c.MAGIC_0 else self._absolute(found, where)

    def _absolute(self, found: list[tuple[int, LegacyBatch]], where: str) -> list[tuple[int, LegacyBatch]]:
        """Magic 1 counts from the beginning of the compressed message; the outer offset says where that is."""
        last_inner = found[-1][0]
        # Some versions of librdkafka leave the outer offset at 0.
        base = 0 if self.last_offset == 0 else self.last_offset - last_inner
        if base < 0:
            raise InvalidRecordError(f"{where} holds offsets up to {last_inner}, beyond its own.")
        return [(base + offset, message) for offset, message in found]

    def __repr__(self) -> str:
        return f"LegacyBatch(magic {self.magic}, offset {self.last_offset}, {self.size_in_bytes} bytes)"


def message(
    magic: int,
    offset: int,
    timestamp_ms: int,
    key: bytes | None,
    value: bytes | None,
    codec: CompressionType = CompressionType.NONE,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
) -> bytes:
    """The bytes of one message; `value` is compressed already if `codec` says so. Magic 0 leaves the time out."""
    attributes = int(codec)
    parts = [b""]
    if magic != c.MAGIC_0:
        if timestamp_type is TimestampType.LOG_APPEND_TIME:
            attributes |= c.LOG_APPEND_TIME_BIT
        parts.append(_I64.pack(timestamp_ms))
    for field in (key, value):
        parts += (_I32.pack(-1),) if field is None else (_I32.pack(len(field)), field)
    parts[0] = bytes((magic, attributes))
    body = b"".join(parts)
    return _OFFSET_AND_SIZE.pack(offset, len(body) + 4) + zlib.crc32(body).to_bytes(4, "big") + body
