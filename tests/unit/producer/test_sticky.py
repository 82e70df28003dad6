from __future__ import annotations

from collections import Counter

from kclient.common.cluster import Cluster
from kclient.common.node import Node
from kclient.common.topic_partition import PartitionInfo
from kclient.producer.internals.sticky import NodeAvailability, StickyPartition, weighted_choice

NODES = [Node(i, "h", 1) for i in range(3)]


def cluster(*leaders: int | None) -> Cluster:
    infos = [
        PartitionInfo("t", i, None if leader is None else NODES[leader]) for i, leader in enumerate(leaders)
    ]
    return Cluster("c", NODES, infos)


def chosen(
    sticky: StickyPartition, where: Cluster, backlogs: dict[int, int], now_ms: int = 0
) -> Counter[int]:
    return Counter(sticky.next_partition(where, lambda p: backlogs.get(p, 0), now_ms) for _ in range(3000))


def test_a_short_queue_is_chosen_in_proportion_to_how_much_shorter_it_is() -> None:
    draws = iter(range(8))
    counts = Counter(weighted_choice([0, 3, 1], lambda _: next(draws)) for _ in range(8))
    assert counts == {0: 4, 1: 1, 2: 3}


def test_equal_queues_are_chosen_equally() -> None:
    sticky = StickyPartition("t", adaptive=True, availability=NodeAvailability(0))
    counts = chosen(sticky, cluster(0, 1, 2), {0: 5, 1: 5, 2: 5})
    assert min(counts.values()) > 800


def test_a_long_queue_is_avoided_only_if_adaptive() -> None:
    availability = NodeAvailability(0)
    adaptive = StickyPartition("t", adaptive=True, availability=availability)
    plain = StickyPartition("t", adaptive=False, availability=availability)
    assert chosen(adaptive, cluster(0, 1), {0: 99})[0] < 150
    assert chosen(plain, cluster(0, 1), {0: 99})[0] > 1200


def test_partitions_without_leader_are_left_out_unless_all_are() -> None:
    sticky = StickyPartition("t", adaptive=True, availability=NodeAvailability(0))
    assert set(chosen(sticky, cluster(0, None, 2), {})) == {0, 2}
    assert set(chosen(sticky, cluster(None, None), {})) == {0, 1}


def test_a_broker_that_takes_nothing_for_the_timeout_is_left_out_until_it_does() -> None:
    availability = NodeAvailability(1000)
    sticky = StickyPartition("t", adaptive=True, availability=availability)
    availability.stalled(1, 100)
    availability.stalled(1, 900)
    assert set(chosen(sticky, cluster(0, 1), {}, now_ms=1099)) == {0, 1}
    assert set(chosen(sticky, cluster(0, 1), {}, now_ms=1100)) == {0}
    availability.progressed(1)
    assert set(chosen(sticky, cluster(0, 1), {}, now_ms=1100)) == {0, 1}


def test_availability_timeout_0_never_leaves_a_broker_out() -> None:
    availability = NodeAvailability(0)
    availability.stalled(1, 0)
    assert availability.available(NODES[1], 10**9)
