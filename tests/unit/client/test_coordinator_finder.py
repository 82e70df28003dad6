"""The coordinator of one key, of either type: as consumer and transactions use it."""

from __future__ import annotations

import pytest

from harness.network.find_coordinator import BACKOFF_MS, Broker, at, failed, group, node, transaction
from kclient.client.coordinators import CoordinatorFinder, CoordinatorKey
from kclient.client.request_sender import NEVER
from kclient.errors import KafkaError
from kclient.utils.backoff import ExponentialBackoff
from kclient.utils.log_context import LogContext


@pytest.fixture(params=[group("k"), transaction("k")])
def key(request: pytest.FixtureRequest) -> CoordinatorKey:
    key: CoordinatorKey = request.param
    return key


@pytest.fixture
def broker() -> Broker:
    return Broker()


@pytest.fixture
def errors() -> list[KafkaError]:
    return []


@pytest.fixture
def finder(broker: Broker, key: CoordinatorKey, errors: list[KafkaError]) -> CoordinatorFinder:
    backoff = ExponentialBackoff(BACKOFF_MS, 1000, jitter=0)
    return CoordinatorFinder(key, broker.sender, backoff, errors.append, LogContext(""))


def round_of(broker: Broker, finder: CoordinatorFinder) -> int:
    wait_ms = finder.poll(broker.time.monotonic_ms())
    broker.poll()
    broker.answer()
    broker.poll()
    return wait_ms


def test_nothing_is_asked_before_somebody_wants_to_know(
    broker: Broker, finder: CoordinatorFinder, key: CoordinatorKey
) -> None:
    broker.entries[key] = at(1)
    assert not finder.known
    assert round_of(broker, finder) == NEVER
    assert broker.asked == []
    assert finder.coordinator is None
    round_of(broker, finder)
    assert broker.asked == [[key]]
    assert finder.coordinator == node(1)
    assert finder.known


def test_a_coordinator_that_is_unknown_again_is_looked_for_at_once(
    broker: Broker, finder: CoordinatorFinder, key: CoordinatorKey
) -> None:
    broker.entries[key] = at(1)
    assert finder.coordinator is None
    round_of(broker, finder)
    assert round_of(broker, finder) == NEVER
    assert len(broker.asked) == 1
    broker.entries[key] = at(2)
    finder.mark_unknown("it moved")
    assert not finder.known
    round_of(broker, finder)
    assert finder.coordinator == node(2)


def test_what_does_not_pass_is_told_once_and_not_asked_again_before_somebody_wants_to_know(
    broker: Broker, finder: CoordinatorFinder, key: CoordinatorKey, errors: list[KafkaError]
) -> None:
    broker.entries[key] = failed(32000)
    assert finder.coordinator is None
    for _ in range(5):
        round_of(broker, finder)
        broker.time.advance(1000)
    assert [error.code for error in errors] == [32000]
    assert len(broker.asked) == 1
    broker.entries[key] = at(1)
    assert finder.coordinator is None
    round_of(broker, finder)
    assert finder.coordinator == node(1)


def test_who_asks_again_at_once_after_that_waits_for_the_backoff(
    broker: Broker, finder: CoordinatorFinder, key: CoordinatorKey
) -> None:
    broker.entries[key] = failed(32000)
    for backoff_ms in (BACKOFF_MS, 2 * BACKOFF_MS):
        assert finder.coordinator is None
        round_of(broker, finder)
        assert finder.coordinator is None
        assert round_of(broker, finder) == backoff_ms
        broker.time.advance(backoff_ms)
    assert len(broker.asked) == 2
