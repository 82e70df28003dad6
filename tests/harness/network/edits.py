"""Changes to the answers of a real broker, on their way through a proxy."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from typing import Any

from harness.network.proxy import Editing
from kclient._accel import crc32c
from kclient.errors import ErrorCode
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.api_versions import ApiVersionsResponse
from kclient.protocol.messages.fetch import FetchResponse, PartitionData
from kclient.protocol.messages.metadata import MetadataResponse
from kclient.protocol.messages.offset_commit import OffsetCommitResponse

# Where a batch has what (magic 2).
_LENGTH_AT, _EPOCH_AT, _CHECKSUM_AT, _ATTRIBUTES_AT, _COUNT_AT, _RECORDS_AT = 8, 12, 17, 21, 57, 61
Spoiling = Callable[[bytearray], bytes | None]
"""Gets a batch from its base offset on; returns another one, or None if this one cannot be spoilt so."""
_GZIP = 1
BOMB_MB = 8
_OLDER: Mapping[ApiKeys, int] = {
    ApiKeys.PRODUCE: 9,
    ApiKeys.FETCH: 11,
    ApiKeys.LIST_OFFSETS: 5,
    ApiKeys.FIND_COORDINATOR: 3,
    ApiKeys.JOIN_GROUP: 6,
    ApiKeys.SYNC_GROUP: 4,
    ApiKeys.HEARTBEAT: 3,
    ApiKeys.OFFSET_COMMIT: 9,
    ApiKeys.INIT_PRODUCER_ID: 3,
}
"""The last versions of a broker of some years ago, where members of the consumer protocol can do without newer ones."""


def older_versions(message: ApiVersionsResponse) -> ApiVersionsResponse:
    """Tell older versions than the broker has."""
    for each in message.api_keys:
        each.max_version = min(each.max_version, _OLDER.get(each.api_key, each.max_version))  # type: ignore[call-overload]
    return message


def wrong_address(port: int) -> Editing:
    """Say that the brokers are at another port."""

    def edit(message: MetadataResponse) -> MetadataResponse | None:
        for broker in message.brokers:
            broker.port = port
        return message if message.brokers else None

    return edit


def without_brokers(message: MetadataResponse) -> MetadataResponse | None:
    """Say that there are no brokers."""
    message.brokers = []
    return message if message.topics else None


def without_leaders(message: MetadataResponse) -> MetadataResponse | None:
    """Say that no partition has a leader."""
    for topic in message.topics:
        for partition in topic.partitions:
            partition.leader_id, partition.error_code = -1, int(ErrorCode.LEADER_NOT_AVAILABLE)
    return message if message.topics else None


def without_partitions(message: MetadataResponse) -> MetadataResponse | None:
    """Say that topics have no partitions."""
    for topic in message.topics:
        topic.partitions = []
    return message if message.topics else None


def without_topics(message: MetadataResponse) -> MetadataResponse | None:
    """Say that the topics that were asked for are not known."""
    for topic in message.topics:
        topic.partitions, topic.error_code = [], int(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return message if message.topics else None


def refused(code: int) -> Editing:
    """Say that what was done was refused, of one partition of a fetch, or of all that was asked for."""

    def edit(message: Any) -> Any:
        if isinstance(message, FetchResponse):
            data = _with_records(message)
            if data is None:
                return None
            data.error_code, data.records = code, None
        elif isinstance(message, OffsetCommitResponse):
            for topic in message.topics:
                for partition in topic.partitions:
                    partition.error_code = code
            return message if message.topics else None
        else:
            message.error_code = code
        return message

    return edit


def session_refused(code: int) -> Editing:
    """Say that the session of a fetch is not as the client says."""

    def edit(message: FetchResponse) -> FetchResponse:
        return FetchResponse(error_code=code)

    return edit


def spoilt_batch(spoil: Spoiling) -> Editing:
    """Change the first batch of a fetch that has one."""

    def edit(message: FetchResponse) -> FetchResponse | None:
        data = _with_records(message)
        if data is None or data.records is None:
            return None
        records = bytes(data.records)
        end = _LENGTH_AT + 4 + int.from_bytes(records[_LENGTH_AT:_EPOCH_AT], "big")
        spoilt = spoil(bytearray(records[:end]))
        if spoilt is None:
            return None
        data.records = spoilt + records[end:]
        return message

    return edit


def damaged(batch: bytearray) -> bytes:
    """Turn round the bits of a batch's last byte."""
    batch[-1] ^= 0xFF
    return bytes(batch)


def of_codec(codec: int) -> Spoiling:
    """Say that a batch is compressed by a codec, which it is not."""

    def spoil(batch: bytearray) -> bytes:
        batch[_ATTRIBUTES_AT + 1] |= codec
        return _checked(batch)

    return spoil


def bomb(batch: bytearray) -> bytes:
    """Put BOMB_MB of zeros, compressed, in place of a batch's records."""
    packer = zlib.compressobj(wbits=31)
    packed = packer.compress(bytes(BOMB_MB << 20)) + packer.flush()
    batch[_ATTRIBUTES_AT + 1] |= _GZIP
    whole = batch[:_RECORDS_AT] + packed
    whole[_LENGTH_AT:_EPOCH_AT] = (len(whole) - _EPOCH_AT).to_bytes(4, "big")
    return _checked(whole)


def of_count(more: int) -> Spoiling:
    """Say that a batch has other records than it has, so many more."""

    def spoil(batch: bytearray) -> bytes | None:
        count = int.from_bytes(batch[_COUNT_AT:_RECORDS_AT], "big") + more
        if count < 1:
            return None  # one without records says that they were compacted away
        batch[_COUNT_AT:_RECORDS_AT] = count.to_bytes(4, "big", signed=True)
        return _checked(batch)

    return spoil


def of_length(length: int) -> Spoiling:
    """Say that a batch has another length."""

    def spoil(batch: bytearray) -> bytes:
        batch[_LENGTH_AT:_EPOCH_AT] = length.to_bytes(4, "big", signed=True)
        return bytes(batch)

    return spoil


def _with_records(message: FetchResponse) -> PartitionData | None:
    """Return the first partition of a fetch that has records."""
    return next((data for topic in message.responses for data in topic.partitions if data.records), None)


def _checked(batch: bytearray) -> bytes:
    """Put a batch's checksum right."""
    batch[_CHECKSUM_AT:_ATTRIBUTES_AT] = crc32c(batch[_ATTRIBUTES_AT:]).to_bytes(4, "big")
    return bytes(batch)
