"""The time when the metadata has to be fetched: on request, by age, and not too often."""

from __future__ import annotations

from typing import Self

import attrs

from kclient.config.client_configs import ClientConfig
from kclient.utils.backoff import ExponentialBackoff


@attrs.define(eq=False, repr=False)
class MetadataSchedule:
    """Requested, expired, backing off. Its owner holds a lock, but may do without to ask how long there is time.

    The wait between two updates grows with failures, and also with answers that bring nothing new, so that
    somebody who keeps asking for a leader that is not there does not keep the brokers busy.
    """

    _backoff: ExponentialBackoff
    _max_age_ms: int
    _attempts: int = attrs.field(default=0, init=False)
    _equal_answers: int = attrs.field(default=0, init=False)
    _backoff_ms: int = attrs.field(default=0, init=False)
    _last_refresh_ms: int | None = attrs.field(default=None, init=False)
    _last_success_ms: int | None = attrs.field(default=None, init=False)
    full_requested: bool = attrs.field(default=False, init=False)
    partial_requested: bool = attrs.field(default=False, init=False)
    request_version: int = attrs.field(default=0, init=False)
    """Grows with everything that an answer to an earlier request does not tell."""
    _full_version: int = attrs.field(default=0, init=False)
    answered_version: int = attrs.field(default=0, init=False)
    """`request_version` of the last full update that succeeded."""

    @classmethod
    def from_config(cls, config: ClientConfig) -> Self:
        """The schedule that a client's settings ask for."""
        backoff = ExponentialBackoff(config.retry_backoff_ms, config.retry_backoff_max_ms)
        return cls(backoff, config.metadata_max_age_ms)

    @property
    def had_success(self) -> bool:
        """True once a full update succeeded."""
        return self._last_success_ms is not None

    def age_ms(self, now_ms: int) -> int | None:
        """Return the time since the last full update, None before the first."""
        return None if self._last_success_ms is None else max(now_ms - self._last_success_ms, 0)

    def request_full(self, reset_backoff: bool) -> None:
        """Somebody wants a full update; `reset_backoff` if answers to earlier requests say nothing of it."""
        self.full_requested = True
        if reset_backoff:
            self.request_version += 1
            self._full_version = self.request_version
            self._equal_answers = 0
            self._set_backoff()

    def request_partial(self) -> None:
        """New topics are wanted, at once."""
        self.partial_requested = True
        self.request_version += 1
        self._equal_answers = 0
        self.at_once()

    def at_once(self) -> None:
        """Let nothing that was tried before delay the next update."""
        self._last_refresh_ms = None
        self._set_backoff()

    def time_to_next_update_ms(self, now_ms: int) -> int:
        """The time until an update is due."""
        # Each read once: another thread may change them meanwhile.
        last_success_ms, last_refresh_ms = self._last_success_ms, self._last_refresh_ms
        wait_ms = 0
        if not (self.full_requested or self.partial_requested) and last_success_ms is not None:
            wait_ms = max(last_success_ms + self._max_age_ms - now_ms, 0)
        if last_refresh_ms is None:
            return wait_ms
        return max(wait_ms, last_refresh_ms + self._backoff_ms - now_ms)

    def failed(self, now_ms: int) -> None:
        """An attempt failed."""
        self._last_refresh_ms = now_ms
        self._attempts += 1
        self._set_backoff()

    def succeeded(self, now_ms: int, *, partial: bool, request_version: int, changed: bool) -> None:
        """An answer came; what was asked for after `request_version` stays requested, and is due at once."""
        self._last_refresh_ms = now_ms if request_version >= self.request_version else None
        self._attempts = 0
        self._equal_answers = 0 if changed else self._equal_answers + 1
        self._set_backoff()
        if request_version >= self.request_version:
            self.partial_requested = False
        if not partial:
            self.full_requested = request_version < self._full_version
            self.answered_version = request_version
            self._last_success_ms = now_ms

    def _set_backoff(self) -> None:
        # Drawn once for each wait: a new draw at every look would shorten it to the smallest one.
        failures = max(self._attempts, self._equal_answers)
        self._backoff_ms = self._backoff.backoff_ms(max(failures - 1, 0))
