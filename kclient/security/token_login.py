"""TokenLogin: a token that is there before a connection needs it, fetched again before it ends."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import attrs

from kclient.errors import SaslAuthenticationError
from kclient.security.oauth_bearer import OAuthBearerToken
from kclient.utils.log_context import LogContext
from kclient.utils.threads import KafkaThread
from kclient.utils.time import SYSTEM_TIME, Time

_RETRY_MS = 10_000
_LOOK_AGAIN_MS = 60_000  # the clock may be set, or the machine sleep


@attrs.frozen(kw_only=True)
class RefreshSchedule:
    """The time to fetch the next token, by the settings `sasl.login.refresh.*`."""

    window_factor: float
    window_jitter: float
    min_period_ms: int
    buffer_ms: int

    def refresh_ms(self, begins_ms: int, expires_ms: int) -> int:
        """Return when to fetch another token than the one of this time; never after its end."""
        lifetime_ms = expires_ms - begins_ms
        part = self.window_factor + random.uniform(0.0, self.window_jitter)
        due_ms = begins_ms + int(lifetime_ms * part)
        if self.min_period_ms + self.buffer_ms <= lifetime_ms:  # both can be kept
            due_ms = min(max(due_ms, begins_ms + self.min_period_ms), expires_ms - self.buffer_ms)
        return min(due_ms, expires_ms)


class TokenLogin:
    """Fetches a client's token, and the next one from a thread of its own. Belongs to one thread.

    `fetch` may block. What it raises for the first token is the caller's; later it is warned of, and tried again while
    the old token goes on to be used.
    """

    def __init__(
        self,
        fetch: Callable[[], OAuthBearerToken],
        schedule: RefreshSchedule,
        log_context: LogContext,
        time: Time = SYSTEM_TIME,
    ) -> None:
        """Fetch the first token."""
        self._fetch = fetch
        self._schedule = schedule
        self._log = log_context.logger(__name__)
        self._time = time
        self._condition = threading.Condition()
        self._closed = False
        self._token = self._fetched()
        self._next_ms = self._due_ms(self._token)
        self._failure: Exception | None = None  # of the last try, if that was in vain
        self._thread: KafkaThread | None = None

    def token(self) -> OAuthBearerToken:
        """Return the token as it is now; from the first call on it is kept fresh.

        Raises ConnectionError if it has ended, and there is no other one yet.
        """
        if self._thread is None:
            self._thread = KafkaThread("kclient-login", self._run)
            self._thread.start()
        token, failure = self._token, self._failure
        if token.expires_ms <= self._time.wall_ms():
            raise ConnectionError(
                f"the token of OAUTHBEARER has ended, and there is no other one: {failure or 'it is being fetched'}"
            )
        return token

    def close(self) -> None:
        """Fetch no more tokens. Does not wait for a fetch that is under way."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()

    def _fetched(self) -> OAuthBearerToken:
        token = self._fetch()
        if token.expires_ms <= self._time.wall_ms():
            raise SaslAuthenticationError(
                "The token of OAUTHBEARER that was fetched has ended already; is this machine's clock right?"
            )
        return token

    def _due_ms(self, token: OAuthBearerToken) -> int:
        return self._schedule.refresh_ms(self._time.wall_ms(), token.expires_ms)

    def _run(self) -> None:
        while True:
            with self._condition:
                wait_ms = max(self._next_ms - self._time.wall_ms(), 0)
                if self._time.wait_for(self._condition, lambda: self._closed, min(wait_ms, _LOOK_AGAIN_MS)):
                    return
            if self._time.wall_ms() >= self._next_ms:
                self._refresh()

    def _refresh(self) -> None:
        try:
            token = self._fetched()
        except Exception as error:  # which may be the application's own
            self._failure = error
            self._next_ms = self._time.wall_ms() + _RETRY_MS
            self._log.warning(
                "The next token of OAUTHBEARER could not be fetched, and is tried again in %d s: %s",
                _RETRY_MS // 1000, error,
            )  # fmt: skip
        else:
            self._token, self._failure = token, None
            self._next_ms = self._due_ms(token)
            self._log.info("Fetched the next token of OAUTHBEARER, of %s", token.principal or "no name")
