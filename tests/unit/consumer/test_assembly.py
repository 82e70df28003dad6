"""A consumer put together from settings: what users give it as objects, what a group adds, what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from harness.leaks import open_descriptors
from harness.mock_client import MockClient
from harness.mock_time import MockTime
from kclient.client.coordinators import CoordinatorFinder
from kclient.common.offsets import OffsetAndMetadata
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.assignor import ASSIGNORS, RangeAssignor, RoundRobinAssignor
from kclient.consumer.config import ConsumerConfig
from kclient.consumer.interceptor import ConsumerInterceptor
from kclient.consumer.internals.assembly import build_consumer
from kclient.consumer.internals.coordinator.assembly import make_assignors
from kclient.errors import BootstrapError, ConfigError, GroupAuthorizationError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import find_coordinator

T0 = TopicPartition("t", 0)
MakeRig = Callable[..., Any]


class Own(RangeAssignor):
    NAME = "own"

    @property
    def name(self) -> str:
        return self.NAME


class TestAssignors:
    def test_names_classes_and_objects_are_taken_in_the_order_of_preference(self) -> None:
        own = Own()
        made = make_assignors([RoundRobinAssignor, own, "range"])
        assert list(made) == ["roundrobin", "own", "range"]
        assert [type(each) for each in made.values()] == [RoundRobinAssignor, Own, RangeAssignor]
        assert made["own"] is own

    def test_consumers_do_not_share_what_is_made_by_name(self) -> None:
        assert make_assignors(["range"])["range"] is not make_assignors(["range"])["range"]

    @pytest.mark.parametrize("given", ["stickiest", "", None, 3, dict, object(), ASSIGNORS])
    def test_anything_else_is_refused_and_told_what_there_is(self, given: object) -> None:
        with pytest.raises(
            ConfigError, match=r"is neither one of range, .*nor a ConsumerPartitionAssignor"
        ) as refused:
            make_assignors(["range", given])
        assert refused.value.name == "partition.assignment.strategy"
        assert repr(given) in str(refused.value)

    @pytest.mark.parametrize("twice", [["range", RangeAssignor], [Own, Own()]])
    def test_two_of_one_name_are_refused_as_a_group_could_not_tell_them_apart(
        self, twice: list[object]
    ) -> None:
        with pytest.raises(ConfigError, match=r"two assignors are called '(range|own)'") as refused:
            make_assignors(twice)
        assert refused.value.name == "partition.assignment.strategy"


class Noting(ConsumerInterceptor):
    made = 0

    def __init__(self) -> None:
        type(self).made += 1


class TestInterceptors:
    def test_classes_are_made_objects_and_objects_are_taken_as_they_are(self, make_rig: MakeRig) -> None:
        own = Noting()
        before = Noting.made
        found = make_rig(interceptor_classes=[own, Noting]).core._interceptors
        assert found[0] is own
        assert type(found[1]) is Noting
        assert found[1] is not own
        assert Noting.made == before + 1

    @pytest.mark.parametrize("given", [object(), dict])
    def test_anything_else_is_refused(self, given: object) -> None:
        with pytest.raises(
            ConfigError, match=r"interceptor\.classes: .* is not a ConsumerInterceptor"
        ) as refused:
            build(interceptor_classes=[given])
        assert refused.value.name == "interceptor.classes"
        assert repr(given) in str(refused.value)


def build(*, client: Any = None, start: bool = True, **settings: Any) -> Any:
    config = ConsumerConfig.parse(None, {"bootstrap_servers": "127.0.0.1:9092", **settings})
    time = MockTime()
    return build_consumer(config, time=time, client=client and MockClient(time), start=start)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        ({"interceptor_classes": [object()]}, ConfigError),
        ({"partition_assignment_strategy": [object()]}, ConfigError),
        ({"key_deserializer": 3}, ConfigError),
        ({"value_deserializer": 3}, ConfigError),
        ({"bootstrap_servers": "no-such-host.invalid:9092"}, BootstrapError),
        ({"group_id": "g", "bootstrap_servers": "127.0.0.1"}, ConfigError),
    ],
)
def test_what_is_refused_leaves_no_descriptor_behind(
    settings: dict[str, Any], error: type[Exception]
) -> None:
    before = open_descriptors()
    with pytest.raises(error):
        build(**settings)
    assert open_descriptors() == before


def test_the_thread_runs_unless_the_caller_takes_the_rounds_by_himself() -> None:
    idle = build(client=True, start=False)
    assert not idle.network._thread.is_alive()
    running = build(client=True)
    assert running.network._thread.is_alive()
    running.network.close()
    running.network.join(10_000)
    assert not running.network._thread.is_alive()
    assert running.network._client.closed


def metric(rig: Any, name: str) -> float | None:
    return {key.name: value for key, value in rig.core.metrics.snapshot().items()}.get(name)


class TestGroups:
    def test_without_a_group_nobody_is_a_member_and_nothing_is_committed(self, make_rig: MakeRig) -> None:
        rig = make_rig()
        assert rig.core.membership is None
        assert rig.core._commit_manager is None
        assert metric(rig, "rebalance-total") is None
        rig.fill(T0, 3)
        rig.consumer.assign([T0])
        assert len(rig.consumer.poll(1000)) == 3
        assert not rig.sent(ApiKeys.FIND_COORDINATOR)
        assert not rig.sent(ApiKeys.OFFSET_FETCH)

    def test_rebalances_are_counted(self, rig: Any) -> None:
        assert metric(rig, "rebalance-total") == 0
        rig.join()
        assert metric(rig, "rebalance-total") == 1

    def test_who_looks_for_the_coordinator_has_his_turn_after_all_who_may_want_it(self, rig: Any) -> None:
        assert type(rig.network._managers[-1]) is CoordinatorFinder
        assert rig.core.membership in rig.network._managers
        assert rig.core._commit_manager in rig.network._managers

    @pytest.mark.parametrize(("given", "told"), [("", None), ("r1", "r1")])
    def test_a_member_without_a_rack_tells_of_none(
        self, make_rig: MakeRig, given: str, told: str | None
    ) -> None:
        rig = make_rig(group_id="g", client_rack=given)
        assert rig.core.membership._settings.rack == told

    def test_a_group_that_may_not_be_used_ends_commits_but_not_the_reading_of_who_is_no_member(
        self, rig: Any
    ) -> None:
        refused = find_coordinator.Coordinator(key="g", error_code=30)
        answer = find_coordinator.FindCoordinatorResponse(coordinators=[refused])
        rig.handlers[ApiKeys.FIND_COORDINATOR] = lambda request, version: answer
        rig.fill(T0, 3)
        rig.consumer.assign([T0])
        rig.consumer.seek(T0, 0)
        with pytest.raises(GroupAuthorizationError, match="'g'"):
            rig.consumer.commit_sync({T0: OffsetAndMetadata(1)})
        assert len(rig.consumer.poll(1000)) == 3
