"""The time when metadata is due: what a request, a failure, an answer without news and a clock do to it."""

from __future__ import annotations

import pytest

from kclient.client.metadata_schedule import MetadataSchedule
from kclient.config.client_configs import ClientConfig
from kclient.producer.config import ProducerConfig
from kclient.utils.backoff import ExponentialBackoff

BACKOFF_MS = 100
MAX_MS = 1000
MAX_AGE_MS = 300_000
NOW_MS = 5_000_000


@pytest.fixture
def schedule() -> MetadataSchedule:
    return MetadataSchedule(ExponentialBackoff(BACKOFF_MS, MAX_MS, jitter=0), MAX_AGE_MS)


def succeed(schedule: MetadataSchedule, *, partial: bool = False, changed: bool = True) -> None:
    """An answer at NOW_MS to a request that was made just before."""
    schedule.succeeded(NOW_MS, partial=partial, request_version=schedule.request_version, changed=changed)


def wait_ms(schedule: MetadataSchedule) -> int:
    return schedule.time_to_next_update_ms(NOW_MS)


def test_the_first_update_is_due_at_once(schedule: MetadataSchedule) -> None:
    assert wait_ms(schedule) == 0
    assert not schedule.had_success


def test_a_partial_answer_is_no_picture_of_the_cluster(schedule: MetadataSchedule) -> None:
    schedule.request_full(reset_backoff=False)
    schedule.request_partial()
    succeed(schedule, partial=True)
    assert not schedule.had_success
    assert schedule.full_requested
    assert not schedule.partial_requested


def test_age_is_counted_from_the_last_full_answer(schedule: MetadataSchedule) -> None:
    succeed(schedule)
    schedule.succeeded(NOW_MS + 1000, partial=True, request_version=schedule.request_version, changed=True)
    assert schedule.time_to_next_update_ms(NOW_MS + 1000) == MAX_AGE_MS - 1000
    assert schedule.time_to_next_update_ms(NOW_MS + MAX_AGE_MS) == 0
    assert schedule.time_to_next_update_ms(NOW_MS + MAX_AGE_MS + 1) == 0


def test_even_with_an_age_of_zero_there_is_a_wait_between_updates() -> None:
    schedule = MetadataSchedule(ExponentialBackoff(BACKOFF_MS, MAX_MS, jitter=0), 0)
    succeed(schedule)
    assert wait_ms(schedule) == BACKOFF_MS


def test_the_wait_is_drawn_once_for_each_try() -> None:
    schedule = MetadataSchedule(ExponentialBackoff(10_000, 20_000, jitter=0.5), MAX_AGE_MS)
    schedule.failed(NOW_MS)
    first = wait_ms(schedule)
    assert 5000 <= first <= 15_000
    assert [wait_ms(schedule) for _ in range(20)] == [first] * 20
    assert schedule.time_to_next_update_ms(NOW_MS + first) == 0


def test_the_longer_row_of_failures_or_answers_without_news_counts(schedule: MetadataSchedule) -> None:
    for _ in range(3):
        succeed(schedule, changed=False)
    schedule.request_full(reset_backoff=False)
    assert wait_ms(schedule) == 4 * BACKOFF_MS
    schedule.failed(NOW_MS)
    assert wait_ms(schedule) == 4 * BACKOFF_MS
    for _ in range(3):
        schedule.failed(NOW_MS)
    assert wait_ms(schedule) == 8 * BACKOFF_MS


def test_an_answer_forgets_failures_but_not_answers_without_news(schedule: MetadataSchedule) -> None:
    for _ in range(5):
        schedule.failed(NOW_MS)
    assert wait_ms(schedule) == MAX_MS
    for _ in range(2):
        succeed(schedule, changed=False)
    schedule.request_full(reset_backoff=False)
    assert wait_ms(schedule) == 2 * BACKOFF_MS


def test_who_has_a_new_reason_need_not_wait_for_answers_without_news_but_for_failures(
    schedule: MetadataSchedule,
) -> None:
    for _ in range(4):
        succeed(schedule, changed=False)
    for _ in range(2):
        schedule.failed(NOW_MS)
    schedule.request_full(reset_backoff=True)
    assert wait_ms(schedule) == 2 * BACKOFF_MS


def test_new_topics_wait_for_nothing_that_was_tried_before(schedule: MetadataSchedule) -> None:
    for _ in range(4):
        schedule.failed(NOW_MS)
    schedule.request_partial()
    assert wait_ms(schedule) == 0
    schedule.failed(NOW_MS)
    assert wait_ms(schedule) == MAX_MS


def test_topics_asked_for_after_a_request_left_stay_requested(schedule: MetadataSchedule) -> None:
    schedule.request_partial()
    asked = schedule.request_version
    schedule.request_partial()
    schedule.succeeded(NOW_MS, partial=True, request_version=asked, changed=True)
    assert schedule.partial_requested
    assert wait_ms(schedule) == 0
    schedule.succeeded(NOW_MS, partial=True, request_version=asked + 1, changed=True)
    assert not schedule.partial_requested


def test_an_answer_to_a_request_before_a_change_does_not_stand_for_the_one_after_it(
    schedule: MetadataSchedule,
) -> None:
    schedule.request_full(reset_backoff=True)
    asked = schedule.request_version
    schedule.request_full(reset_backoff=True)
    schedule.succeeded(NOW_MS, partial=False, request_version=asked, changed=True)
    assert schedule.full_requested
    assert schedule.answered_version == asked
    assert wait_ms(schedule) == 0
    succeed(schedule)
    assert not schedule.full_requested
    assert wait_ms(schedule) == MAX_AGE_MS


def test_a_full_answer_serves_those_who_asked_for_new_topics_too(schedule: MetadataSchedule) -> None:
    schedule.request_full(reset_backoff=False)
    schedule.request_partial()
    succeed(schedule)
    assert not schedule.full_requested
    assert not schedule.partial_requested
    assert schedule.had_success


def test_a_clients_settings_bound_the_wait_and_the_age() -> None:
    config: ClientConfig = ProducerConfig.parse(
        {"bootstrap.servers": "b:1"},
        {"retry_backoff_ms": 70, "retry_backoff_max_ms": 70, "metadata_max_age_ms": 4000},
    )
    schedule = MetadataSchedule.from_config(config)
    succeed(schedule)
    assert wait_ms(schedule) == 4000
    for _ in range(9):
        schedule.failed(NOW_MS)
    schedule.request_full(reset_backoff=False)
    assert 56 <= wait_ms(schedule) <= 70
