"""Commits of a consumer that commits by itself: on its way, at its end, and after an error."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.fetch_collector import FetchCollector
from kclient.consumer.listener import ConsumerRebalanceListener
from kclient.errors import Errors
from kclient.protocol.api_keys import ApiKeys

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def values(records: Any) -> list[int]:
    return [int(record.value) for record in records]


@pytest.fixture
def reading(make_rig: Callable[..., Any]) -> Any:
    """A consumer that reads twenty records of T0 and commits when it ends."""
    rig = make_rig(group_id="g", auto_commit_interval_ms=60_000)
    rig.fill(T0, 20)
    rig.consumer.assign([T0])
    return rig


def test_poll_commits_what_earlier_polls_returned(make_rig: Callable[..., Any]) -> None:
    rig = make_rig(group_id="g", auto_commit_interval_ms=100)
    rig.fill(T0, 20)
    rig.consumer.assign([T0])
    assert len(rig.consumer.poll(1000)) == 5
    rig.time.advance(200)
    assert not rig.committed
    rig.consumer.poll(1000)
    rig.rounds()
    assert rig.committed == {T0: 5}


@pytest.mark.parametrize("end", ["close", "unsubscribe", "subscribe to nothing", "assign nothing", "with"])
def test_what_ends_reading_commits_everything_that_was_returned(reading: Any, end: str) -> None:
    reading.consumer.poll(1000)
    reading.consumer.poll(1000)
    {
        "close": reading.consumer.close,
        "unsubscribe": reading.consumer.unsubscribe,
        "subscribe to nothing": lambda: reading.consumer.subscribe([]),
        "assign nothing": lambda: reading.consumer.assign([]),
        "with": lambda: reading.consumer.__exit__(None, None, None),
    }[end]()
    assert reading.committed == {T0: 10}


def test_another_assignment_commits_everything_that_was_returned_of_the_one_before(reading: Any) -> None:
    reading.consumer.poll(1000)
    reading.consumer.assign([T1])
    reading.rounds()
    assert reading.committed == {T0: 5}


def test_what_was_committed_without_reading_is_not_undone_by_the_position_to_begin_with(
    make_rig: Callable[..., Any],
) -> None:
    rig = make_rig(group_id="g", auto_offset_reset="earliest")
    rig.fill(T0, 20)
    rig.consumer.assign([T0])
    assert rig.consumer.position(T0) == 0
    rig.consumer.commit_sync({T0: OffsetAndMetadata(7)})
    rig.consumer.close()
    assert rig.committed == {T0: 7}


def test_a_position_that_was_sought_is_committed_without_a_poll(reading: Any) -> None:
    reading.consumer.seek(T0, 3)
    reading.consumer.close()
    assert reading.committed == {T0: 3}


def test_a_loop_that_was_left_has_its_last_record_committed_by_close(reading: Any) -> None:
    for record in reading.consumer:
        if record.offset == 3:
            break
    reading.consumer.close()
    assert reading.committed == {T0: 4}


@pytest.mark.parametrize("error", [ZeroDivisionError, KeyboardInterrupt, SystemExit])
def test_leaving_by_an_error_commits_what_polls_before_the_last_one_returned(
    make_rig: Callable[..., Any], error: type[BaseException]
) -> None:
    rig = make_rig(group_id="g", auto_commit_interval_ms=60_000)
    rig.fill(T0, 20)
    rig.fill(T1, 20)
    rig.consumer.assign([T0, T1])
    before: dict[TopicPartition, int] = {}

    def read() -> None:
        with rig.consumer:
            while rig.consumer.position(T0) < 10:
                rig.consumer.poll(1000)
            before.update((tp, rig.consumer.position(tp)) for tp in (T0, T1))
            assert rig.consumer.poll(1000)
            raise error

    with pytest.raises(error):
        read()
    assert rig.committed == before


def test_leaving_by_an_error_in_iteration_commits_the_records_before_the_last_one(reading: Any) -> None:
    def read() -> None:
        with reading.consumer:
            for record in reading.consumer:
                assert record.offset < 3 or 1 // 0

    with pytest.raises(ZeroDivisionError):
        read()
    assert reading.committed == {T0: 3}


def test_leaving_by_an_error_keeps_a_position_that_the_application_sought(reading: Any) -> None:
    def read() -> None:
        with reading.consumer:
            reading.consumer.poll(1000)
            reading.consumer.seek(T0, 3)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        read()
    assert reading.committed == {T0: 3}


def test_leaving_by_an_error_moves_no_position_of_an_application_that_commits_by_itself(rig: Any) -> None:
    class Keep(ConsumerRebalanceListener):
        def on_partitions_revoked(self, partitions: Any) -> None:
            rig.consumer.commit_sync()

    rig.fill(T0, 5)

    def read() -> None:
        with rig.consumer:
            found = rig.join(("t",), Keep())
            while not found:
                found = rig.consumer.poll(10)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        read()
    assert rig.committed[T0] == 5


def test_closing_again_after_closing_was_interrupted_commits_no_more_than_leaving_by_an_error_does(
    reading: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    def read() -> None:
        with reading.consumer:
            reading.consumer.poll(1000)
            reading.consumer.poll(1000)
            monkeypatch.setattr(FetchCollector, "take_back", interrupted)
            raise ZeroDivisionError

    with pytest.raises(KeyboardInterrupt):
        read()
    monkeypatch.undo()
    reading.consumer.close()
    assert reading.committed == {T0: 5}


def test_what_was_returned_is_taken_back_while_its_position_is_being_validated(rig: Any) -> None:
    rig.fill(T0, 20)
    rig.consumer.assign([T0])
    rig.consumer.poll(1000)
    rig.consumer.poll(1000)
    rig.handlers[ApiKeys.OFFSET_FOR_LEADER_EPOCH] = lambda _request, _version: None
    usual = dict(rig.handlers)
    rig.leaders[T0] = (0, 6)
    rig.core.metadata.request_update()
    rig.rounds()
    assert rig.sent(ApiKeys.OFFSET_FOR_LEADER_EPOCH)
    rig.core.take_back()
    rig.handlers = {**usual, ApiKeys.OFFSET_FOR_LEADER_EPOCH: rig.leader_epochs}
    assert values(rig.consumer.poll(3000)) == [5, 6, 7, 8, 9]


def test_a_rebalance_commits_everything_that_was_returned(make_rig: Callable[..., Any]) -> None:
    rig = make_rig(group_id="g", auto_commit_interval_ms=60_000)
    rig.fill(T0, 5)
    rig.join()
    while not rig.consumer.poll(100):
        pass
    rig.consumer.enforce_rebalance()
    rig.consumer.poll(500)
    assert rig.committed[T0] == 5


def test_commits_that_go_on_failing_are_warned_of_once(
    make_rig: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    rig = make_rig(group_id="g", auto_commit_interval_ms=100)
    refused = rig.refuse_commit(Errors.GROUP_AUTHORIZATION_FAILED)
    rig.on(ApiKeys.OFFSET_COMMIT, *[refused] * 50)
    rig.fill(T0, 20)
    rig.consumer.assign([T0])
    for _ in range(10):
        rig.consumer.poll(1000)
    assert len(rig.sent(ApiKeys.OFFSET_COMMIT)) > 3
    assert sum("automatic commit" in line.getMessage() for line in caplog.records) == 1


def test_nothing_is_committed_automatically_that_must_not_be_however_long_the_machine_is_up(
    make_rig: Callable[..., Any],
) -> None:
    rig = make_rig(group_id="g", enable_auto_commit=False)
    rig.time.advance(2**33)  # a hundred days: the monotonic clock begins when the machine does
    rig.fill(T0, 3)
    rig.consumer.assign([T0])
    assert len(rig.consumer.poll(1000)) == 3
    rig.time.advance(60_000)
    rig.consumer.poll(100)
    rig.rounds()
    assert not rig.committed
