"""Fate: the one fact about a batch over all its attempts that decides what may be done with it."""

from __future__ import annotations

from enum import Enum, auto

from kclient.errors import ErrorCode

NOT_WRITTEN_CODES = frozenset(
    {
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.TOPIC_AUTHORIZATION_FAILED,
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
        ErrorCode.INVALID_RECORD,
        # The partition could not be made part of the transaction.
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.TRANSACTION_ABORTABLE,
    }
)
"""The answers that a leader gives before it appends, and only then.

NOT_LEADER_OR_FOLLOWER is none of them: a leader that is demoted answers so for batches that it has appended and that
wait for its followers, and they may well be in the log of the next leader.
"""


class Fate(Enum):
    """The knowledge about a batch that has not been acknowledged."""

    # Enum's own is a function of Python's.
    __hash__ = object.__hash__

    NOT_WRITTEN = auto()
    """No attempt was made, or each was answered with one of `NOT_WRITTEN_CODES`: it may be numbered anew."""
    UNKNOWN = auto()
    """An attempt had another answer, or none: it may be in the log, now or later, under the sequence it has."""
