"""The three clocks of a group member: heartbeat, session and poll."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from kclient.client.request_sender import NEVER
from kclient.utils.backoff import ExponentialBackoff


@attrs.define(kw_only=True, eq=False, repr=False)
class Heartbeat:
    """Decides when to send a heartbeat, when the coordinator must be taken for gone, when the application for stuck.

    Belongs to the I/O thread, but for `polled_ms`. `taken_ms` says when the application took a record last without a
    call of poll(), as it does when it iterates.
    """

    _interval_ms: int
    _session_timeout_ms: int
    _max_poll_interval_ms: int
    _backoff: ExponentialBackoff
    _taken_ms: Callable[[], int]
    polled_ms: int = attrs.field(alias="now_ms")
    """The time when the application called poll() last; for its thread to set."""
    _heard_ms: int | None = attrs.field(default=None, init=False)
    _failures: int = attrs.field(default=0, init=False)
    _in_flight: bool = attrs.field(default=False, init=False)
    _next_ms: int = attrs.field(init=False)
    _session_deadline_ms: int = attrs.field(init=False)
    _hurried: bool = attrs.field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._next_ms = self.polled_ms
        self._session_deadline_ms = self.polled_ms + self._session_timeout_ms

    def begin_anew(self, now_ms: int) -> None:
        """Send the next one now, whatever has become of the last."""
        self._in_flight = False
        self._failures = 0
        self._next_ms = now_ms

    def joined(self, now_ms: int) -> None:
        """The member joined anew."""
        self._heard_ms = now_ms
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        """A session begins, or is given another chance."""
        self._in_flight = False
        self._failures = 0
        self._next_ms = now_ms + self._interval_ms
        self._session_deadline_ms = now_ms + self._session_timeout_ms

    def is_due(self, now_ms: int) -> bool:
        """Return True if a heartbeat is to be sent now."""
        return not self._in_flight and (self._hurried or now_ms >= self._next_ms)

    def hurry(self) -> None:
        """There is something to tell: send the next one as soon as no other one is on its way."""
        self._hurried = True

    def set_interval(self, interval_ms: int, now_ms: int) -> None:
        """The coordinator wants to hear from the member this often, from now on."""
        if interval_ms > 0 and interval_ms != self._interval_ms:
            self._interval_ms = interval_ms
            self._next_ms = now_ms + interval_ms

    def sent(self, now_ms: int) -> None:
        """A heartbeat is on its way."""
        self._in_flight = True
        self._hurried = False
        self._next_ms = now_ms + self._interval_ms

    def answered(self, now_ms: int) -> None:
        """The coordinator answered, so the session goes on."""
        self._heard_ms = now_ms
        self._in_flight = False
        self._failures = 0
        self._session_deadline_ms = now_ms + self._session_timeout_ms

    def failed(self, now_ms: int) -> None:
        """It did no good; try again before a whole interval is over, though less and less soon (KIP-580)."""
        self._in_flight = self._hurried = False
        self._next_ms = now_ms + self._backoff.backoff_ms(self._failures)
        self._failures += 1

    def session_expired(self, now_ms: int) -> bool:
        """Return True if the coordinator has not answered for session.timeout.ms."""
        return now_ms >= self._session_deadline_ms

    def poll_expired(self, now_ms: int) -> bool:
        """Return True if the application has not polled for max.poll.interval.ms."""
        return now_ms - self._last_poll_ms() >= self._max_poll_interval_ms

    def since_answer_ms(self, now_ms: int) -> int | None:
        """Return the time since the coordinator let the session begin or go on, None before. For any thread."""
        heard_ms = self._heard_ms
        return None if heard_ms is None else max(now_ms - heard_ms, 0)

    def since_poll_ms(self, now_ms: int) -> int:
        """Return the time since the application polled, or took a record. For any thread."""
        return max(now_ms - self._last_poll_ms(), 0)

    def wait_ms(self, now_ms: int) -> int:
        """The time until one of the clocks wants something."""
        next_ms = now_ms if self._hurried else self._next_ms
        if self._in_flight:
            next_ms = now_ms + NEVER
        poll_ms = self._last_poll_ms() + self._max_poll_interval_ms
        return max(min(next_ms, self._session_deadline_ms, poll_ms) - now_ms, 0)

    def _last_poll_ms(self) -> int:
        return max(self.polled_ms, self._taken_ms())
