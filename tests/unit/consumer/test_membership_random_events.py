"""A classic member under random events on a virtual clock: what its listener hears always fits, and it recovers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.consumer.closing import close_in_the_middle
from harness.consumer.model import ConsumerModel
from harness.consumer.ways import CLASSIC, pairs, watched
from kclient.common.cluster import Cluster
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.assignor import Assignment
from kclient.consumer.assignor.base import ConsumerPartitionAssignor, RebalanceProtocol, Subscription
from kclient.consumer.internals.coordinator.classic_membership import ClassicMembership
from kclient.consumer.internals.coordinator.member_state import MemberState
from kclient.consumer.listener import ConsumerRebalanceListener
from kclient.errors import Errors, KafkaError
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages import heartbeat, join_group, sync_group

_PARTITIONS = [TopicPartition(topic, number) for topic in "tu" for number in (0, 1)]
_RECOVERABLE = [
    Errors.COORDINATOR_LOAD_IN_PROGRESS,
    Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.NOT_COORDINATOR,
    Errors.REBALANCE_IN_PROGRESS,
    Errors.UNKNOWN_MEMBER_ID,
    Errors.ILLEGAL_GENERATION,
]
_BROKEN = ConnectionError("broken")

codes = st.sampled_from(_RECOVERABLE)
events = st.one_of(
    st.tuples(st.just("poll"), st.integers(1, 5)),
    st.tuples(st.just("wait"), st.integers(1, 40)),
    st.tuples(st.just("heartbeat"), codes),
    st.tuples(st.just("join"), codes),
    st.tuples(st.just("sync"), codes),
    st.tuples(st.just("commit"), codes),
    st.tuples(st.just("break"), st.sampled_from([ApiKeys.HEARTBEAT, ApiKeys.JOIN_GROUP, ApiKeys.SYNC_GROUP])),
    st.tuples(st.just("lose an answer"), st.sampled_from([ApiKeys.JOIN_GROUP, ApiKeys.SYNC_GROUP])),
    st.tuples(st.just("assign"), st.sets(st.sampled_from(_PARTITIONS))),
    st.tuples(st.just("subscribe"), st.sampled_from([("t",), ("u",), ("t", "u")])),
    st.tuples(st.just("raise"), st.sampled_from(["assigned", "revoked", "lost"])),
    st.tuples(st.just("enforce"), st.none()),
    st.tuples(st.just("sleep"), st.sampled_from([1000, 20_000, 70_000])),
)


class Sharing(ConsumerPartitionAssignor):
    """Gives every member what the test wants, of the topics that it is subscribed to."""

    def __init__(self, protocol: RebalanceProtocol) -> None:
        self.wanted: set[TopicPartition] = set(_PARTITIONS)
        self._protocol = protocol

    @property
    def name(self) -> str:
        return "sharing"

    @property
    def supported_protocols(self) -> tuple[RebalanceProtocol, ...]:
        return (self._protocol,)

    def assign(self, cluster: Cluster, subscriptions: Mapping[str, Subscription]) -> dict[str, Assignment]:
        return {
            member_id: Assignment(tuple(sorted(tp for tp in self.wanted if tp.topic in each.topics)))
            for member_id, each in subscriptions.items()
        }


class Ledger(ConsumerRebalanceListener):
    """Holds the listener's calls against each other."""

    def __init__(self, eager: bool) -> None:
        self.held: set[TopicPartition] = set()
        self.given_up: set[TopicPartition] = set()
        self.failing: set[str] = set()
        self._eager = eager

    def on_partitions_assigned(self, partitions: Any) -> None:
        assert self.held.isdisjoint(partitions), "assigned what it has"
        assert not (self._eager and self.held), "assigned before everything was given up"
        self.held |= set(partitions)
        self._fail("assigned")

    def on_partitions_revoked(self, partitions: Any) -> None:
        self._gone(set(partitions))
        self.given_up |= set(partitions)
        self._fail("revoked")

    def on_partitions_lost(self, partitions: Any) -> None:
        self._gone(set(partitions))
        self._fail("lost")

    def _gone(self, partitions: set[TopicPartition]) -> None:
        assert partitions <= self.held, "gave up what it does not have"
        assert partitions, "a call about nothing"
        assert not self._eager or partitions == self.held, "gave up a part"
        self.held -= partitions

    def _fail(self, call: str) -> None:
        if call in self.failing:
            self.failing.discard(call)
            raise ValueError(f"the listener fails in {call}")


class Member:
    """A member, and what happens to it."""

    def __init__(self, protocol: RebalanceProtocol) -> None:
        self.assignor = Sharing(protocol)
        self.rig = ConsumerModel(
            group_id="g",
            partition_assignment_strategy=[self.assignor],
            heartbeat_interval_ms=50,
            max_poll_interval_ms=60_000,
            auto_commit_interval_ms=200,
        )
        self.ledger = Ledger(protocol is RebalanceProtocol.EAGER)
        self._joins_before = -1
        for tp in _PARTITIONS:
            self.rig.fill(tp, 50)
        self.rig.consumer.subscribe(("t", "u"), self.ledger)

    def happens(self, event: str, of: Any) -> None:
        rig = self.rig
        if event == "poll":
            self.poll(of)
        elif event == "wait":
            rig.rounds(of)
        elif event == "heartbeat":
            rig.on(ApiKeys.HEARTBEAT, heartbeat.HeartbeatResponse(error_code=of))
        elif event == "join":
            rig.on(ApiKeys.JOIN_GROUP, join_group.JoinGroupResponse(error_code=of))
        elif event == "sync":
            rig.on(ApiKeys.SYNC_GROUP, sync_group.SyncGroupResponse(error_code=of))
        elif event == "commit":
            rig.on(ApiKeys.OFFSET_COMMIT, rig.refuse_commit(of))
        elif event == "break":
            rig.on(of, _BROKEN)
        elif event == "lose an answer":
            rig.on(of, lambda _request, _version: None)
        elif event == "assign":
            self.assignor.wanted = of
            self._joins_before = self._joins()
            self._call_to_join()
        elif event == "subscribe":
            rig.consumer.subscribe(of, self.ledger)
        elif event == "raise":
            self.ledger.failing.add(of)
        elif event == "enforce":
            rig.consumer.enforce_rebalance("because")
        else:
            rig.time.advance(of)
            rig.rounds(3)

    def _joins(self) -> int:
        return len(self.rig.sent(ApiKeys.JOIN_GROUP))

    def _call_to_join(self) -> None:
        answer = heartbeat.HeartbeatResponse(error_code=Errors.REBALANCE_IN_PROGRESS)
        self.rig.on(ApiKeys.HEARTBEAT, answer)

    def poll(self, times: int) -> None:
        for _ in range(times):
            try:
                records = self.rig.consumer.poll(20)
            except (KafkaError, ValueError):
                records = []
            read = {record.topic_partition for record in records}
            assert read <= self.ledger.held, f"records of {read - self.ledger.held}, which it does not have"
            assert self.rig.consumer.assignment() == self.ledger.held

    def recovers(self) -> None:
        """Nothing goes wrong any more, and the application polls on."""
        self.ledger.failing.clear()
        membership = self.rig.core.membership
        assert isinstance(membership, ClassicMembership)
        for _ in range(40):
            if self._joins() == self._joins_before:
                self._call_to_join()  # a broker says so until the member joins
            self.poll(10)
            self.rig.time.advance(2000)  # also an answer that is lost is given up in the end
        self.poll(20)
        topics = self.rig.consumer.subscription()
        assert membership.state is MemberState.STABLE
        assert self.ledger.held == {tp for tp in self.assignor.wanted if tp.topic in topics}


@pytest.mark.parametrize("protocol", RebalanceProtocol)
@settings(max_examples=40, deadline=None)
@given(happening=st.lists(events, max_size=25))
def test_what_the_listener_hears_always_fits_and_the_member_recovers(
    protocol: RebalanceProtocol, happening: list[tuple[str, Any]]
) -> None:
    member = Member(protocol)
    with watched(MemberState) as taken:
        try:
            member.poll(5)
            for event, of in happening:
                member.happens(event, of)
            member.recovers()
        finally:
            member.ledger.failing.clear()
            member.rig.consumer.close()
    assert not member.ledger.held
    assert taken.keys() <= pairs(CLASSIC)


@pytest.mark.parametrize("protocol", RebalanceProtocol)
@settings(max_examples=25, deadline=None)
@given(happening=st.lists(events, max_size=25))
def test_whatever_happens_a_member_that_closes_has_committed_what_it_gives_up(
    protocol: RebalanceProtocol, happening: list[tuple[str, Any]]
) -> None:
    member = Member(protocol)
    try:
        member.poll(5)
        for event, of in happening:
            member.happens(event, of)
    finally:
        close_in_the_middle(member.rig, member.ledger)
    assert not member.ledger.held
