"""A member of the consumer protocol under random events on a virtual clock: what it says and hears always fits."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.consumer.closing import close_in_the_middle
from harness.consumer.consumer_group import ConsumerGroupModel
from harness.consumer.model import ConsumerModel
from harness.consumer.ways import CONSUMER, pairs, watched
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.internals.coordinator.consumer_member_state import ConsumerMemberState
from kclient.consumer.internals.coordinator.consumer_membership import ConsumerMembership
from kclient.consumer.listener import ConsumerRebalanceListener
from kclient.errors import Errors, KafkaError
from kclient.protocol.api_keys import ApiKeys

HEARTBEAT = ApiKeys.CONSUMER_GROUP_HEARTBEAT
PARTITIONS = [TopicPartition(topic, number) for topic in "tu" for number in (0, 1)]
REFUSALS = [
    Errors.COORDINATOR_LOAD_IN_PROGRESS,
    Errors.COORDINATOR_NOT_AVAILABLE,
    Errors.NOT_COORDINATOR,
    Errors.FENCED_MEMBER_EPOCH,
    Errors.UNKNOWN_MEMBER_ID,
    Errors.TOPIC_AUTHORIZATION_FAILED,
    Errors.GROUP_MAX_SIZE_REACHED,
    Errors.INVALID_REQUEST,
]
COMMIT_REFUSALS = [
    Errors.COORDINATOR_LOAD_IN_PROGRESS,
    Errors.NOT_COORDINATOR,
    Errors.STALE_MEMBER_EPOCH,
    Errors.UNKNOWN_MEMBER_ID,
]

events = st.one_of(
    st.tuples(st.just("poll"), st.integers(1, 5)),
    st.tuples(st.just("wait"), st.integers(1, 40)),
    st.tuples(st.just("refuse"), st.sampled_from(REFUSALS)),
    st.tuples(st.just("refuse a commit"), st.sampled_from(COMMIT_REFUSALS)),
    st.tuples(st.just("break"), st.none()),
    st.tuples(st.just("lose an answer"), st.none()),
    st.tuples(st.just("assign"), st.sets(st.sampled_from(PARTITIONS))),
    st.tuples(st.just("remove"), st.none()),
    st.tuples(st.just("subscribe"), st.sampled_from([("t",), ("u",), ("t", "u")])),
    st.tuples(st.just("unsubscribe"), st.sampled_from([("t",), ("u",), ("t", "u")])),
    st.tuples(st.just("hide topics"), st.booleans()),
    st.tuples(st.just("raise"), st.sampled_from(["assigned", "revoked", "lost"])),
    st.tuples(st.just("commit"), st.none()),
    st.tuples(st.just("sleep"), st.sampled_from([1000, 20_000, 70_000])),
)


class Ledger(ConsumerRebalanceListener):
    """Holds the listener's calls against each other."""

    def __init__(self) -> None:
        self.held: set[TopicPartition] = set()
        self.given_up: set[TopicPartition] = set()
        self.failing: set[str] = set()

    def on_partitions_assigned(self, partitions: Any) -> None:
        assert self.held.isdisjoint(partitions), "assigned what it has"
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
        self.held -= partitions

    def _fail(self, call: str) -> None:
        if call in self.failing:
            self.failing.discard(call)
            raise ValueError(f"the listener fails in {call}")


class Member:
    """A member, its coordinator, and what happens to them."""

    def __init__(self) -> None:
        self.rig = ConsumerModel(
            group_id="g",
            group_protocol="consumer",
            max_poll_interval_ms=60_000,
            auto_commit_interval_ms=200,
        )
        self.group = ConsumerGroupModel(self.rig)
        self.group.interval_ms = 50
        self.group.wanted = frozenset(PARTITIONS)
        self.ledger = Ledger()
        for tp in PARTITIONS:
            self.rig.fill(tp, 50)
        self._usual = self.group.heartbeat
        self.rig.handlers[HEARTBEAT] = self.heartbeat
        self._commit = self.rig.handlers[ApiKeys.OFFSET_COMMIT]
        self.rig.handlers[ApiKeys.OFFSET_COMMIT] = self.commit
        self.rig.consumer.subscribe(("t", "u"), self.ledger)

    def heartbeat(self, request: Any, version: int) -> Any:
        """Answer, and check that the member has nothing of what it says it gave up: others get that at once."""
        before = self.group.acknowledged
        response = self._usual(request, version)
        names = {topic_id: topic for topic, topic_id in self.rig.topic_ids.items()}
        given_up = {TopicPartition(names[topic_id], n) for topic_id, n in before - self.group.acknowledged}
        assert given_up.isdisjoint(self.ledger.held), "says it gave up what it has"
        assert response.error_code != Errors.INVALID_REQUEST, response.error_message
        return response

    def commit(self, request: Any, version: int) -> Any:
        """Take offsets of the member as the coordinator knows it."""
        if request.member_id != self.group.member_id:
            return self.rig.refuse_commit(Errors.UNKNOWN_MEMBER_ID)(request, version)
        if request.generation_id_or_member_epoch != self.group.member_epoch:
            return self.rig.refuse_commit(Errors.STALE_MEMBER_EPOCH)(request, version)
        return self._commit(request, version)

    def happens(self, event: str, of: Any) -> None:
        rig = self.rig
        if event == "poll":
            self.poll(of)
        elif event == "wait":
            rig.rounds(of)
        elif event == "refuse":
            rig.on(HEARTBEAT, self.group.refuse(of))
        elif event == "refuse a commit":
            rig.on(ApiKeys.OFFSET_COMMIT, rig.refuse_commit(of))
        elif event == "break":
            rig.on(HEARTBEAT, ConnectionError("broken"))
        elif event == "lose an answer":
            rig.on(HEARTBEAT, self.heard_and_lost)
        elif event == "assign":
            self.group.wanted = frozenset(of)
        elif event == "remove":
            self.group.remove_member()
        elif event == "subscribe":
            rig.consumer.subscribe(of, self.ledger)
        elif event == "unsubscribe":
            self.quietly(rig.consumer.unsubscribe)
            rig.consumer.subscribe(of, self.ledger)
        elif event == "hide topics":
            rig.metadata_held = of
        elif event == "raise":
            self.ledger.failing.add(of)
        elif event == "commit":
            self.quietly(rig.consumer.commit_async)
        else:
            rig.time.advance(of)
            rig.rounds(3)

    def heard_and_lost(self, request: Any, version: int) -> Any:
        if request.member_epoch >= 0:
            self.heartbeat(request, version)
        return ConnectionError("lost")

    def quietly(self, call: Any) -> None:
        try:
            call()
        except (KafkaError, ValueError):
            pass

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
        self.rig.metadata_held = False
        membership = self.rig.core.membership
        assert isinstance(membership, ConsumerMembership)
        for _ in range(40):
            self.poll(10)
            self.rig.time.advance(500)
        self.poll(20)
        topics = self.rig.consumer.subscription()
        wanted = {tp for tp in self.group.wanted or () if tp.topic in topics}
        assert membership.state is ConsumerMemberState.STABLE
        assert self.ledger.held == wanted
        assert self.group.acknowledged == {(self.rig.topic_ids[tp.topic], tp.partition) for tp in wanted}
        assert membership.generation.id == self.group.member_epoch == self.group.epoch


@settings(max_examples=100, deadline=None)
@given(happening=st.lists(events, max_size=25))
def test_what_is_said_and_heard_always_fits_and_the_member_recovers(
    happening: list[tuple[str, Any]],
) -> None:
    member = Member()
    with watched(ConsumerMemberState) as taken:
        try:
            member.poll(5)
            for event, of in happening:
                member.happens(event, of)
            member.recovers()
        finally:
            member.ledger.failing.clear()
            member.rig.consumer.close()
    assert taken.keys() <= pairs(CONSUMER)
    assert not member.ledger.held
    assert member.group.member_id is None


@settings(max_examples=100, deadline=None)
@given(happening=st.lists(events, max_size=25))
def test_whatever_happens_a_member_that_closes_has_committed_what_it_gives_up(
    happening: list[tuple[str, Any]],
) -> None:
    member = Member()
    try:
        member.poll(5)
        for event, of in happening:
            member.happens(event, of)
    finally:
        close_in_the_middle(member.rig, member.ledger)
    assert not member.ledger.held
