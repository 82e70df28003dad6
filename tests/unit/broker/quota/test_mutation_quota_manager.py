"""The token bucket of controller mutations (KIP-599), on a clock set by hand."""

from __future__ import annotations

import pytest

from harness.mock_time import MockTime
from kclient.broker.quota.entity_quotas import NONE, EntityQuotas
from kclient.broker.quota.mutation_quota_manager import MutationQuotaManager
from kclient.broker.quota.windows import QuotaWindows
from kclient.errors import ThrottlingQuotaExceededError

BURST = 55  # 5 a second, for 11 windows


def manager(time: MockTime) -> MutationQuotaManager:
    made = MutationQuotaManager(QuotaWindows(11, 1000), time)
    made.update(EntityQuotas({("u", NONE): 5.0}))
    return made


def test_a_burst_is_let_pass_and_what_follows_waits_for_what_is_owed() -> None:
    time = MockTime()
    quotas = manager(time)
    quotas.quota_of("u", "c", strict=True).charge(BURST + 10)
    second = quotas.quota_of("u", "c", strict=True)
    with pytest.raises(ThrottlingQuotaExceededError) as raised:
        second.charge(1)
    assert raised.value.throttle_time_ms == second.throttle_ms == 2000
    time.advance(1999)
    with pytest.raises(ThrottlingQuotaExceededError):
        quotas.quota_of("u", "c", strict=True).charge(1)
    time.advance(1)
    quotas.quota_of("u", "c", strict=True).charge(1)


def test_what_was_refused_costs_nothing() -> None:
    time = MockTime()
    quotas = manager(time)
    quotas.quota_of("u", "c", strict=True).charge(BURST + 5)
    for _ in range(3):
        with pytest.raises(ThrottlingQuotaExceededError):
            quotas.quota_of("u", "c", strict=True).charge(1000)
    time.advance(1000)
    quotas.quota_of("u", "c", strict=True).charge(1)


def test_one_that_is_not_strict_lets_everything_pass_and_holds_the_client_back() -> None:
    quotas = manager(MockTime())
    quota = quotas.quota_of("u", "c", strict=False)
    quota.charge(BURST)
    assert quota.throttle_ms == 0
    quota.charge(5)
    assert quota.throttle_ms == 1000
    quota.charge(5)
    assert quota.throttle_ms == 2000


def test_the_bucket_does_not_overflow() -> None:
    time = MockTime()
    quotas = manager(time)
    quotas.quota_of("u", "c", strict=False).charge(1)
    time.advance(1_000_000)
    (usage,) = quotas.usage()
    assert (usage.user, usage.limit, usage.used) == ("u", 5.0, BURST)


def test_whoever_has_no_quota_is_free() -> None:
    quotas = manager(MockTime())
    quota = quotas.quota_of("v", "c", strict=True)
    quota.charge(1_000_000)
    assert quota.throttle_ms == 0
    quotas.update(EntityQuotas())
    assert not quotas.enabled
    quotas.quota_of("u", "c", strict=True).charge(1_000_000)
