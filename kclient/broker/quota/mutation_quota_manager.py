"""MutationQuotaManager: partitions that clients have made and deleted, held against their quotas (KIP-599)."""

from __future__ import annotations

import attrs

from kclient.broker.quota.entity_quotas import Owner
from kclient.broker.quota.quota_manager import QuotaManager
from kclient.broker.quota.windows import MOST_MS, QuotaWindows
from kclient.errors import ThrottlingQuotaExceededError
from kclient.metrics.stats import Avg
from kclient.utils.time import Time


@attrs.define(eq=False)
class TokenBucket:
    """Tokens of those who share a quota: as many a second as the quota says, and those of all windows at most.

    The lock of its manager guards it. A new one is full.
    """

    _windows: QuotaWindows
    throttle_time: Avg = attrs.field(factory=Avg, init=False)
    _tokens: float | None = attrs.field(default=None, init=False)
    _filled_ms: int = attrs.field(default=0, init=False)

    def measure(self, limit: float, now_ms: int) -> float:
        """Return the tokens there are; fewer than none are owed."""
        burst = limit * self._windows.count * self._windows.window_ms / 1000
        if self._tokens is None:
            self._tokens = burst
        else:
            self._tokens = min(burst, self._tokens + limit * (now_ms - self._filled_ms) / 1000)
        self._filled_ms = now_ms
        return self._tokens

    def take(self, count: float, limit: float, now_ms: int) -> None:
        """Take tokens, also those that are not there."""
        self._tokens = self.measure(limit, now_ms) - count

    def throttle_ms(self, limit: float, now_ms: int) -> int:
        """Return the time until no tokens are owed."""
        owed = -self.measure(limit, now_ms)
        if owed <= 0:
            return 0
        held_ms = round(min(owed / limit * 1000, MOST_MS))
        self.throttle_time.record(held_ms, now_ms, 1, held_ms)
        return held_ms


class MutationQuotaManager(QuotaManager[TokenBucket]):
    """The quotas of controller mutations. Thread-safe."""

    def __init__(self, windows: QuotaWindows, time: Time) -> None:
        super().__init__(lambda: TokenBucket(windows), time)

    def quota_of(self, user: str, client_id: str | None, *, strict: bool) -> MutationQuota:
        """Return the quota against which the mutations of one request are held.

        A strict one refuses them while tokens are owed; the other one only holds the client back.
        """
        return MutationQuota(self, self._quotas.find(user, client_id or ""), strict=strict)

    def take(self, owner: Owner, limit: float, count: int, *, strict: bool) -> int:
        """Take tokens for partitions; returns for how many ms the client is to be held back.

        A strict caller gets them only while none are owed: they are not taken if the result is not 0.
        """
        now_ms = self._time.monotonic_ms()
        with self._lock:
            bucket = self._sensors.get(owner, now_ms)
            if strict:
                held_ms = bucket.throttle_ms(limit, now_ms)
                if held_ms == 0:
                    bucket.take(count, limit, now_ms)
                return held_ms
            bucket.take(count, limit, now_ms)
            return bucket.throttle_ms(limit, now_ms)


@attrs.define(eq=False)
class MutationQuota:
    """The quota of a client as one request uses it. Used by one thread."""

    _manager: MutationQuotaManager
    _found: tuple[Owner, float] | None
    _strict: bool = attrs.field(kw_only=True)
    throttle_ms: int = attrs.field(default=0, init=False)
    """The time for which the client is to be held back."""

    def charge(self, partitions: int) -> None:
        """Take note of partitions that are about to be made or deleted.

        Raises ThrottlingQuotaExceededError if they must not be, because the quota is strict and exceeded.
        """
        if self._found is None:
            return
        held_ms = self._manager.take(*self._found, partitions, strict=self._strict)
        self.throttle_ms = max(self.throttle_ms, held_ms)
        if self._strict and held_ms:
            error = ThrottlingQuotaExceededError()
            error.throttle_time_ms = held_ms
            raise error
