"""Lookups of a consumer beside its reading."""

from __future__ import annotations

import pytest

from harness.scenarios.reading import (
    know_the_lag_without_reading,
    look_up_while_a_fetch_waits,
    read_from_offsets_that_do_not_exist,
)
from harness.topics import new_topic, produce
from kclient.broker.embedded import EmbeddedKafka


def test_no_question_waits_for_records_that_do_not_come() -> None:
    with EmbeddedKafka() as kafka:
        look_up_while_a_fetch_waits(kafka.bootstrap_servers)


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_a_lag_is_known_before_anything_is_read(isolation: str) -> None:
    with EmbeddedKafka() as kafka:
        topic = new_topic(kafka.bootstrap_servers, 1)
        produce(kafka.bootstrap_servers, topic, 10)
        know_the_lag_without_reading(kafka.bootstrap_servers, isolation, topic, 10)


@pytest.mark.parametrize("policy", ["earliest", "latest", "none"])
def test_an_offset_that_does_not_exist_is_reset_or_raised(policy: str) -> None:
    with EmbeddedKafka() as kafka:
        read_from_offsets_that_do_not_exist(kafka.bootstrap_servers, policy)
