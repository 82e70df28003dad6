"""The plan of what to fetch, which is changed where something changes, beside a look at every partition."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kclient.common.node import Node
from kclient.common.topic_partition import TopicPartition
from kclient.common.uuid import Uuid
from kclient.consumer.internals.fetch_plan import FetchPlan, NodePlan
from kclient.consumer.internals.fetch_session import FetchSession, WantedPartition
from kclient.consumer.internals.fetcher import Fetcher
from kclient.protocol.api_keys import ApiKeys
from kclient.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from kclient.utils.log_context import LogContext

A, B = Node(1, "a", 1), Node(2, "b", 1)
T0, T1, U0, U1 = ALL = [TopicPartition(topic, number) for topic in "tu" for number in (0, 1)]
ID = Uuid(b"t" * 16)


def want(offset: int) -> WantedPartition:
    return WantedPartition(offset, ID, 1000)


@pytest.fixture
def plan() -> FetchPlan:
    return FetchPlan()


def of(plan: FetchPlan, node: Node) -> NodePlan:
    return next(each for each in plan.without(()) if each.node == node)


def test_a_partition_is_fetched_from_one_broker_alone(plan: FetchPlan) -> None:
    plan.put(T0, A, want(0))
    plan.put(T0, B, want(0))
    assert (of(plan, A).wanted, of(plan, B).wanted) == ({}, {T0: want(0)})
    plan.put(T0, A, None)
    assert (of(plan, A).full, of(plan, B).wanted) == ({T0}, {})
    plan.remove(T0)
    plan.remove(T0)
    assert not of(plan, A).full


def test_a_broker_is_left_out_while_it_is_busy_and_known_by_its_last_address(plan: FetchPlan) -> None:
    plan.put(T0, A, want(0))
    plan.put(T1, B, want(0))
    assert [each.node for each in plan.without({1: "a flight"})] == [B]
    moved = Node(1, "elsewhere", 1)
    plan.put(T0, moved, want(0))
    assert {each.node for each in plan.without(())} == {moved, B}


def test_what_changes_after_a_fetch_of_everything_is_known(plan: FetchPlan) -> None:
    plan.put(T0, A, want(0))
    plan.put(T1, A, want(0))
    mine = of(plan, A)
    assert mine.changed is None
    mine.fetched(mine.wanted)
    plan.put(T0, A, want(0))
    assert mine.changed == set()
    plan.put(T0, A, want(5))
    plan.put(T1, A, None)
    assert mine.changed == {T0, T1}
    mine.fetched({T0: want(5)})
    assert mine.changed is None, "a fetch of a part leaves it open what the broker has of the others"


# A session that is told of changes alone.

_PARTITIONS = st.sampled_from(ALL)
_WANTED = st.none() | st.builds(
    WantedPartition,
    st.integers(0, 2),
    st.sampled_from([Uuid(b"1" * 16), Uuid(b"2" * 16)]),
    st.just(1000),
    st.none() | st.just(3),
)
_STEPS = st.lists(
    st.tuples(
        st.dictionaries(_PARTITIONS, _WANTED, max_size=3), st.sampled_from(["answered", "evicted", "lost"])
    ),
    max_size=8,
)


@given(_STEPS)
def test_a_session_told_of_changes_holds_what_is_wanted(steps: list[Any]) -> None:
    session = FetchSession(1, LogContext())
    plan = FetchPlan()
    broker: dict[TopicPartition, WantedPartition] = {}
    for changes, outcome in steps:
        for tp, each in changes.items():
            if each is None:
                plan.remove(tp)
            else:
                # A topic has one id for all its partitions.
                plan.put(tp, A, each._replace(topic_id=Uuid(tp.topic.encode() * 16)))
        mine = next(plan.without(()), None)
        if mine is None or not mine.wanted:
            continue
        whole = mine.changed is None or session.is_new
        fetch = session.build(mine.wanted, None if whole else mine.changed)
        mine.fetched(mine.wanted)
        if fetch.epoch == 0:
            broker.clear()
        for tp, topic_id in fetch.to_forget:
            assert broker.pop(tp).topic_id == topic_id
        assert all(broker.get(tp) != each for tp, each in fetch.to_send.items()), "nothing is said twice"
        broker.update(fetch.to_send)
        assert broker == mine.wanted == session.partitions
        if outcome == "lost":
            session.start_over()
            continue
        partitions = list(mine.wanted) if fetch.epoch == 0 else list(fetch.to_send)
        answer = FetchResponse(
            session_id=0 if outcome == "evicted" else 7,
            responses=[
                FetchableTopicResponse(
                    topic_id=mine.wanted[tp].topic_id,
                    partitions=[PartitionData(partition_index=tp.partition)],
                )
                for tp in partitions
            ],
        )
        found = session.on_response(answer, 16)
        assert found is not None
        assert found.keys() == set(partitions)


# A consumer to which anything may happen.


def looked_up(fetcher: Any, now_ms: int) -> dict[int, tuple[dict[Any, Any], set[Any]]]:
    """The wanted and the full partitions of each broker, as a look at every partition finds them."""
    found: dict[int, tuple[dict[Any, Any], set[Any]]] = {}
    for tp, state in fetcher._assigned.by_partition.items():
        position = state.fetch_position()
        if position is None or now_ms < fetcher._retry_ms.get(tp, 0):
            continue
        node = fetcher._node_for(state, position, now_ms)
        if node is None:
            continue
        wanted, full = found.setdefault(node.id, ({}, set()))
        offset = fetcher._buffer.next_fetch_offset(tp, position.offset)
        if offset is None:
            full.add(tp)
        else:
            wanted[tp] = fetcher._wanted(tp, position, offset)
    return found


@pytest.mark.parametrize("seed", range(12))
def test_the_plan_is_what_a_look_at_every_partition_finds(
    make_rig: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)
    rig = make_rig(max_poll_records=chance.choice([2, 500]), fetch_max_bytes=chance.choice([300, 50_000_000]))
    rig.nodes[1] = Node(1, "other", 9092)
    usual, looks = Fetcher._try_send, [0]

    def try_send(fetcher: Any, plan: NodePlan, now_ms: int) -> int:
        expected = looked_up(fetcher, now_ms)
        for each in fetcher._plan.without(()):
            assert (each.wanted, each.full) == expected.pop(each.node.id, ({}, set()))
        assert not expected
        looks[0] += 1
        return usual(fetcher, plan, now_ms)

    monkeypatch.setattr(Fetcher, "_try_send", try_send)
    consumer = rig.consumer
    consumer.assign(ALL)

    def some() -> list[TopicPartition]:
        held = sorted(consumer.assignment())
        return chance.sample(held, chance.randint(1, len(held)))

    def move_leaders() -> None:
        for tp in some():
            node, epoch = rig.leaders.get(tp, (0, 5))
            rig.leaders[tp] = (1 - node, epoch + 1)
        rig.core.metadata.request_update()

    def recreate() -> None:
        rig.topic_ids["u"] = Uuid(chance.randbytes(16))
        rig.core.metadata.request_update()

    events: list[Callable[[], object]] = [
        lambda: consumer.poll(chance.choice([0, 20, 100])),
        lambda: consumer.poll(50),
        lambda: rig.fill(chance.choice(ALL), chance.randint(0, 60)),
        lambda: consumer.pause(some()),
        lambda: consumer.resume(consumer.paused()),
        lambda: [consumer.seek(tp, chance.randint(0, 60)) for tp in some()],
        lambda: consumer.seek_to_beginning(some()),
        lambda: consumer.assign(chance.sample(ALL, chance.randint(1, 4))),
        move_leaders,
        recreate,
    ]
    for _ in range(150):
        chance.choice(events)()
        rig.rounds(chance.randint(0, 3))
    assert looks[0] > 20


def test_where_nothing_has_changed_no_partition_is_looked_at(
    rig: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual, looked = Fetcher._place, []

    def place(fetcher: Any, tp: TopicPartition, now_ms: int) -> int:
        looked.append(tp)
        return usual(fetcher, tp, now_ms)

    monkeypatch.setattr(Fetcher, "_place", place)
    rig.consumer.assign(ALL)
    rig.consumer.poll(100)
    rig.consumer.poll(100)
    looked.clear()
    sent = len(rig.sent(ApiKeys.FETCH))
    assert not rig.consumer.poll(3000)
    assert len(rig.sent(ApiKeys.FETCH)) > sent
    assert not looked
    rig.fill(U1, 3)
    assert rig.consumer.poll(1000)
    rig.consumer.poll(1000)
    assert set(looked) == {U1}
