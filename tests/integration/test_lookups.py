"""Lookups of a consumer beside its reading."""

from __future__ import annotations

from harness.scenarios.reading import look_up_while_a_fetch_waits
from kclient.broker.embedded import EmbeddedKafka


def test_no_question_waits_for_records_that_do_not_come() -> None:
    with EmbeddedKafka() as kafka:
        look_up_while_a_fetch_waits(kafka.bootstrap_servers)
