"""current_lag of a consumer that has fetched nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kclient.common.topic_partition import TopicPartition
from kclient.protocol.api_keys import ApiKeys

T0 = TopicPartition("t", 0)


def asked(rig: Any) -> int:
    return len(rig.sent(ApiKeys.LIST_OFFSETS))


@pytest.fixture(params=["read_uncommitted", "read_committed"])
def still(make_rig: Callable[..., Any], request: pytest.FixtureRequest) -> Any:
    """A consumer with a position and without a fetch."""
    rig = make_rig(isolation_level=request.param, auto_offset_reset="none")
    rig.fill(T0, 8)
    rig.consumer.assign([T0])
    rig.consumer.pause([T0])
    rig.consumer.seek(T0, 3)
    return rig


def test_an_unknown_end_is_looked_up_in_the_background_once(still: Any) -> None:
    held: list[Any] = []
    usual = still.handlers[ApiKeys.LIST_OFFSETS]
    still.handlers[ApiKeys.LIST_OFFSETS] = lambda *sent: held.append(sent)
    before_ms = still.time.monotonic_ms()
    submit, still.network.submit = still.network.submit, still._submit
    assert still.consumer.current_lag(T0) is None
    still.rounds(1)
    assert still.consumer.current_lag(T0) is None
    still.rounds(1)
    assert still.time.monotonic_ms() - before_ms <= 20, "nothing waits for it"
    assert asked(still) == 1
    request = held[0][0]
    assert [p.timestamp for t in request.topics for p in t.partitions] == [-1]
    still.network.submit = submit
    still.handlers[ApiKeys.LIST_OFFSETS] = usual
    still.rounds(1)
    assert still.consumer.current_lag(T0) == 5
    assert asked(still) == 1


def test_a_lookup_that_came_to_nothing_is_begun_again(still: Any) -> None:
    usual = still.handlers[ApiKeys.LIST_OFFSETS]
    still.handlers[ApiKeys.LIST_OFFSETS] = lambda *_: OSError()
    assert still.consumer.current_lag(T0) is None
    still.rounds(20)
    still.time.advance(70_000)
    still.rounds(5)
    still.handlers[ApiKeys.LIST_OFFSETS] = usual
    still.consumer.current_lag(T0)
    still.rounds()
    assert still.consumer.current_lag(T0) == 5


def test_what_the_application_asks_for_itself_is_known_as_well(still: Any) -> None:
    assert still.consumer.end_offsets([T0]) == {T0: 8}
    before = asked(still)
    assert still.consumer.current_lag(T0) == 5
    assert asked(still) == before
    assert still.consumer.beginning_offsets([T0]) == {T0: 0}
    assert still.consumer.current_lag(T0) == 5
