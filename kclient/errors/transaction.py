"""Errors about producer ids, sequence numbers and transactions."""

from __future__ import annotations

from kclient.errors.base import ApiError, ApplicationRecoverableError, RetriableError

__all__ = [
    "ConcurrentTransactionsError",
    "DuplicateSequenceError",
    "InvalidPidMappingError",
    "InvalidProducerEpochError",
    "InvalidTxnStateError",
    "InvalidTxnTimeoutError",
    "OutOfOrderSequenceError",
    "ProducerFencedError",
    "TransactionAbortableError",
    "TransactionAbortedError",
    "TransactionCoordinatorFencedError",
    "TransactionalIdNotFoundError",
    "UnknownProducerIdError",
]


class OutOfOrderSequenceError(ApiError, code=45):
    default_message = "The broker expected another sequence number; records before these may be lost."


class DuplicateSequenceError(ApiError, code=46):
    default_message = "The broker has these records already."


class InvalidProducerEpochError(ApplicationRecoverableError, code=47):
    default_message = "The producer's epoch is out of date; a newer producer may use its id."


class InvalidTxnStateError(ApiError, code=48):
    default_message = "The state of the transaction does not allow this operation."


class InvalidPidMappingError(ApplicationRecoverableError, code=49):
    default_message = "The producer id does not belong to this transactional id (any more)."


class InvalidTxnTimeoutError(ApiError, code=50):
    default_message = "transaction.timeout.ms is larger than transaction.max.timeout.ms of the broker."


class ConcurrentTransactionsError(RetriableError, code=51):
    default_message = "The transactional id has another transaction that is still being completed."


class TransactionCoordinatorFencedError(ApiError, code=52):
    default_message = "The transaction coordinator has been replaced by a newer one."


class UnknownProducerIdError(OutOfOrderSequenceError, code=59):
    default_message = (
        "The broker knows no records of this producer any more; retention may have deleted them."
    )


class ProducerFencedError(ApplicationRecoverableError, code=90):
    default_message = "A newer producer uses the same transactional.id; close this one."


class TransactionalIdNotFoundError(ApiError, code=105):
    default_message = "No transactional id of this name exists."


class TransactionAbortableError(ApiError, code=120):
    default_message = "The transaction cannot be committed; abort it and begin a new one."


class TransactionAbortedError(ApiError):
    default_message = "The transaction was aborted before the record was delivered."
