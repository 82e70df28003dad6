"""Errors that never cross the wire: the client finds them by itself."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from kclient.errors.base import InvalidMetadataError, KafkaError, RetriableError
from kclient.errors.broker import InvalidOffsetError, KafkaTimeoutError, OffsetOutOfRangeError

if TYPE_CHECKING:
    from kclient.common.topic_partition import TopicPartition


__all__ = [
    "AdminError",
    "BootstrapError",
    "BufferExhaustedError",
    "ClientClosedError",
    "CommitFailedError",
    "ConcurrentModificationError",
    "ConfigError",
    "CorrelationIdMismatchError",
    "DisconnectError",
    "ForkedClientError",
    "IllegalStateError",
    "InterruptError",
    "InvalidReceiveError",
    "LogTruncationError",
    "NoOffsetForPartitionError",
    "ProxyError",
    "RecordDeserializationError",
    "RetriableCommitFailedError",
    "SchemaError",
    "SerializationError",
    "StaleMetadataError",
    "WakeupError",
]


class ConfigError(KafkaError, ValueError):
    """A setting is unknown, has a wrong value, or does not go with another one. `name` is its dotted name.

    The message never holds the value of a password. Also a builtin `ValueError`.
    """

    name: str | None = None
    default_message = "The configuration is not valid."


class IllegalStateError(KafkaError, RuntimeError):
    """The call does not fit the state of the object. Also a builtin `RuntimeError`."""

    default_message = "This cannot be done in the present state."


class ClientClosedError(IllegalStateError):
    default_message = "The client is closed; create a new one."


class ForkedClientError(IllegalStateError):
    default_message = "The client was created in the parent process; create a new one after os.fork()."


class ConcurrentModificationError(IllegalStateError):
    default_message = (
        "The consumer is in use by another thread; only wakeup() may be called from outside the thread that "
        "polls."
    )


class InterruptError(KafkaError):
    default_message = "The thread was interrupted while it waited for Kafka."


class WakeupError(KafkaError):
    default_message = "The waiting call was ended by wakeup()."


class SchemaError(KafkaError):
    """Bytes do not follow the protocol: cut off, too long, or with sizes that cannot be."""

    default_message = "The bytes do not match the protocol's schema."


class SerializationError(KafkaError):
    default_message = "A key or value could not be turned into or out of bytes."


class RecordDeserializationError(SerializationError):
    """A fetched record's key or value (`which`) cannot be deserialized; `seek()` past `offset` to skip it.

    `key` and `value` are the record's raw bytes and `headers` its headers, for a dead letter queue (KIP-334,
    KIP-1036).
    """

    topic_partition: TopicPartition | None = None
    offset: int = -1
    which: Literal["key", "value"] = "value"
    key: bytes | None = None
    value: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int = -1
    timestamp_type: int = -1
    default_message = "A record could not be deserialized; seek past its offset to leave it out."

    def __str__(self) -> str:
        cause = self.__cause__
        text = super().__str__()
        return text if cause is None else f"{text} The reason: {type(cause).__name__}: {cause}"


class BufferExhaustedError(KafkaTimeoutError):
    default_message = (
        "buffer.memory stayed full for max.block.ms: records come faster than the brokers take them."
    )


class DisconnectError(RetriableError):
    default_message = "The connection was closed while a request was on its way."


class ProxyError(DisconnectError):
    default_message = "The proxy did not connect to the broker; see kclient.proxy.url."


class StaleMetadataError(InvalidMetadataError):
    default_message = "The metadata changed while it was used; refresh it and try again."


class CorrelationIdMismatchError(KafkaError):
    """`expected` and `actual` are the correlation ids of the request and of the answer."""

    expected: int = -1
    actual: int = -1
    default_message = (
        "The broker's answer belongs to another request; the connection cannot be used any more."
    )


class InvalidReceiveError(KafkaError):
    """A frame was announced with `size` bytes, where `limit` are allowed."""

    size: int = -1
    limit: int = -1
    default_message = "The peer announced a message of an impossible size; is this a Kafka port without TLS?"


class BootstrapError(KafkaTimeoutError):
    """A broker cannot be reached, of bootstrap.servers or another one. `connection` says how far it came."""

    default_message = (
        "None of the bootstrap.servers could be reached; check the addresses and that a broker runs."
    )


class CommitFailedError(KafkaError):
    default_message = (
        "The group has given this consumer's partitions to others, so its offsets cannot be committed: the "
        "time between two calls of poll() was longer than max.poll.interval.ms. Raise it, or lower "
        "max.poll.records."
    )


class RetriableCommitFailedError(RetriableError):
    default_message = "The offsets could not be committed for now; commit again."


class NoOffsetForPartitionError(InvalidOffsetError):
    """Partitions have no committed offset, and auto.offset.reset is none. `topic_partitions` names them."""

    topic_partitions: frozenset[TopicPartition] = frozenset()
    default_message = "No offset is committed for the partition; seek to one or set auto.offset.reset."


class LogTruncationError(OffsetOutOfRangeError):
    """The log was truncated below the position: records already read are gone (KIP-320).

    `divergent_offsets` holds, per partition, the first offset at which the log differs from what was read,
    or -1 where it is not known.
    """

    divergent_offsets: Mapping[TopicPartition, int] = MappingProxyType({})
    default_message = "The log was truncated below the consumer's position; seek to an offset to go on."


class AdminError(KafkaError):
    """Some keys of an admin request failed.

    `results` holds what went well, `errors` the error of each other key.
    """

    results: Mapping[Any, Any] = MappingProxyType({})
    errors: Mapping[Any, KafkaError] = MappingProxyType({})
    default_message = "Part of the request failed."
