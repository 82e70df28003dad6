"""A member that closes while its group rebalances: the offsets of what it still has are committed before it leaves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.consumer.consumer_group import ConsumerGroupModel
from harness.consumer.model import ConsumerModel
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.listener import ConsumerRebalanceListener
from kclient.errors import Errors, RebalanceInProgressError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import heartbeat, join_group, sync_group

T0, T1 = (TopicPartition("t", number) for number in (0, 1))
CLOSE_MS = 5000
MakeRig = Callable[..., ConsumerModel]


class Coordinator:
    """Refuses commits of another generation than the group's, and all of them in the middle of a rebalance."""

    def __init__(self, rig: ConsumerModel) -> None:
        self.generation = 1
        self.completing = False
        self._rig = rig
        self._usual = rig.handlers[ApiKeys.OFFSET_COMMIT]
        rig.handlers[ApiKeys.OFFSET_COMMIT] = self.commit

    def commit(self, request: Any, version: int) -> Any:
        if request.generation_id_or_member_epoch != self.generation:
            return self._rig.refuse_commit(Errors.ILLEGAL_GENERATION)(request, version)
        if self.completing:
            return self._rig.refuse_commit(Errors.REBALANCE_IN_PROGRESS)(request, version)
        return self._usual(request, version)


class Last(ConsumerRebalanceListener):
    """Does something with its consumer when it gives partitions up."""

    def __init__(self, act: Callable[[], object] = lambda: None) -> None:
        self.calls: list[tuple[str, list[TopicPartition]]] = []
        self._act = act

    def on_partitions_revoked(self, partitions: Any) -> None:
        self.calls.append(("revoked", sorted(partitions)))
        self._act()

    def on_partitions_lost(self, partitions: Any) -> None:
        self.calls.append(("lost", sorted(partitions)))


@pytest.fixture
def make_member(make_rig: MakeRig) -> MakeRig:
    """A cooperative member."""

    def make(**settings: object) -> ConsumerModel:
        return make_rig(
            group_id="g",
            partition_assignment_strategy=["cooperative-sticky"],
            heartbeat_interval_ms=50,
            auto_commit_interval_ms=10**6,
            **settings,
        )

    return make


@pytest.fixture
def rig(make_member: MakeRig) -> ConsumerModel:
    return make_member()


def read_in_a_rebalance(
    rig: ConsumerModel, api: ApiKeys = ApiKeys.JOIN_GROUP, listener: ConsumerRebalanceListener | None = None
) -> Callable[[], None]:
    """Read five records while the coordinator leaves requests of one kind unanswered, until the function is called."""
    rig.join(listener=listener)
    usual = rig.handlers[api]
    rig.handlers[api] = lambda _request, _version: None
    rig.on(ApiKeys.HEARTBEAT, heartbeat.HeartbeatResponse(error_code=Errors.REBALANCE_IN_PROGRESS))
    rig.rounds(20)
    rig.fill(T0, 5)
    assert sum(len(rig.consumer.poll(20)) for _ in range(10)) == 5
    assert rig.core.membership is not None
    assert rig.core.membership.rebalancing

    def release() -> None:
        rig.handlers[api] = usual

    return release


def after(rig: ConsumerModel, wait_ms: int, function: Callable[[], object]) -> None:
    """Call `function` when so much time has passed on the consumer's clock."""
    due_ms, pump = rig.time.monotonic_ms() + wait_ms, rig.time.pump
    called: list[bool] = []

    def pump_and_call() -> None:
        if not called and rig.time.monotonic_ms() >= due_ms:
            called.append(True)
            function()
        pump()

    rig.time.pump = rig.pump = pump_and_call  # type: ignore[method-assign]


def close(rig: ConsumerModel, timeout_ms: int = CLOSE_MS) -> int:
    """Close the consumer, and return how long that took."""
    began_ms = rig.time.monotonic_ms()
    rig.consumer.close(timeout_ms)
    return rig.time.monotonic_ms() - began_ms


def generations(rig: ConsumerModel) -> list[int]:
    """The generations of the commits, oldest first."""
    return [each.generation_id_or_member_epoch for each in rig.sent(ApiKeys.OFFSET_COMMIT)]


def test_while_others_join_the_old_generation_is_good_for_a_commit_that_goes_past_the_join(
    rig: ConsumerModel,
) -> None:
    Coordinator(rig)
    read_in_a_rebalance(rig)
    assert close(rig) < 1000
    assert rig.committed[T0] == 5
    assert generations(rig) == [1]
    join, commit = (
        next(each for each in reversed(rig.client.sent) if each.request.api_key is api)
        for api in (ApiKeys.JOIN_GROUP, ApiKeys.OFFSET_COMMIT)
    )
    assert commit.request.node_id != join.request.node_id, "it would be answered after the join"
    assert len(rig.sent(ApiKeys.LEAVE_GROUP)) == 1


@pytest.mark.parametrize("call", ["commit_sync", "commit_async"])
def test_a_listener_may_commit_what_it_gives_up(make_member: MakeRig, call: str) -> None:
    rig = make_member(enable_auto_commit=False)
    Coordinator(rig)
    last = Last(getattr(rig.consumer, call))
    read_in_a_rebalance(rig, listener=last)
    assert close(rig) < 1000
    assert last.calls == [("revoked", [T0, T1])]
    assert rig.committed[T0] == 5


def test_while_the_leader_assigns_it_is_tried_again_until_that_is_done(rig: ConsumerModel) -> None:
    coordinator = Coordinator(rig)
    release = read_in_a_rebalance(rig, ApiKeys.SYNC_GROUP)
    coordinator.generation, coordinator.completing = 2, True

    def complete() -> None:
        coordinator.completing = False
        release()

    after(rig, 500, complete)
    assert 500 <= close(rig) < 1000
    assert rig.committed[T0] == 5
    assert set(generations(rig)) == {2}


def test_a_commit_that_the_end_of_the_joining_overtook_goes_again_in_the_new_generation(
    rig: ConsumerModel,
) -> None:
    coordinator = Coordinator(rig)
    release = read_in_a_rebalance(rig)
    coordinator.generation = 2
    after(rig, 300, release)
    assert 300 <= close(rig) < 1000
    assert rig.committed[T0] == 5
    assert generations(rig)[-1] == 2


@pytest.mark.parametrize("api", [ApiKeys.SYNC_GROUP, ApiKeys.JOIN_GROUP], ids=["syncing", "joining"])
@pytest.mark.parametrize("automatic", [True, False], ids=["automatic and by a listener", "by a listener"])
def test_a_leader_that_has_died_before_it_assigned_is_not_waited_for(
    make_member: MakeRig, api: ApiKeys, automatic: bool
) -> None:
    rig = make_member(enable_auto_commit=automatic)
    coordinator = Coordinator(rig)

    def commit() -> None:
        with pytest.raises(RebalanceInProgressError):
            rig.consumer.commit_sync()

    read_in_a_rebalance(rig, api, Last(commit))
    coordinator.generation, coordinator.completing = (2 if api is ApiKeys.SYNC_GROUP else 1), True
    assert 4000 < close(rig, 30_000) < 7000
    assert not rig.committed
    assert len(rig.sent(ApiKeys.LEAVE_GROUP)) == 1


def test_it_takes_no_longer_than_there_is_time(rig: ConsumerModel) -> None:
    coordinator = Coordinator(rig)
    read_in_a_rebalance(rig, ApiKeys.SYNC_GROUP)
    coordinator.generation, coordinator.completing = 2, True
    assert CLOSE_MS - 500 <= close(rig) <= CLOSE_MS + 500
    assert not rig.committed
    assert len(rig.sent(ApiKeys.LEAVE_GROUP)) == 1


def test_a_member_that_the_group_has_removed_commits_nothing_and_does_not_wait(rig: ConsumerModel) -> None:
    last = Last()
    read_in_a_rebalance(rig, listener=last)
    rig.handlers[ApiKeys.OFFSET_COMMIT] = rig.refuse_commit(Errors.UNKNOWN_MEMBER_ID)
    assert close(rig) < 1000
    assert last.calls == [("lost", [T0, T1])]
    assert not rig.committed


def test_a_member_whose_join_was_refused_has_lost_what_it_had(rig: ConsumerModel) -> None:
    last = Last()
    coordinator = Coordinator(rig)
    release = read_in_a_rebalance(rig, listener=last)
    coordinator.generation = 2
    removed = join_group.JoinGroupResponse(error_code=Errors.UNKNOWN_MEMBER_ID)
    release()
    rig.on(ApiKeys.JOIN_GROUP, removed)
    assert close(rig) < 1000
    assert last.calls == [("lost", [T0, T1])]
    assert not rig.committed


def test_between_two_attempts_to_join_nothing_is_lost(rig: ConsumerModel) -> None:
    last = Last()
    coordinator = Coordinator(rig)
    release = read_in_a_rebalance(rig, ApiKeys.SYNC_GROUP, last)
    coordinator.generation = 2
    release()
    rig.on(ApiKeys.SYNC_GROUP, sync_group.SyncGroupResponse(error_code=Errors.COORDINATOR_LOAD_IN_PROGRESS))
    rig.rounds(1)
    assert close(rig) < 1000
    assert last.calls == [("revoked", [T0, T1])]
    assert rig.committed[T0] == 5


def test_in_the_middle_of_its_life_the_application_is_told_to_poll_and_commit_again(
    rig: ConsumerModel,
) -> None:
    """As in Java; only who closes cannot do that."""
    Coordinator(rig)
    read_in_a_rebalance(rig)
    rig.core.commits.auto_commit(rig.time.monotonic_ms())
    rig.rounds()
    assert not rig.committed


def test_with_the_consumer_protocol_an_epoch_that_the_member_has_not_heard_of_is_waited_for(
    make_rig: MakeRig,
) -> None:
    group = ConsumerGroupModel(make_rig(group_id="g", group_protocol="consumer"))
    rig = group.rig
    group.join()
    rig.fill(T0, 5)
    assert len(group.poll_for(200)) == 5
    usual = rig.handlers[ApiKeys.OFFSET_COMMIT]
    stale = rig.refuse_commit(Errors.STALE_MEMBER_EPOCH)
    rig.handlers[ApiKeys.OFFSET_COMMIT] = lambda request, version: (
        usual if request.generation_id_or_member_epoch > 1 else stale
    )(request, version)
    rig.topics["t"] = 3  # a partition more, and so another epoch
    assert close(rig) < 1000
    assert rig.committed[T0] == 5


def test_with_the_consumer_protocol_a_member_that_the_group_has_removed_has_lost_what_it_had(
    make_rig: MakeRig,
) -> None:
    group = ConsumerGroupModel(make_rig(group_id="g", group_protocol="consumer"))
    last = Last()
    group.join(listener=last)
    group.rig.fill(T0, 5)
    assert len(group.poll_for(200)) == 5
    group.remove_member()
    group.rig.handlers[ApiKeys.OFFSET_COMMIT] = group.rig.refuse_commit(Errors.UNKNOWN_MEMBER_ID)
    assert close(group.rig) < 1000
    assert last.calls == [("lost", [T0, T1])]
