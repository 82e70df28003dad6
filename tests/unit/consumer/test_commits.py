"""Commits on their way: in which order and as whom they go, what becomes of them at the end, how many there are."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.listener import ConsumerRebalanceListener
from kclient.errors import ClientClosedError, KafkaError, KafkaTimeoutError
from kclient.protocol.api_keys import ApiKeys

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Told:
    """Calls of `on_commit`, as pairs of the offset of t-0 and the error."""

    def __init__(self) -> None:
        self.calls: list[tuple[int, KafkaError | None]] = []

    def __call__(self, offsets: Any, error: KafkaError | None) -> None:
        self.calls.append((offsets[T0].offset, error))


@pytest.fixture
def told() -> Told:
    return Told()


def apis(rig: Any) -> list[ApiKeys]:
    """Commits and leaves, in order."""
    wanted = (ApiKeys.OFFSET_COMMIT, ApiKeys.LEAVE_GROUP)
    return [each.request.api_key for each in rig.client.sent if each.request.api_key in wanted]


def committed_by(rig: Any) -> list[tuple[dict[int, int], int, str]]:
    """The offsets of each request, and the generation and member that they were committed as."""
    return [
        (
            {p.partition_index: p.committed_offset for topic in request.topics for p in topic.partitions},
            request.generation_id_or_member_epoch,
            request.member_id,
        )
        for request in rig.sent(ApiKeys.OFFSET_COMMIT)
    ]


def hold(rig: Any, api: ApiKeys = ApiKeys.OFFSET_COMMIT) -> Callable[[], None]:
    """Leave requests unanswered until the returned function is called."""
    usual = rig.handlers[api]
    rig.handlers[api] = lambda _request, _version: None

    def release() -> None:
        rig.handlers[api] = usual

    return release


def waiting(rig: Any) -> int:
    """Number of commits that the consumer holds, of which no request was made."""
    return len(rig.network._tasks) + len(rig.core._commit_manager._waiting)


class TestLeaving:
    @pytest.mark.parametrize("end", ["close", "unsubscribe"])
    def test_what_was_asked_for_is_committed_before_the_group_is_left(
        self, rig: Any, told: Told, end: str
    ) -> None:
        rig.join()
        for offset in (5, 6, 7):
            rig.consumer.commit_async({T0: offset}, told)
        getattr(rig.consumer, end)()
        assert rig.committed[T0] == 7
        assert told.calls == [(5, None), (6, None), (7, None)]
        assert apis(rig)[-2:] == [ApiKeys.OFFSET_COMMIT, ApiKeys.LEAVE_GROUP]
        assert {(generation, member) for _, generation, member in committed_by(rig)} == {(1, "m-1")}

    @pytest.mark.parametrize("end", ["close", "unsubscribe"])
    @pytest.mark.parametrize("way", ["assigned", "static"])
    def test_who_has_no_group_to_leave_waits_for_commits_as_well(
        self, make_rig: Callable[..., Any], told: Told, way: str, end: str
    ) -> None:
        rig = make_rig(
            group_id="g", enable_auto_commit=False, group_instance_id="i" if way == "static" else None
        )
        if way == "static":
            rig.join()
        else:
            rig.consumer.assign([T0])
        rig.consumer.commit_async({T0: 5}, told)
        rig.consumer.commit_async({T0: 6}, told)
        getattr(rig.consumer, end)()
        assert rig.committed[T0] == 6
        assert told.calls == [(5, None), (6, None)]
        assert not rig.sent(ApiKeys.LEAVE_GROUP)

    def test_what_is_not_through_in_time_fails_and_is_told_after_the_group_was_left(
        self, rig: Any, told: Told
    ) -> None:
        rig.join()
        hold(rig)
        rig.consumer.commit_async({T0: 5}, told)
        rig.consumer.commit_async({T0: 6}, told)
        before = rig.time.monotonic_ms()
        rig.consumer.close(700)
        assert rig.time.monotonic_ms() - before < 1000
        assert [offset for offset, _ in told.calls] == [5, 6]
        for _, error in told.calls:
            assert isinstance(error, KafkaTimeoutError)
        assert "may have been committed" in str(told.calls[0][1])
        assert "may have been committed" not in str(told.calls[1][1])
        assert len(rig.sent(ApiKeys.LEAVE_GROUP)) == 1

    def test_what_a_callback_asks_for_is_waited_for_once_and_what_that_asks_for_fails(self, rig: Any) -> None:
        rig.join()
        heard: list[tuple[int, KafkaError | None]] = []

        def again(offsets: Any, error: KafkaError | None) -> None:
            heard.append((offsets[T0].offset, error))
            rig.consumer.commit_async({T0: len(heard) + 5}, again)

        rig.consumer.commit_async({T0: 5}, again)
        rig.consumer.close()
        assert heard[:2] == [(5, None), (6, None)]
        assert rig.committed[T0] >= 6
        assert len(heard) < 5

    def test_every_callback_is_called_though_the_first_one_fails(self, rig: Any, told: Told) -> None:
        rig.join()

        def failing(offsets: Any, error: KafkaError | None) -> None:
            raise ZeroDivisionError

        rig.consumer.commit_async({T0: 5}, failing)
        rig.consumer.commit_async({T0: 6}, told)
        with pytest.raises(ZeroDivisionError):
            rig.consumer.close()
        assert told.calls == [(6, None)]
        assert len(rig.sent(ApiKeys.LEAVE_GROUP)) == 1

    def test_commits_that_the_listener_asks_for_go_before_the_group_is_left(
        self, rig: Any, told: Told
    ) -> None:
        class Last(ConsumerRebalanceListener):
            def on_partitions_revoked(self, partitions: Any) -> None:
                rig.consumer.commit_async({T0: 9}, told)

        rig.join(("t",), Last())
        rig.consumer.close()
        assert told.calls == [(9, None)]
        assert apis(rig) == [ApiKeys.OFFSET_COMMIT, ApiKeys.LEAVE_GROUP]

    def test_the_end_of_the_thread_fails_what_waits(self, rig: Any, told: Told) -> None:
        rig.consumer.assign([T0])
        hold(rig)
        rig.consumer.commit_async({T0: 5}, told)
        rig.consumer.commit_async({T0: 6}, told)
        rig.network._end()
        rig.consumer.poll(0)
        assert [(offset, type(error)) for offset, error in told.calls] == [
            (5, ClientClosedError),
            (6, ClientClosedError),
        ]

    def test_a_wakeup_does_not_keep_a_consumer_from_closing(self, rig: Any) -> None:
        class Last(ConsumerRebalanceListener):
            def on_partitions_revoked(self, partitions: Any) -> None:
                rig.consumer.commit_sync({T0: 4})

        rig.join(("t",), Last())
        rig.consumer.wakeup()
        rig.consumer.close()
        assert rig.committed[T0] == 4
        assert len(rig.sent(ApiKeys.LEAVE_GROUP)) == 1

    @pytest.mark.parametrize("api", [ApiKeys.JOIN_GROUP, ApiKeys.SYNC_GROUP])
    def test_a_rebalance_that_waits_for_others_does_not_hold_up_leaving(self, rig: Any, api: ApiKeys) -> None:
        rig.join()
        release = hold(rig, api)
        rig.consumer.enforce_rebalance()
        rig.consumer.poll(100)
        stuck = [each for each in rig.client.requests if each.request.api_key is api]
        assert stuck
        before = rig.time.monotonic_ms()
        rig.consumer.unsubscribe()
        assert rig.time.monotonic_ms() - before < 1000
        assert not any(each in rig.client.requests for each in stuck), "the connection was closed"
        (left,) = rig.sent(ApiKeys.LEAVE_GROUP)
        assert left.members[0].member_id == "m-1"
        release()
        rig.join()
        assert rig.consumer.assignment() == {T0, T1}


class TestGeneration:
    def test_it_is_that_of_the_moment_at_which_the_commit_was_asked_for(self, rig: Any, told: Told) -> None:
        rig.join()
        release = hold(rig)
        rig.consumer.commit_async({T0: 5}, told)
        rig.consumer.commit_async({T0: 6}, told)
        rig.consumer.enforce_rebalance()
        rig.consumer.poll(300)
        assert rig.consumer.group_metadata().generation_id == 2
        rig.consumer.commit_async({T0: 7}, told)
        release()
        rig.consumer.poll(300)
        assert committed_by(rig) == [({0: 5}, 1, "m-1"), ({0: 6}, 1, "m-1"), ({0: 7}, 2, "m-1")]
        assert told.calls == [(5, None), (6, None), (7, None)]


class TestMerging:
    def test_what_waits_behind_a_commit_goes_in_one_request_and_every_callback_is_called_in_order(
        self, rig: Any, told: Told
    ) -> None:
        rig.consumer.assign([T0, T1])
        rig.consumer.commit_sync({T0: 1})
        release = hold(rig)
        for offset in range(2, 50):
            rig.consumer.commit_async({T0: offset}, told)
        rig.consumer.commit_async({T1: 7})
        rig.consumer.commit_async({T0: 3}, told)  # the application went back
        release()
        rig.consumer.poll(100)
        assert [offsets for offsets, _, _ in committed_by(rig)] == [{0: 1}, {0: 2}, {0: 3, 1: 7}]
        assert told.calls == [(offset, None) for offset in [*range(2, 50), 3]]

    def test_commit_async_for_each_record_holds_one_commit_at_most_beside_the_one_on_its_way(
        self, rig: Any
    ) -> None:
        rig.fill(T0, 500)
        rig.consumer.assign([T0])
        release = hold(rig)
        for record in rig.consumer:
            rig.consumer.commit_async()
            assert waiting(rig) <= 1
            if record.offset == 499:
                break
        release()
        rig.consumer.close()
        assert [offsets for offsets, _, _ in committed_by(rig)] == [{0: 1}, {0: 500}]

    def test_automatic_commits_do_not_pile_up_behind_one_that_is_on_its_way(
        self, make_rig: Callable[..., Any]
    ) -> None:
        rig = make_rig(group_id="g", auto_commit_interval_ms=0)
        rig.fill(T0, 500)
        rig.consumer.assign([T0])
        release = hold(rig)
        for record in rig.consumer:
            assert waiting(rig) <= 1
            if record.offset == 300:
                assert len(rig.sent(ApiKeys.OFFSET_COMMIT)) == 1
                release()
            if record.offset == 310:
                assert rig.committed[T0] >= 301, "the next one says how far it is by then"
            if record.offset == 499:
                break
        rig.consumer.close()
        assert rig.committed[T0] == 500

    def test_other_assignments_while_a_commit_is_on_its_way_lose_no_offset(
        self, make_rig: Callable[..., Any]
    ) -> None:
        rig = make_rig(group_id="g", auto_commit_interval_ms=60_000)
        rig.fill(T0, 20)
        rig.fill(T1, 20)
        rig.consumer.assign([T0])
        rig.consumer.poll(1000)
        release = hold(rig)
        for tp in itertools.islice(itertools.cycle((T1, T0)), 9):
            rig.consumer.assign([tp])
            rig.rounds(2)
            assert waiting(rig) <= 2  # a commit, and the lookup of where to begin
        release()
        rig.rounds()
        assert rig.committed[T0] == 5

    def test_a_partition_that_is_refused_fails_only_those_who_committed_it(
        self, rig: Any, told: Told
    ) -> None:
        def refuse_t1(request: Any, version: int) -> Any:
            response = rig.offset_commit(request, version)
            for topic in response.topics:
                for partition in topic.partitions:
                    partition.error_code = 12 if partition.partition_index == 1 else 0
            return response

        rig.consumer.assign([T0, T1])
        rig.consumer.commit_sync({T0: 1})
        release = hold(rig)
        rig.consumer.commit_async({T0: 2}, told)
        rig.consumer.commit_async({T0: 3}, told)
        rig.consumer.commit_async({T0: 4, T1: 4}, told)
        release()
        rig.on(ApiKeys.OFFSET_COMMIT, rig.offset_commit, refuse_t1)
        rig.consumer.poll(100)
        assert [(offset, error is None) for offset, error in told.calls] == [(2, True), (3, True), (4, False)]
        assert type(told.calls[2][1]).__name__ == "OffsetMetadataTooLargeError"

    @pytest.mark.parametrize("lost", [False, True])
    def test_what_is_tried_again_undoes_no_newer_commit_that_went_with_it(
        self, rig: Any, told: Told, lost: bool
    ) -> None:
        def unknown_t1(request: Any, version: int) -> Any:
            response = rig.offset_commit(request, version)
            for topic in response.topics:
                for partition in topic.partitions:
                    partition.error_code = 3 if partition.partition_index == 1 else 0
            return response

        rig.consumer.assign([T0, T1])
        rig.consumer.commit_sync({T0: 1})
        release = hold(rig)
        rig.consumer.commit_async({T0: 2}, told)
        # As commit_sync() that a Ctrl-C ended.
        deadline_ms = rig.time.monotonic_ms() + 5000
        submit, rig.network.submit = rig.network.submit, rig._submit
        older = rig.core.commits.commit({T0: OffsetAndMetadata(3), T1: OffsetAndMetadata(3)}, deadline_ms)
        rig.network.submit = submit
        rig.consumer.commit_async({T0: 9}, told)
        release()
        rig.on(ApiKeys.OFFSET_COMMIT, rig.offset_commit, ConnectionError() if lost else unknown_t1)
        rig.rounds(100)
        assert older.done()
        assert older.exception() is None
        assert rig.committed == {T0: 9, T1: 3}

    def test_a_lookup_sees_the_commits_that_were_asked_for_before_it(self, rig: Any) -> None:
        rig.consumer.assign([T0])
        rig.consumer.commit_sync({T0: 1})
        release = hold(rig)
        rig.consumer.commit_async({T0: 2})
        rig.consumer.commit_async({T0: 3})
        rounds = 0

        def pump() -> None:
            nonlocal rounds
            rounds += 1
            if rounds == 5:
                release()
            rig.pump()

        rig.time.pump = pump
        submit, rig.network.submit = rig.network.submit, rig._submit
        rig.consumer.poll(0)
        rig.network.submit = submit
        release()
        found = rig.consumer.committed([T0])[T0]
        assert found is not None
        assert found.offset == 3
