"""The sticky assignors in groups whose members, subscriptions and topics change: what holds after every rebalance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.consumer.group_of_assignors import Group, cluster_of
from kclient.common.cluster import Cluster
from kclient.common.topic_partition import TopicPartition
from kclient.consumer.assignor import CooperativeStickyAssignor, StickyAssignor

TOPICS = "tuvw"
RACKS = ["a", "b", "ab", "c", "bc", "abc"]
Shares = Mapping[str, tuple[TopicPartition, ...]]
Changes = list[tuple[str, str, frozenset[str]]]
Layout = dict[str, int | list[str]]

members = st.integers(0, 9).map("m{}".format)
racks = st.sampled_from(["a", "b", "c", None])
subscriptions = st.frozensets(st.sampled_from(TOPICS), min_size=1)
all_topics = st.just(frozenset(TOPICS))
plain_topics = st.fixed_dictionaries(dict.fromkeys(TOPICS, st.integers(0, 9)))
racked_topics = st.fixed_dictionaries(dict.fromkeys(TOPICS, st.lists(st.sampled_from(RACKS), max_size=9)))


def changes(
    topics: st.SearchStrategy[frozenset[str]],
) -> st.SearchStrategy[Changes]:
    kinds = st.sampled_from(["join", "leave", "subscribe"])
    return st.lists(st.tuples(kinds, members, topics), max_size=4)


def change(group: Group, made: Changes, rack: str | None = None) -> None:
    for kind, member_id, topics in made:
        present = member_id in group.members
        if kind == "leave" and present and len(group.members) > 1:
            group.leave(member_id)
        elif kind == "join" and not present:
            group.join(member_id, topics, rack)
        elif kind == "subscribe" and present:
            group.members[member_id].topics = topics


def assert_complete(group: Group, cluster: Cluster, shares: Shares) -> None:
    """Every partition that anybody subscribes to has one owner, who does."""
    counts = Counter(tp for share in shares.values() for tp in share)
    subscribed = {topic for member in group.members.values() for topic in member.topics}
    infos = [info for topic in subscribed for info in cluster.partitions_for_topic(topic)]
    assert counts == {TopicPartition(info.topic, info.partition): 1 for info in infos}
    for member_id, share in shares.items():
        assert {tp.topic for tp in share} <= group.members[member_id].topics


def assert_even(group: Group, shares: Shares) -> None:
    """No partition of a member could go to one that has at least two less."""
    for share in shares.values():
        for other_id, other in shares.items():
            if len(share) > len(other) + 1:
                assert {tp.topic for tp in share}.isdisjoint(group.members[other_id].topics)


def as_sets(shares: Shares) -> dict[str, set[TopicPartition]]:
    return {member_id: set(share) for member_id, share in shares.items()}


@pytest.mark.parametrize("topics", [all_topics, subscriptions], ids=["same topics", "any topics"])
@pytest.mark.parametrize("layout", [plain_topics, racked_topics], ids=["no racks", "racks"])
def test_every_rebalance_is_complete_and_even(
    topics: st.SearchStrategy[frozenset[str]], layout: st.SearchStrategy[Layout]
) -> None:
    @settings(max_examples=60, deadline=None, derandomize=True)
    @given(st.lists(st.tuples(changes(topics), layout, racks), min_size=1, max_size=5), topics)
    def run(
        rounds: list[tuple[Changes, Layout, str | None]],
        first: frozenset[str],
    ) -> None:
        group = Group(StickyAssignor)
        group.join("first", first)
        for made, layout_now, rack in rounds:
            change(group, made, rack)
            cluster = cluster_of(layout_now)
            shares = group.rebalance(cluster)
            assert_complete(group, cluster, shares)
            assert_even(group, shares)

    run()


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(changes(subscriptions), min_size=1, max_size=4), plain_topics)
def test_nothing_moves_if_nothing_has_changed(rounds: list[Changes], layout: Layout) -> None:
    group, cluster = Group(StickyAssignor), cluster_of(layout)
    group.join("first", TOPICS)
    for made in rounds:
        change(group, made)
        before = as_sets(group.rebalance(cluster))
        assert as_sets(group.rebalance(cluster)) == before


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.lists(changes(all_topics), min_size=1, max_size=5), plain_topics)
def test_who_stays_keeps_what_evenness_allows(rounds: list[Changes], layout: Layout) -> None:
    group, cluster = Group(StickyAssignor), cluster_of(layout)
    group.join("first", TOPICS)
    before: dict[str, set[TopicPartition]] = {}
    for made in rounds:
        change(group, made)
        after = as_sets(group.rebalance(cluster))
        share = sum(map(len, after.values())) // len(after)
        for member_id in before.keys() & after.keys():
            assert len(before[member_id] & after[member_id]) >= min(len(before[member_id]), share)
        if before.keys() > after.keys():  # who only gets more gives up nothing
            assert all(before[member_id] <= after[member_id] for member_id in after)
        before = after


@pytest.mark.parametrize("topics", [all_topics, subscriptions], ids=["same topics", "any topics"])
def test_a_cooperative_group_gives_away_nothing_that_is_owned_and_settles(
    topics: st.SearchStrategy[frozenset[str]],
) -> None:
    @settings(max_examples=100, deadline=None, derandomize=True)
    @given(st.lists(st.tuples(changes(topics), plain_topics), min_size=1, max_size=5), topics)
    def run(
        rounds: list[tuple[Changes, Layout]],
        first: frozenset[str],
    ) -> None:
        group = Group(CooperativeStickyAssignor)
        group.join("first", first)
        for made, layout in rounds:
            change(group, made)
            cluster = cluster_of(layout)
            for _ in range(2):
                owners = {tp: member_id for member_id, member in group.members.items() for tp in member.owned}
                shares = group.rebalance(cluster)
                assert all(
                    owners.get(tp, member_id) == member_id
                    for member_id, share in shares.items()
                    for tp in share
                )
            assert_complete(group, cluster, shares)
            assert_even(group, shares)
            assert as_sets(group.rebalance(cluster)) == as_sets(shares)

    run()
