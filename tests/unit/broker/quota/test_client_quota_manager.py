"""Rates against quotas, on a clock set by hand: Kafka's windows, delays and limits."""

from __future__ import annotations

import math

import pytest

from harness.mock_time import MockTime
from kclient.broker.quota.client_quota_manager import ClientQuotaManager
from kclient.broker.quota.entity_quotas import NONE, EntityQuotas, Level
from kclient.broker.quota.sensor_table import IDLE_MS
from kclient.broker.quota.windows import QuotaWindows

WINDOWS = QuotaWindows(11, 1000)


def manager(
    time: MockTime, limits: dict[Level, float] | None = None, most_ms: int | None = None
) -> ClientQuotaManager:
    made = (
        ClientQuotaManager(WINDOWS, time)
        if most_ms is None
        else ClientQuotaManager(WINDOWS, time, most_ms=most_ms)
    )
    made.update(EntityQuotas({("u", NONE): 500.0} if limits is None else limits))
    return made


def test_the_delay_is_what_brings_the_rate_down_to_the_quota() -> None:
    time = MockTime()
    quota = manager(time)
    for _ in range(10):
        assert quota.record("u", "c", 400) == 0
        time.advance(1000)
    # 10 windows with 400 each and 300 ms of the next one: (4000 + 2300 - 500 * 10.5) / 500 * 1000
    time.advance(500)
    assert quota.record("u", "c", 2300) == 2100
    time.advance(500)
    assert quota.record("u", "c", 0) > 0
    for _ in range(10):
        time.advance(1000)
        quota.record("u", "c", 400)
    time.advance(1000)
    assert quota.record("u", "c", 0) == 0


def test_a_first_burst_is_measured_over_all_windows_but_one() -> None:
    quota = manager(MockTime())
    assert quota.record("u", "c", 5000) == 0
    assert quota.record("u", "c", 1) == 2
    assert quota.record("u", "c", 4999) == 10_000


def test_once_the_delay_was_waited_for_there_is_none() -> None:
    time = MockTime()
    quota = manager(time)
    held_ms = quota.record("u", "c", 7500)
    assert held_ms == 5000
    time.advance(10_000 + held_ms)
    assert quota.record("u", "c", 400) == 0


def test_a_delay_has_a_limit() -> None:
    assert manager(MockTime(), most_ms=1000).record("u", "c", 1e9) == 1000
    assert manager(MockTime(), {("u", NONE): 1.0}).record("u", "c", 1e300) == (1 << 31) - 1


def test_all_connections_of_who_has_the_quota_share_it_and_others_do_not() -> None:
    quota = manager(MockTime(), {("u", NONE): 500.0, (None, NONE): 100.0})
    assert quota.record("u", "one", 5000) == 0
    assert quota.record("u", "other", 5000) > 0
    assert quota.record("v", "one", 1000) == 0
    assert quota.record("w", "one", 1000) == 0


def test_a_client_without_a_quota_is_not_measured() -> None:
    quota = manager(MockTime())
    assert quota.record("v", "c", 1e9) == 0
    assert quota.usage() == []


def test_a_new_quota_counts_at_once_for_what_was_measured_before() -> None:
    quota = manager(MockTime())
    assert quota.record("u", "c", 4000) == 0
    quota.update(EntityQuotas({("u", NONE): 200.0}))
    assert quota.record("u", "c", 0) == 10_000
    quota.update(EntityQuotas())
    assert not quota.enabled
    assert quota.record("u", "c", 1e9) == 0


def test_what_exceeds_the_quota_is_not_given_and_not_counted() -> None:
    time = MockTime()
    quota = manager(time)
    assert quota.record_unless_exceeded("u", "c", 4000) == (0, True)
    assert quota.record_unless_exceeded("u", "c", 2000) == (2000, False)
    assert quota.record_unless_exceeded("u", "c", 1000) == (0, True)


def test_what_is_more_than_the_quota_ever_allows_is_given_after_a_silence() -> None:
    time = MockTime()
    quota = manager(time)
    assert quota.most("u", "c") == 5000
    assert quota.record_unless_exceeded("u", "c", 1) == (0, True)
    assert quota.record_unless_exceeded("u", "c", 10_000) == (10_002, False)
    time.advance(11_000)
    assert quota.record_unless_exceeded("u", "c", 10_000) == (10_000, True)
    assert quota.record_unless_exceeded("u", "c", 0) == (10_000, False)


def test_what_is_taken_back_is_not_counted() -> None:
    quota = manager(MockTime())
    assert quota.record_unless_exceeded("u", "c", 4000) == (0, True)
    quota.take_back("u", "c", 4000)
    assert quota.record("u", "c", 5000) == 0


@pytest.mark.parametrize("client_id", [None, ""])
def test_a_client_without_an_id_has_the_quota_of_its_user(client_id: str | None) -> None:
    assert manager(MockTime()).record("u", client_id, 10_000) > 0


def test_the_use_of_quotas_can_be_read_until_they_were_idle_for_an_hour() -> None:
    time = MockTime()
    quota = manager(time)
    quota.record("u", "c", 1000)
    (usage,) = quota.usage()
    assert (usage.user, usage.client_id, usage.limit, usage.used) == ("u", "", 500.0, 100.0)
    assert math.isnan(usage.throttle_time_avg_ms)
    quota.record("u", "c", 6500)
    assert quota.usage()[0].throttle_time_avg_ms == 5000
    time.advance(IDLE_MS)
    assert quota.usage() == []
