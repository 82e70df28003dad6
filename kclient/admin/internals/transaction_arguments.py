"""Checks of arguments about transactions, which most programs never ask about."""

from __future__ import annotations

from typing import Any

from kclient.admin.internals.arguments import distinct
from kclient.admin.internals.fields import a
from kclient.admin.transactions import AbortTransactionSpec, TransactionState

_MAX_INT32 = 2**31 - 1
_MAX_INT64 = 2**63 - 1


def checked_states(states: Any) -> list[str]:
    """States of transactions, without repeats."""
    wanted = distinct("states", states)
    known = [state.value for state in TransactionState]
    for state in wanted:
        if not isinstance(state, str):
            raise TypeError(f"states: a TransactionState is needed, not {a(type(state))}")
        if state not in known:
            raise ValueError(f"states: {state!r} is none of {', '.join(known)}")
    return [str(state) for state in wanted]


def checked_producer_ids(producer_ids: Any) -> list[int]:
    """Ids of producers, without repeats."""
    return [
        _number("producer_ids: an entry", each, _MAX_INT64) for each in distinct("producer_ids", producer_ids)
    ]


def checked_duration(duration_ms: Any) -> int | None:
    """A time in ms, or None."""
    return None if duration_ms is None else _number("duration_ms", duration_ms, _MAX_INT64)


def checked_pattern(transactional_id_pattern: Any) -> str | None:
    """A regular expression, which the broker reads, or None."""
    if transactional_id_pattern is not None and not isinstance(transactional_id_pattern, str):
        raise TypeError(f"transactional_id_pattern must be a str, not {transactional_id_pattern!r}")
    return transactional_id_pattern


def checked_transactional_ids(transactional_ids: Any) -> list[str]:
    """Transactional ids, without repeats."""
    argument = "transactional_ids"
    return [checked_transactional_id(each, argument) for each in distinct(argument, transactional_ids)]


def checked_transactional_id(transactional_id: Any, argument: str = "transactional_id") -> str:
    """One transactional id."""
    if not isinstance(transactional_id, str):
        raise TypeError(f"{argument}: an id must be a str, not {transactional_id!r}")
    if not transactional_id:
        raise ValueError(f"{argument}: an id must not be empty")
    return transactional_id


def checked_broker(broker_id: Any) -> int | None:
    """The id of a broker, or None."""
    return None if broker_id is None else _number("broker_id", broker_id, _MAX_INT32)


def checked_spec(spec: Any) -> AbortTransactionSpec:
    """A transaction to abort."""
    if not isinstance(spec, AbortTransactionSpec):
        raise TypeError(f"spec must be an AbortTransactionSpec, not {a(type(spec))}")
    return spec


def _number(what: str, value: Any, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{what} must be an int, not {value!r}")
    if not 0 <= value <= most:
        raise ValueError(f"{what} must be 0 to {most}, not {value}")
    return value
