"""The states of a transactional producer (KIP-98, KIP-890)."""

from __future__ import annotations

from enum import Enum, auto


class TransactionState(Enum):
    """The state of a transactional producer."""

    UNINITIALIZED = auto()
    INITIALIZING = auto()
    """The coordinator is asked for an id and an epoch, and ends what a former producer of the name left open."""
    READY = auto()
    """There is no transaction, and one can begin."""
    IN_TRANSACTION = auto()
    COMMITTING = auto()
    ABORTING = auto()
    ABORTABLE_ERROR = auto()
    """Something of the transaction failed: it can only be aborted."""
    FATAL_ERROR = auto()
    """The producer has to be closed."""


_S = TransactionState

VALID_TRANSITIONS: dict[TransactionState, frozenset[TransactionState]] = {
    _S.UNINITIALIZED: frozenset({_S.INITIALIZING, _S.FATAL_ERROR}),
    # Back to UNINITIALIZED: the principal may not use the name, which somebody may change.
    _S.INITIALIZING: frozenset({_S.UNINITIALIZED, _S.READY, _S.FATAL_ERROR}),
    _S.READY: frozenset({_S.IN_TRANSACTION, _S.FATAL_ERROR}),
    _S.IN_TRANSACTION: frozenset({_S.COMMITTING, _S.ABORTING, _S.ABORTABLE_ERROR, _S.FATAL_ERROR}),
    _S.COMMITTING: frozenset({_S.READY, _S.ABORTABLE_ERROR, _S.FATAL_ERROR}),
    # To ABORTABLE_ERROR: the coordinator wants the abort to be asked for once more.
    _S.ABORTING: frozenset({_S.READY, _S.ABORTABLE_ERROR, _S.FATAL_ERROR}),
    _S.ABORTABLE_ERROR: frozenset({_S.ABORTING, _S.FATAL_ERROR}),
    _S.FATAL_ERROR: frozenset(),
}
