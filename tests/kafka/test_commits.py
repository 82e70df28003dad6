"""Commits of a consumer at its end, on a real broker."""

from __future__ import annotations

import pytest

from harness.network.proxy import FaultProxy
from harness.real_kafka.broker import RealKafka
from harness.scenarios import commits


@pytest.mark.parametrize("end", ["close", "unsubscribe"])
@pytest.mark.parametrize("way", ["subscribed", "consumer protocol", "static", "assigned"])
def test_what_commit_async_was_asked_for_is_committed_and_told_before_the_end(
    kafka: RealKafka, way: str, end: str
) -> None:
    commits.commits_asked_for_before_the_end(kafka.bootstrap_servers, way, end)


def test_closing_does_not_wait_longer_than_it_may_for_an_answer_to_a_commit(
    kafka: RealKafka, kafka_proxy: FaultProxy
) -> None:
    commits.commits_that_are_never_answered(kafka.bootstrap_servers, kafka_proxy)


@pytest.mark.parametrize("way", ["subscribed", "consumer protocol"])
@pytest.mark.parametrize("end", commits.ENDS)
def test_the_end_commits_what_was_returned_unless_it_is_an_error(
    kafka: RealKafka, way: str, end: str
) -> None:
    commits.automatic_commits_at_the_end(kafka.bootstrap_servers, way, end)


def test_closing_during_a_join_does_not_wait_for_the_group(kafka: RealKafka) -> None:
    commits.close_during_a_join_that_waits_for_others(kafka.bootstrap_servers)


@pytest.mark.parametrize("automatic", [True, False])
def test_who_closes_while_the_group_waits_for_others_commits_what_it_has_read(
    kafka: RealKafka, automatic: bool
) -> None:
    commits.close_in_a_cooperative_rebalance_that_waits_for_others(kafka.bootstrap_servers, automatic)
