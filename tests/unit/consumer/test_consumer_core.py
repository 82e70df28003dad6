"""A consumer without its waiting: handing out and taking back, assignments, rebalances, and its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from harness.consumer.model import ConsumerModel
from kclient._accel import RecordIterator
from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.group_membership_operation import GroupMembershipOperation
from kclient.consumer.interceptor import ConsumerInterceptor
from kclient.consumer.internals.completed_fetch import RECORDS
from kclient.consumer.internals.consumer_core import ConsumerCore
from kclient.consumer.internals.fetch_position import RESET_TO_EARLIEST
from kclient.consumer.internals.rebalance_callback import RebalanceKind
from kclient.errors import Errors, IllegalStateError, InvalidGroupIdError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.heartbeat import HeartbeatResponse

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
MakeRig = Callable[..., ConsumerModel]


def offsets(records: Any) -> list[tuple[int, int]]:
    return [(record.partition, record.offset) for record in records]


def position(rig: ConsumerModel, tp: TopicPartition) -> int | None:
    valid = rig.core.assigned.state(tp).valid_position()
    return None if valid is None else valid.offset


def fetched(rig: ConsumerModel, *partitions: TopicPartition) -> ConsumerCore:
    """A core with five records of each of `partitions` in its buffer."""
    for tp in partitions:
        rig.fill(tp, 5)
    rig.core.assign(partitions)
    rig.rounds(20)
    assert len(rig.core.buffer.turns()) == len(partitions)
    return rig.core


class Interceptor(ConsumerInterceptor):
    """Lets through what `keep` says, and fails where that does."""

    def __init__(self, keep: Callable[[Any], bool]) -> None:
        self.keep = keep
        self.closed = 0

    def on_consume(self, records: Any) -> Any:
        kept = {tp: [r for r in records.records(tp) if self.keep(r)] for tp in records.partitions()}
        return type(records)({tp: left for tp, left in kept.items() if left})

    def close(self) -> None:
        self.closed += 1


class TestHandingOut:
    def test_records_go_up_to_the_limit_over_all_partitions_with_the_positions_behind_them(
        self, rig: ConsumerModel
    ) -> None:
        core = fetched(rig, T0, T1)
        handed_out, positions = core.hand_out(core.collect(RECORDS, 100), 7)
        first, second = handed_out
        assert [len(handed_out[tp]) for tp in (first, second)] == [5, 2]
        assert positions == {first: 5, second: 2}
        assert [position(rig, tp) for tp in (first, second)] == [5, 2]

    def test_what_was_handed_out_since_the_poll_began_is_taken_back_as_a_whole(
        self, rig: ConsumerModel
    ) -> None:
        core = fetched(rig, T0, T1)
        core.begin_poll(0)
        assert len(core.next_records() or ()) == 10
        core.take_back()
        assert [position(rig, tp) for tp in (T0, T1)] == [0, 0]

    def test_what_was_handed_out_before_the_poll_began_stays_handed_out(self, make_rig: MakeRig) -> None:
        rig = make_rig(max_poll_records=3)
        core = fetched(rig, T0)
        core.next_records()
        core.begin_poll(0)
        core.next_records()
        core.take_back()
        assert position(rig, T0) == 3

    @pytest.mark.parametrize("how", ["seek", "reset"])
    def test_a_position_that_the_application_chose_is_not_taken_back(
        self, rig: ConsumerModel, how: str
    ) -> None:
        core = fetched(rig, T0)
        core.begin_poll(0)
        core.next_records()
        if how == "seek":
            core.seek(T0, OffsetAndMetadata(4))
        else:
            core.request_reset([T0], RESET_TO_EARLIEST)
        before = position(rig, T0)
        core.take_back()
        assert position(rig, T0) == before

    def test_a_record_that_interceptors_keep_is_passed_by_and_the_next_one_comes(
        self, make_rig: MakeRig
    ) -> None:
        rig = make_rig(interceptor_classes=[Interceptor(lambda record: record.offset >= 3)])
        core = fetched(rig, T0)
        (portion,) = core.collect(RECORDS, 5)
        record = core.next_record(portion)
        assert record is not None
        assert record.offset == 3
        assert position(rig, T0) == 4

    def test_an_interceptor_that_fails_changes_nothing_and_the_others_go_on(
        self, make_rig: MakeRig, caplog: pytest.LogCaptureFixture
    ) -> None:
        def fails(record: Any) -> bool:
            raise LookupError("mine")

        rig = make_rig(
            interceptor_classes=[Interceptor(fails), Interceptor(lambda record: record.offset > 2)]
        )
        assert offsets(fetched(rig, T0).next_records()) == [(0, 3), (0, 4)]
        assert "mine" in caplog.text


def walk(core: ConsumerCore) -> RecordIterator:
    """The records that the core's cursor gives out, and no others."""

    def no_more() -> Any:
        raise StopIteration

    return RecordIterator(core.cursor, no_more)


class TestWalking:
    """Records that the cursor gives out, and the position that follows."""

    def test_the_position_moves_when_it_is_settled_to_before_the_record_in_hand(
        self, rig: ConsumerModel
    ) -> None:
        core = fetched(rig, T0)
        (portion,) = core.collect(RECORDS, 5)
        core.give_out(portion, core.changes.count)
        assert [next(walk(core)).offset for _ in range(3)] == [0, 1, 2]
        assert position(rig, T0) == 0
        core.settle()
        assert position(rig, T0) == 3
        core.take_back()
        assert position(rig, T0) == 2

    def test_it_ends_at_once_if_something_has_changed_since_the_last_look(self, rig: ConsumerModel) -> None:
        core = fetched(rig, T0)
        (portion,) = core.collect(RECORDS, 5)
        seen = core.changes.count
        core.changes.notify()
        core.give_out(portion, seen)
        assert list(walk(core)) == []

    def test_records_that_interceptors_are_to_see_are_not_given_out_so(self, make_rig: MakeRig) -> None:
        core = fetched(make_rig(interceptor_classes=[Interceptor(lambda record: True)]), T0)
        (portion,) = core.collect(RECORDS, 5)
        core.give_out(portion, core.changes.count)
        assert list(walk(core)) == []

    def test_what_the_application_did_not_get_is_taken_back_with_the_next_call(
        self, rig: ConsumerModel
    ) -> None:
        core = fetched(rig, T0)
        core.next_records()
        core.undo_last = True
        core.settle()
        assert position(rig, T0) == 0
        assert not core.undo_last


class TestAssigning:
    def test_the_same_partitions_again_keep_their_positions_and_what_was_fetched(
        self, rig: ConsumerModel
    ) -> None:
        core = fetched(rig, T0, T1)
        core.begin_poll(0)
        core.assign([T1, T0])
        assert core.commits.polled
        assert len(core.buffer.turns()) == 2

    def test_of_another_assignment_what_stays_is_kept_and_the_rest_is_dropped(
        self, rig: ConsumerModel
    ) -> None:
        core = fetched(rig, T0, T1)
        core.begin_poll(0)
        core.assign([T1])
        assert [each.tp for each in core.buffer.turns()] == [T1]
        assert not core.commits.polled, "nothing was read of this assignment yet"

    def test_unsubscribing_forgets_everything(self, rig: ConsumerModel) -> None:
        core = fetched(rig, T0)
        core.next_records()
        core.unsubscribe()
        assert not core.assigned.by_partition
        assert not core.buffer.turns()
        core.take_back()  # of nothing
        core.subscribe(["t"], None)

    def test_a_subscription_needs_a_group(self, make_rig: MakeRig) -> None:
        core = make_rig().core
        with pytest.raises(InvalidGroupIdError, match=r"group\.id"):
            core.subscribe(["t"], None)
        assert not core.subscription.subscription()

    @pytest.mark.parametrize("group_id", ["g", None])
    def test_only_a_subscriber_can_have_the_group_rebalance(
        self, make_rig: MakeRig, group_id: str | None
    ) -> None:
        core = fetched(make_rig(group_id=group_id, enable_auto_commit=False), T0)
        with pytest.raises(IllegalStateError, match="subscription"):
            core.rejoin("because")

    def test_who_is_in_no_group_has_left_it_at_once(self, make_rig: MakeRig) -> None:
        core = make_rig().core
        assert core.leave_group("the end", 0, GroupMembershipOperation.DEFAULT).done()


class TestPositions:
    def test_all_partitions_are_paused_or_none(self, rig: ConsumerModel) -> None:
        core = fetched(rig, T0)
        with pytest.raises(IllegalStateError, match="t-1"):
            core.set_paused([T0, T1], True)
        assert core.paused() == frozenset()
        core.set_paused([T0], True)
        assert core.paused() == {T0}

    def test_an_offset_with_an_epoch_is_read_from_after_it_was_validated(self, rig: ConsumerModel) -> None:
        core = fetched(rig, T0)
        core.seek(T0, OffsetAndMetadata(3, leader_epoch=4))
        assert position(rig, T0) is None
        assert not core.buffer.turns()
        rig.rounds(100)  # the fetch that is in flight waits at the broker first
        (topic,) = rig.sent(ApiKeys.OFFSET_FOR_LEADER_EPOCH)[0].topics
        assert [(p.partition, p.leader_epoch) for p in topic.partitions] == [(0, 4)]
        assert offsets(core.next_records()) == [(0, 3), (0, 4)]

    @pytest.mark.parametrize(("level", "lag"), [("read_uncommitted", 12), ("read_committed", 7)])
    def test_the_lag_counts_what_can_be_read(self, make_rig: MakeRig, level: str, lag: int) -> None:
        rig = make_rig(isolation_level=level)
        core = fetched(rig, T0)
        state = core.assigned.state(T0)
        state.high_watermark, state.last_stable_offset = 12, 7
        assert core.lag(T0) == lag


class TestRevoking:
    """A rebalance that takes partitions away from a member that commits by itself."""

    @pytest.fixture
    def losing(self, make_rig: MakeRig) -> ConsumerModel:
        """A member that has handed out five records and is to give its partitions up."""
        rig = make_rig(group_id="g", heartbeat_interval_ms=50)
        rig.fill(T0, 10)
        assert offsets(rig.join() or rig.consumer.poll(500)) == [(0, number) for number in range(5)]
        rig.rounds(20)
        assert rig.core.collect(RECORDS, 5)
        rig.network.submit = rig._submit  # type: ignore[method-assign]
        rig.core.rejoin("because")
        rig.rounds(5)
        return rig

    def held(self, rig: ConsumerModel) -> Callable[[], None]:
        usual = rig.handlers[ApiKeys.OFFSET_COMMIT]
        rig.handlers[ApiKeys.OFFSET_COMMIT] = lambda _request, _version: None

        def release() -> None:
            rig.handlers[ApiKeys.OFFSET_COMMIT] = usual

        return release

    def test_nothing_is_handed_out_until_what_was_is_committed(self, losing: ConsumerModel) -> None:
        release = self.held(losing)
        for _ in range(2):
            assert losing.core.next_callback() is None
            assert losing.core.collect(RECORDS, 5) == []
            losing.rounds(5)
        release()
        losing.rounds(5)
        due = losing.core.next_callback()
        assert due is not None
        assert due[1] is RebalanceKind.REVOKED
        assert due[0].partitions == {T0, T1}
        assert losing.committed[T0] == 5
        assert losing.core.collect(RECORDS, 5) == []

    def test_a_commit_that_is_refused_is_warned_of_and_holds_up_nothing(
        self, losing: ConsumerModel, caplog: pytest.LogCaptureFixture
    ) -> None:
        losing.on(ApiKeys.OFFSET_COMMIT, losing.refuse_commit(Errors.GROUP_AUTHORIZATION_FAILED))
        assert losing.core.next_callback() is None
        losing.rounds(5)
        due = losing.core.next_callback()
        assert due is not None
        assert due[1] is RebalanceKind.REVOKED
        assert "not committed before a rebalance" in caplog.text

    def test_partitions_of_a_member_that_was_removed_meanwhile_are_lost(self, losing: ConsumerModel) -> None:
        self.held(losing)
        assert losing.core.next_callback() is None
        losing.on(ApiKeys.HEARTBEAT, HeartbeatResponse(error_code=Errors.UNKNOWN_MEMBER_ID))
        losing.on(ApiKeys.OFFSET_COMMIT, losing.refuse_commit(Errors.UNKNOWN_MEMBER_ID))
        losing.rounds(50)
        due = losing.core.next_callback()
        assert due is not None
        assert due[1] is RebalanceKind.LOST

    def test_a_revocation_that_had_begun_takes_nothing_from_what_is_assigned_after_the_subscription(
        self, losing: ConsumerModel
    ) -> None:
        self.held(losing)
        assert losing.core.next_callback() is None
        losing.core.unsubscribe()  # a Ctrl-C comes before the group is left
        losing.core.assign([T0])
        assert losing.core.next_callback() is None
        assert not losing.core.queue
        assert not losing.core.assigned.state(T0).awaiting_callback

    def test_who_commits_by_himself_gives_them_up_at_once(self, rig: ConsumerModel) -> None:
        rig.join()
        rig.core.rejoin("because")
        rig.rounds(5)
        due = rig.core.next_callback()
        assert due is not None
        assert due[1] is RebalanceKind.REVOKED
        assert rig.core.commits.asked == 0


class TestTheEnd:
    def test_everything_that_the_application_gave_is_closed_though_some_of_it_fails(
        self, make_rig: MakeRig, caplog: pytest.LogCaptureFixture
    ) -> None:
        closed: list[str] = []

        class Deserializer:
            def __init__(self, name: str) -> None:
                self.name = name

            def deserialize(self, topic: str, data: bytes | None, headers: Sequence[Any]) -> Any:
                return data

            def close(self) -> None:
                closed.append(self.name)
                raise LookupError(self.name)

        interceptor = Interceptor(lambda record: True)
        rig = make_rig(
            interceptor_classes=[interceptor],
            key_deserializer=Deserializer("of keys"),
            value_deserializer=Deserializer("of values"),
        )
        rig.core.close_parts()
        assert (interceptor.closed, closed) == (1, ["of keys", "of values"])
        assert caplog.text.count("could not be closed") == 2
