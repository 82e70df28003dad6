"""Errors about topics, partitions, logs and requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING

from kclient.errors.base import (
    ApiError,
    InvalidConfigurationError,
    InvalidMetadataError,
    KafkaError,
    RetriableError,
)

if TYPE_CHECKING:
    from kclient.common.topic_partition import TopicPartition


__all__ = [
    "BrokerNotAvailableError",
    "CorruptRecordError",
    "DuplicateResourceError",
    "ElectionNotNeededError",
    "EligibleLeadersNotAvailableError",
    "FencedLeaderEpochError",
    "FetchSessionIdNotFoundError",
    "FetchSessionTopicIdError",
    "InconsistentTopicIdError",
    "IneligibleReplicaError",
    "InvalidFetchSessionEpochError",
    "InvalidFetchSizeError",
    "InvalidOffsetError",
    "InvalidPartitionsError",
    "InvalidRecordError",
    "InvalidReplicaAssignmentError",
    "InvalidReplicationFactorError",
    "InvalidRequestError",
    "InvalidRequiredAcksError",
    "InvalidTimestampError",
    "InvalidTopicError",
    "KafkaStorageError",
    "KafkaTimeoutError",
    "LeaderNotAvailableError",
    "ListenerNotFoundError",
    "LogDirNotFoundError",
    "NetworkError",
    "NewLeaderElectedError",
    "NoReassignmentInProgressError",
    "NotEnoughReplicasAfterAppendError",
    "NotEnoughReplicasError",
    "NotLeaderOrFollowerError",
    "OffsetMovedToTieredStorageError",
    "OffsetNotAvailableError",
    "OffsetOutOfRangeError",
    "PolicyViolationError",
    "PositionOutOfRangeError",
    "PreferredLeaderNotAvailableError",
    "ReassignmentInProgressError",
    "RecordBatchTooLargeError",
    "RecordTooLargeError",
    "ReplicaNotAvailableError",
    "ResourceNotFoundError",
    "SnapshotNotFoundError",
    "ThrottlingQuotaExceededError",
    "TopicDeletionDisabledError",
    "TopicExistsError",
    "UnknownLeaderEpochError",
    "UnknownServerError",
    "UnknownTopicIdError",
    "UnknownTopicOrPartitionError",
    "UnsupportedCompressionTypeError",
    "UnsupportedForMessageFormatError",
    "UnsupportedVersionError",
]


class UnknownServerError(ApiError, code=-1):
    """The broker failed in a way it has no code for, or answered with a code this client does not know.

    In the second case the instance's `code` is the number as it was received.
    """

    code: int | None
    default_message = "The broker met an unexpected error; its log says what happened."


class InvalidOffsetError(ApiError):
    """A position cannot be used; `offsets` says which, per partition, where that is known."""

    offsets: Mapping[TopicPartition, int] = MappingProxyType({})
    default_message = "The offset cannot be used for this partition."


class OffsetOutOfRangeError(InvalidOffsetError, code=1):
    default_message = (
        "The offset lies outside what the partition still holds; seek to a valid offset or set "
        "auto.offset.reset."
    )


class CorruptRecordError(RetriableError, code=2):
    default_message = "The records do not match their checksum or are malformed."


class UnknownTopicOrPartitionError(InvalidMetadataError, code=3):
    default_message = (
        "The broker does not host this topic or partition; create the topic or correct its name."
    )


class InvalidFetchSizeError(ApiError, code=4):
    default_message = "The requested fetch size is not valid; set fetch.max.bytes to a positive number."


class LeaderNotAvailableError(InvalidMetadataError, code=5):
    default_message = "The partition has no leader at the moment; an election is probably under way."


class NotLeaderOrFollowerError(InvalidMetadataError, code=6):
    default_message = "The broker asked is no longer the leader or a replica of the partition."


class KafkaTimeoutError(RetriableError, TimeoutError, code=7):
    """Something did not finish in time. Also a builtin `TimeoutError`."""

    default_message = "The operation did not finish within its timeout."


class BrokerNotAvailableError(ApiError, code=8):
    default_message = "The broker is not available; check that it runs and can be reached."


class ReplicaNotAvailableError(InvalidMetadataError, code=9):
    default_message = "The replica is not available on the broker asked."


class RecordTooLargeError(ApiError, code=10):
    """A record or a batch is larger than a limit allows.

    `sizes` holds the size in bytes per partition where the consumer found a record that it cannot fetch.
    """

    sizes: Mapping[TopicPartition, int] = MappingProxyType({})
    default_message = (
        "The record is larger than the limit; see max.request.size of the producer and max.message.bytes of "
        "the topic."
    )


class NetworkError(InvalidMetadataError, code=13):
    default_message = "The connection to the broker was lost before the answer came."


class InvalidTopicError(InvalidConfigurationError, code=17):
    """`topics` names the refused topics where that is known."""

    topics: frozenset[str] = frozenset()
    default_message = (
        "The topic name is not valid; use 1 to 249 of the letters a-z, A-Z, digits, '.', '_' and '-', not "
        "'.' or '..'."
    )


class RecordBatchTooLargeError(InvalidConfigurationError, code=18):
    default_message = (
        "The batch is larger than a segment of the log; lower batch.size or raise segment.bytes."
    )


class NotEnoughReplicasError(RetriableError, code=19):
    default_message = "Fewer replicas are in sync than min.insync.replicas asks for; nothing was written."


class NotEnoughReplicasAfterAppendError(RetriableError, code=20):
    default_message = (
        "The records were written, but to fewer in-sync replicas than min.insync.replicas asks for."
    )


class InvalidRequiredAcksError(InvalidConfigurationError, code=21):
    default_message = "The broker refuses this number of acknowledgements; set acks to 0, 1 or all."


class InvalidTimestampError(ApiError, code=32):
    """`record_errors` names the records at fault: pairs of index in the batch and message."""

    record_errors: Sequence[tuple[int, str]] = ()
    default_message = (
        "The timestamp is further from the broker's clock than the topic's message.timestamp limits allow."
    )


class UnsupportedVersionError(InvalidConfigurationError, code=35):
    default_message = (
        "The broker does not support the version of the request; it may be too old for this feature."
    )


class TopicExistsError(ApiError, code=36):
    default_message = "A topic of this name exists already."


class InvalidPartitionsError(ApiError, code=37):
    default_message = "The number of partitions is not valid; it must be positive and can only grow."


class InvalidReplicationFactorError(InvalidConfigurationError, code=38):
    default_message = (
        "The replication factor must be positive and no larger than the number of available brokers."
    )


class InvalidReplicaAssignmentError(ApiError, code=39):
    default_message = (
        "The assignment of replicas is not valid; name existing brokers, the same number everywhere."
    )


class InvalidRequestError(ApiError, code=42):
    default_message = "The broker finds the request malformed or against the protocol; its log says why."


class UnsupportedForMessageFormatError(InvalidConfigurationError, code=43):
    default_message = "The record format of the topic on this broker is too old for the operation."


class PolicyViolationError(ApiError, code=44):
    default_message = "The request breaks a policy that the cluster's operators configured."


class KafkaStorageError(InvalidMetadataError, code=56):
    default_message = "The broker cannot read or write the partition's files; another replica will take over."


class LogDirNotFoundError(ApiError, code=57):
    default_message = "The broker has no log directory of this path."


class ReassignmentInProgressError(ApiError, code=60):
    default_message = "The partition is being reassigned; wait for that to end or cancel it."


class FetchSessionIdNotFoundError(RetriableError, code=70):
    default_message = "The broker no longer knows the fetch session; the next fetch starts a new one."


class InvalidFetchSessionEpochError(RetriableError, code=71):
    default_message = "The epoch of the fetch session is out of step; the next fetch starts a new one."


class ListenerNotFoundError(InvalidMetadataError, code=72):
    default_message = "The partition's leader has no listener like the one the client is connected to."


class TopicDeletionDisabledError(ApiError, code=73):
    default_message = "The brokers do not allow topics to be deleted; see delete.topic.enable."


class FencedLeaderEpochError(InvalidMetadataError, code=74):
    default_message = (
        "The client's leader epoch is older than the broker's; the partition has a newer leader."
    )


class UnknownLeaderEpochError(RetriableError, code=75):
    default_message = "The client's leader epoch is newer than the broker's, which has to catch up first."


class UnsupportedCompressionTypeError(ApiError, code=76):
    default_message = "The broker does not support this compression type; choose another compression.type."


class OffsetNotAvailableError(RetriableError, code=78):
    default_message = "The new leader does not know its high watermark yet."


class PreferredLeaderNotAvailableError(InvalidMetadataError, code=80):
    default_message = "The preferred leader is not available, so it cannot be elected."


class EligibleLeadersNotAvailableError(InvalidMetadataError, code=83):
    default_message = "No replica that may become leader is available."


class ElectionNotNeededError(InvalidMetadataError, code=84):
    default_message = "The partition has the wanted leader already; no election is needed."


class NoReassignmentInProgressError(ApiError, code=85):
    default_message = "The partition is not being reassigned."


class InvalidRecordError(InvalidConfigurationError, code=87):
    """`record_errors` names the records at fault: pairs of index in the batch and message."""

    record_errors: Sequence[tuple[int, str]] = ()
    default_message = "The broker's checks refuse the record; a compacted topic, for example, needs a key."


class ThrottlingQuotaExceededError(RetriableError, code=89):
    """`throttle_time_ms` says how long the broker asks to wait."""

    throttle_time_ms: int = 0
    default_message = "The quota of controller mutations is used up; wait and try again."


class ResourceNotFoundError(ApiError, code=91):
    default_message = "The resource does not exist."


class DuplicateResourceError(ApiError, code=92):
    default_message = "The request names the same resource more than once."


class SnapshotNotFoundError(ApiError, code=98):
    default_message = "The requested snapshot does not exist."


class PositionOutOfRangeError(ApiError, code=99):
    default_message = "The requested position is not within the snapshot."


class UnknownTopicIdError(InvalidMetadataError, code=100):
    default_message = "The broker knows no topic of this id; it may have been deleted or created anew."


class InconsistentTopicIdError(InvalidMetadataError, code=103):
    default_message = "The topic id in the log differs from the one in the request."


class FetchSessionTopicIdError(RetriableError, code=106):
    default_message = (
        "The fetch session and the request disagree on using topic ids; the next fetch starts a new one."
    )


class IneligibleReplicaError(ApiError, code=107):
    default_message = "The replica may not join the in-sync replicas; its broker is fenced or shutting down."


class NewLeaderElectedError(ApiError, code=108):
    default_message = "The change of the partition's replicas made another broker the leader."


class OffsetMovedToTieredStorageError(ApiError, code=109):
    default_message = "The offset is no longer on the broker's disk but in tiered storage."


def describe_unknown_code(code: int, message: str | None) -> KafkaError:
    """The error for a number that no class is registered for: it keeps the number and says it."""
    error = UnknownServerError(
        f"The broker answered with error code {code}, which this client does not know"
        + (f": {message}" if message else "; a newer client may.")
    )
    error.code = code
    return error
