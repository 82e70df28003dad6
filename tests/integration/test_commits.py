"""Commits of a consumer on its way and at its end, on the embedded broker."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from harness.broker.proxied import proxied_broker
from harness.network.proxy import FaultProxy
from harness.scenarios import commits
from harness.topics import new_topic, produce
from kclient.common.topic_partition import TopicPartition
from kclient.consumer import KafkaConsumer
from kclient.protocol.api_keys import ApiKeys


@pytest.mark.parametrize("end", ["close", "unsubscribe"])
@pytest.mark.parametrize("way", ["subscribed", "static", "assigned"])
def test_what_commit_async_was_asked_for_is_committed_and_told_before_the_end(
    servers: str, way: str, end: str
) -> None:
    commits.commits_asked_for_before_the_end(servers, way, end)


@pytest.mark.parametrize("way", ["subscribed", "assigned"])
@pytest.mark.parametrize("end", commits.ENDS)
def test_the_end_commits_what_was_returned_unless_it_is_an_error(servers: str, way: str, end: str) -> None:
    commits.automatic_commits_at_the_end(servers, way, end)


def test_closing_during_a_join_does_not_wait_for_the_group(servers: str) -> None:
    commits.close_during_a_join_that_waits_for_others(servers)


@pytest.fixture
def proxied() -> Iterator[tuple[str, FaultProxy]]:
    """A broker's address and the proxy that clients are sent to from there."""
    with proxied_broker() as (proxy, direct):
        yield direct, proxy


def test_closing_does_not_wait_longer_than_it_may_for_an_answer_to_a_commit(
    proxied: tuple[str, FaultProxy],
) -> None:
    servers, proxy = proxied
    commits.commits_that_are_never_answered(servers, proxy)


@pytest.mark.parametrize("who", ["automatic", "commit_async"])
def test_committing_for_each_record_piles_up_nothing_where_commits_are_slow(
    proxied: tuple[str, FaultProxy], who: str
) -> None:
    servers, proxy = proxied
    count = 5000
    topic = new_topic(servers, 1)
    tp = TopicPartition(topic, 0)
    produce(servers, topic, count)
    slow = proxy.delay(ApiKeys.OFFSET_COMMIT, 100, times=-1)
    settings: dict[str, Any] = {
        "bootstrap.servers": proxy.bootstrap,
        "group.id": topic,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 0,
        "enable.auto.commit": who == "automatic",
    }
    most = 0
    with KafkaConsumer(settings) as consumer:
        network = consumer._core.network
        commits = consumer._core._commit_manager
        assert commits is not None
        consumer.assign([tp])
        for record in consumer:
            if who == "commit_async":
                consumer.commit_async()
            most = max(most, len(network._tasks) + len(commits._waiting) + len(network._sender._unsent))
            if record.offset == count - 1:
                break
        started = time.monotonic()
    assert time.monotonic() - started < 20
    assert most <= 5, "a commit that waits, and what is not about commits"
    assert slow.hits < count / 20
    with KafkaConsumer(settings) as consumer:
        found = consumer.committed([tp])[tp]
    assert found is not None
    assert found.offset == count


@pytest.mark.parametrize("automatic", [True, False])
def test_who_closes_while_the_group_waits_for_others_commits_what_it_has_read(
    servers: str, automatic: bool
) -> None:
    commits.close_in_a_cooperative_rebalance_that_waits_for_others(servers, automatic)
