"""A token that is fetched again before it ends."""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.mock_time import MockTime
from harness.waiting import wait_until
from kclient.errors import SaslAuthenticationError
from kclient.security.oauth_bearer import OAuthBearerToken
from kclient.security.token_login import RefreshSchedule, TokenLogin
from kclient.utils.log_context import LogContext

HOUR_MS = 3_600_000


def schedule(**changes: Any) -> RefreshSchedule:
    usual: dict[str, Any] = {
        "window_factor": 0.8,
        "window_jitter": 0.0,
        "min_period_ms": 60_000,
        "buffer_ms": 300_000,
    }
    return RefreshSchedule(**{**usual, **changes})


@pytest.mark.parametrize(
    ("lifetime_ms", "changes", "due_ms"),
    [
        (HOUR_MS, {}, 2_880_000),  # 0.8 of it
        (HOUR_MS, {"window_factor": 1.0}, HOUR_MS - 300_000),  # the buffer holds
        (400_000, {"window_factor": 0.5}, 100_000),  # the buffer again
        (370_000, {"window_factor": 0.1}, 60_000),  # not earlier than the period
        (100_000, {}, 80_000),  # both do not fit: as if there were neither
        (100_000, {"window_factor": 1.0, "window_jitter": 0.25}, 100_000),  # never after its end
    ],
)
def test_the_next_token_is_due_within_the_settings(
    lifetime_ms: int, changes: dict[str, Any], due_ms: int
) -> None:
    assert schedule(**changes).refresh_ms(1000, 1000 + lifetime_ms) == 1000 + due_ms


def test_jitter_keeps_clients_apart() -> None:
    made = {schedule(window_jitter=0.05).refresh_ms(0, HOUR_MS) for _ in range(50)}
    assert len(made) > 10
    assert all(0.8 * HOUR_MS <= each <= 0.85 * HOUR_MS for each in made)


class Provider:
    """Grants tokens of an hour, named by their number, or raises `failure`."""

    def __init__(self, time: MockTime) -> None:
        self.time = time
        self.numbers = itertools.count(1)
        self.asked = 0
        self.failure: Exception | None = None

    def __call__(self) -> OAuthBearerToken:
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        return OAuthBearerToken(f"t{next(self.numbers)}", expires_ms=self.time.wall_ms() + HOUR_MS)


MakeLogin = Callable[[Callable[[], OAuthBearerToken]], TokenLogin]


@pytest.fixture
def time() -> MockTime:
    return MockTime()


@pytest.fixture
def provider(time: MockTime) -> Provider:
    return Provider(time)


@pytest.fixture
def make_login(time: MockTime) -> Iterator[MakeLogin]:
    made: list[TokenLogin] = []

    def make(fetch: Callable[[], OAuthBearerToken]) -> TokenLogin:
        made.append(TokenLogin(fetch, schedule(), LogContext(), time))
        return made[-1]

    yield make
    for each in made:
        each.close()
        if each._thread is not None:
            each._thread.join(10)
            assert not each._thread.is_alive()


def test_the_first_token_is_there_at_once_and_its_failure_is_the_callers(
    provider: Provider, make_login: MakeLogin
) -> None:
    assert make_login(provider).token().value == "t1"
    provider.failure = ValueError("the application's own")
    with pytest.raises(ValueError, match="the application's own"):
        make_login(provider)


def test_the_next_token_is_fetched_before_the_first_ends(
    time: MockTime, provider: Provider, make_login: MakeLogin
) -> None:
    login = make_login(provider)
    assert login.token().value == "t1"
    time.advance(int(0.79 * HOUR_MS))
    assert login.token().value == "t1"
    time.advance(int(0.02 * HOUR_MS))
    wait_until(lambda: login.token().value == "t2", what="the next token")
    assert provider.asked == 2


def test_a_failure_leaves_the_old_token_and_is_tried_again(
    time: MockTime, provider: Provider, make_login: MakeLogin, caplog: pytest.LogCaptureFixture
) -> None:
    login = make_login(provider)
    login.token()
    provider.failure = OSError("no route")
    with caplog.at_level(logging.WARNING):
        time.advance(int(0.81 * HOUR_MS))
        wait_until(lambda: "no route" in caplog.text, what="the warning")
    assert login.token().value == "t1"
    provider.failure = None
    time.advance(10_000)
    wait_until(lambda: login.token().value == "t2", what="the next token")


def test_a_token_that_has_ended_is_not_given_out(
    time: MockTime, provider: Provider, make_login: MakeLogin
) -> None:
    login = make_login(provider)
    login.token()
    provider.failure = OSError("no route")
    time.advance(HOUR_MS)
    wait_until(lambda: provider.asked == 2, what="the next try")
    with pytest.raises(ConnectionError, match="has ended, and there is no other one"):
        login.token()
    wait_until(lambda: login._failure is not None, what="its end")
    with pytest.raises(ConnectionError, match="no route"):
        login.token()


def test_a_token_that_comes_too_late_is_refused(time: MockTime, make_login: MakeLogin) -> None:
    with pytest.raises(SaslAuthenticationError, match="clock"):
        make_login(lambda: OAuthBearerToken("t", expires_ms=time.wall_ms()))


def test_without_a_connection_there_is_no_thread(provider: Provider, make_login: MakeLogin) -> None:
    assert make_login(provider)._thread is None


def test_a_wall_clock_that_is_set_forward_brings_the_next_token(
    time: MockTime, provider: Provider, make_login: MakeLogin
) -> None:
    login = make_login(provider)
    login.token()
    time.set_wall_ms(time.wall_ms() + 2 * HOUR_MS)
    time.advance(60_000)  # by then it has looked again
    wait_until(lambda: login._token.value == "t2", what="the next token")
