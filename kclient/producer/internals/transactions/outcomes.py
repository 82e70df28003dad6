"""The meaning of error codes in the answers of coordinators: again, abort, or the end of the producer (KIP-1050)."""

from __future__ import annotations

from enum import Enum, auto

from kclient.errors import (
    ErrorCode,
    Errors,
    GroupAuthorizationError,
    InvalidMetadataError,
    KafkaError,
    RefreshRetriableError,
    TransactionAbortableError,
)
from kclient.protocol.api_keys import ApiKeys


class Outcome(Enum):
    """The consequence of an answer."""

    DONE = auto()
    AGAIN = auto()
    """It passes: the same request again, after a backoff."""
    REFIND = auto()
    """The same request again, to a coordinator that has to be found anew."""
    ABORTABLE = auto()
    """The transaction can only be aborted."""
    FENCED = auto()
    """Another producer has the name: fatal."""
    FATAL = auto()


_FENCED: dict[int, Outcome] = {
    ErrorCode.INVALID_PRODUCER_EPOCH: Outcome.FENCED,
    ErrorCode.PRODUCER_FENCED: Outcome.FENCED,
}
# The coordinator has forgotten the producer, or knows it by another id: a new epoch, after an abort, puts that right.
_FORGOTTEN: dict[int, Outcome] = {
    ErrorCode.UNKNOWN_PRODUCER_ID: Outcome.ABORTABLE,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING: Outcome.ABORTABLE,
}
# The exceptions to what the class of an error says.
_BY_API: dict[ApiKeys, dict[int, Outcome]] = {
    ApiKeys.INIT_PRODUCER_ID: _FENCED,
    ApiKeys.ADD_PARTITIONS_TO_TXN: {
        **_FENCED,
        **_FORGOTTEN,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: Outcome.ABORTABLE,
        # Another partition of the request was refused, whose own code decides.
        ErrorCode.OPERATION_NOT_ATTEMPTED: Outcome.AGAIN,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED: Outcome.FATAL,
        ErrorCode.INVALID_TXN_STATE: Outcome.FATAL,
    },
    ApiKeys.ADD_OFFSETS_TO_TXN: {
        **_FENCED,
        **_FORGOTTEN,
        ErrorCode.GROUP_AUTHORIZATION_FAILED: Outcome.ABORTABLE,
        ErrorCode.INVALID_GROUP_ID: Outcome.ABORTABLE,
    },
    ApiKeys.TXN_OFFSET_COMMIT: {
        **_FENCED,
        **_FORGOTTEN,
        ErrorCode.GROUP_AUTHORIZATION_FAILED: Outcome.ABORTABLE,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED: Outcome.ABORTABLE,
        ErrorCode.INVALID_GROUP_ID: Outcome.ABORTABLE,
        ErrorCode.OFFSET_METADATA_TOO_LARGE: Outcome.ABORTABLE,
        ErrorCode.INVALID_COMMIT_OFFSET_SIZE: Outcome.ABORTABLE,
        # The consumer is no longer the member that it was: others may have its partitions.
        ErrorCode.ILLEGAL_GENERATION: Outcome.ABORTABLE,
        ErrorCode.UNKNOWN_MEMBER_ID: Outcome.ABORTABLE,
        ErrorCode.GROUP_ID_NOT_FOUND: Outcome.ABORTABLE,
        ErrorCode.FENCED_INSTANCE_ID: Outcome.ABORTABLE,
        ErrorCode.FENCED_MEMBER_EPOCH: Outcome.ABORTABLE,
        ErrorCode.STALE_MEMBER_EPOCH: Outcome.ABORTABLE,
        ErrorCode.REBALANCE_IN_PROGRESS: Outcome.ABORTABLE,
    },
    ApiKeys.END_TXN: {**_FENCED, **_FORGOTTEN},
}
# Whatever else a partition is refused for: without it there is no transaction, but another may do without it.
_OTHERWISE = {ApiKeys.ADD_PARTITIONS_TO_TXN: Outcome.ABORTABLE}


def outcome_of(api_key: ApiKeys, code: int) -> Outcome:
    """Return the consequence of `code` in an answer to `api_key`."""
    known = _BY_API[api_key].get(code)
    if known is not None:
        return known
    error = Errors.for_code(code)
    if error is None:
        return Outcome.DONE
    if isinstance(error, RefreshRetriableError) and not isinstance(error, InvalidMetadataError):
        return Outcome.REFIND
    if error.retriable:
        return Outcome.AGAIN
    if isinstance(error, TransactionAbortableError):
        return Outcome.ABORTABLE
    return _OTHERWISE.get(api_key, Outcome.FATAL)


def outcome_without_answer(error: KafkaError) -> Outcome:
    """Return the consequence of a request that was not answered, or of a coordinator that nobody may know."""
    if error.retriable:
        return Outcome.REFIND
    abortable = isinstance(error, GroupAuthorizationError | TransactionAbortableError)
    return Outcome.ABORTABLE if abortable else Outcome.FATAL
