"""Lookups of a consumer beside its reading."""

from __future__ import annotations

import pytest

from harness.scenarios.reading import know_the_lag_without_reading, look_up_while_a_fetch_waits
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
