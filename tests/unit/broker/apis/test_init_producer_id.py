"""InitProducerId: an id of its own for whoever asks, and none for transactions."""

from __future__ import annotations

import os

import pytest

from harness.broker.handlers import Handlers
from kclient.broker.apis.init_producer_id import init_producer_id
from kclient.broker.metadata.controller import PRODUCER_ID_BLOCK
from kclient.protocol.messages.init_producer_id import InitProducerIdRequest

UNSUPPORTED_VERSION, INVALID_REQUEST, STORAGE_ERROR = 35, 42, 56


def ask(
    handlers: Handlers,
    version: int = 4,
    *,
    known: tuple[int, int] | None = None,
    transaction: str | None = None,
) -> tuple[int, int, int]:
    """Ask for an id; error code, id and epoch of the answer."""
    request = InitProducerIdRequest(transactional_id=transaction, transaction_timeout_ms=60_000)
    if known is not None:
        request.producer_id, request.producer_epoch = known
    answer = handlers.ask(init_producer_id, request, version)
    return answer.error_code, answer.producer_id, answer.producer_epoch


def test_every_request_of_every_version_gets_an_id_of_its_own_in_epoch_0(handlers: Handlers) -> None:
    answers = [ask(handlers, version) for version in range(5)]
    assert answers == [(0, number, 0) for number in range(5)]


@pytest.mark.parametrize("epoch", [0, 5, 2**15 - 1])
def test_who_has_an_id_gets_a_new_one_and_no_next_epoch(handlers: Handlers, epoch: int) -> None:
    _, first, _ = ask(handlers)
    error, second, new_epoch = ask(handlers, known=(first, epoch))
    assert (error, new_epoch) == (0, 0)
    assert second != first


def test_an_id_that_nobody_was_given_is_not_taken_over(handlers: Handlers) -> None:
    assert ask(handlers, known=(2**40, 3)) == (0, 0, 0)


@pytest.mark.parametrize("version", [0, 4])
@pytest.mark.parametrize(("name", "error"), [("bank", UNSUPPORTED_VERSION), ("", INVALID_REQUEST)])
def test_transactions_are_refused_without_an_id_being_used_up(
    handlers: Handlers, version: int, name: str, error: int
) -> None:
    assert ask(handlers, version, transaction=name) == (error, -1, -1)
    assert ask(handlers, version) == (0, 0, 0)


def broken(_descriptor: int) -> None:
    raise OSError(5, "Input/output error")


def test_an_id_that_could_not_be_kept_is_not_given_out(
    handlers: Handlers, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as failing:
        failing.setattr(os, "fdatasync", broken)
        assert ask(handlers) == (STORAGE_ERROR, -1, -1)
    assert ask(handlers) == (0, 0, 0)


def test_a_disk_that_fails_within_a_block_takes_no_id_away(
    handlers: Handlers, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask(handlers)
    monkeypatch.setattr(os, "fdatasync", broken)
    answers = [ask(handlers) for _ in range(PRODUCER_ID_BLOCK)]
    assert answers[-2:] == [(0, PRODUCER_ID_BLOCK - 1, 0), (STORAGE_ERROR, -1, -1)]
