"""Clients that a process keeps from one task to the next: who gets which, and when they are closed."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from harness.mock_time import MockTime
from harness.network.ports import closed_port
from kclient.spark import clients
from kclient.spark.clients import (
    close_all,
    drop_admin,
    drop_producer,
    leased_consumer,
    shared_admin,
    shared_producer,
)

KEY, OTHER = (("a", "1"),), (("a", "2"),)


class Kept:
    """A consumer, as far as the ones that nobody uses have to be one."""

    def __init__(self) -> None:
        self.closed: list[int] = []

    def close(self, timeout_ms: int) -> None:
        self.closed.append(timeout_ms)


@pytest.fixture(autouse=True)
def own_clients(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(clients, "_clients", clients._Clients())
    yield
    close_all()


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> MockTime:
    made = MockTime()
    monkeypatch.setattr(clients, "SYSTEM_TIME", made)
    return made


@pytest.fixture
def settings() -> dict[str, str]:
    """Those of clients that never find a broker, and need none."""
    return {"bootstrap.servers": f"127.0.0.1:{closed_port()}", "client.id": "task"}


def given_back(*keys: Any) -> list[Any]:
    """Consumers of these settings that nobody uses any more."""
    made: list[Any] = [Kept() for _ in keys]
    for key, consumer in zip(keys, made, strict=True):
        clients._clients.give_back(key, consumer)
    return made


def test_the_latest_consumer_of_the_same_settings_is_taken_and_once_only(time: MockTime) -> None:
    first, second, _ = given_back(KEY, KEY, OTHER)
    assert clients._clients.take(KEY) is second
    assert clients._clients.take(KEY) is first
    assert clients._clients.take(KEY) is None
    assert first.closed == second.closed == []


def test_consumers_that_nobody_used_for_minutes_are_closed_when_the_next_one_is_taken(time: MockTime) -> None:
    [old] = given_back(OTHER)
    time.advance(1)
    [young] = given_back(OTHER)
    time.advance(5 * 60_000)
    assert clients._clients.take(KEY) is None
    assert (old.closed, young.closed) == ([0], [])
    assert [each.consumer for each in clients._clients.idle] == [young]


def test_a_consumer_of_the_wanted_settings_is_taken_however_long_it_was_unused(time: MockTime) -> None:
    older, old = given_back(KEY, KEY)
    time.advance(60 * 60_000)
    assert clients._clients.take(KEY) is old
    assert (older.closed, old.closed) == ([0], [])


def test_of_too_many_unused_consumers_the_one_unused_longest_is_closed(time: MockTime) -> None:
    kept = given_back(*[KEY] * 65)
    assert [consumer.closed for consumer in kept] == [[0], *[[]] * 64]
    assert len(clients._clients.idle) == 64


def test_a_consumer_is_leased_again_with_the_same_settings_in_any_order(settings: dict[str, str]) -> None:
    with leased_consumer(settings) as first, leased_consumer(settings) as second:
        assert first is not second
    with leased_consumer(dict(reversed(settings.items()))) as again:
        assert again is first
        with leased_consumer({**settings, "client.id": "other"}) as other:
            assert other not in {first, second}


def test_a_consumer_comes_back_without_a_subscription(settings: dict[str, str]) -> None:
    with leased_consumer({**settings, "group.id": "g"}) as consumer:
        consumer.subscribe(["t"])
    assert consumer.subscription() == frozenset()


@pytest.mark.parametrize("error", [ValueError, GeneratorExit, KeyboardInterrupt])
def test_after_an_error_a_consumer_is_closed_and_leased_to_nobody(
    settings: dict[str, str], error: type[BaseException]
) -> None:
    with pytest.raises(error), leased_consumer(settings) as consumer:
        raise error
    assert "closed" in repr(consumer)
    assert clients._clients.idle == []


def test_clients_are_shared_by_their_settings_until_they_are_dropped(settings: dict[str, str]) -> None:
    for share, drop in ((shared_admin, drop_admin), (shared_producer, drop_producer)):
        first: Any = share(settings)
        assert share(dict(reversed(settings.items()))) is first
        assert share({**settings, "client.id": "other"}) is not first
        drop(settings)
        drop(settings)
        assert share(settings) is not first


def test_the_files_of_a_client_are_looked_for_once_when_it_is_made_and_by_each_session(
    settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[dict[str, str]] = []

    def found(given: dict[str, str]) -> dict[str, str]:
        made.append(given)
        return {**given, "client.id": "found"}

    monkeypatch.setattr(clients, "on_this_machine", found)
    for folder in ("of one session", "of another"):
        monkeypatch.setattr(clients, "files_folder", lambda folder=folder: folder)
        for _ in range(2):
            shared_admin(settings)
            assert shared_producer(settings).metrics()
            with leased_consumer(settings):
                pass
        assert made == [settings] * 3
        made.clear()
    assert "found" in repr(shared_producer(settings))


def test_all_but_leased_clients_are_closed_at_the_end_and_then_made_anew(settings: dict[str, str]) -> None:
    [kept] = given_back(KEY)
    producer = shared_producer(settings)
    with leased_consumer(settings) as leased:
        close_all()
        assert "closed" not in repr(leased)
    assert kept.closed == [0]
    assert shared_producer(settings) is not producer
    assert [each.consumer for each in clients._clients.idle] == [leased]


def test_a_forked_child_has_none_of_its_parents_clients() -> None:
    [kept] = given_back(KEY)
    with clients._clients.lock:  # by another thread, as far as the child can tell
        child = os.fork()
        if child == 0:
            signal.alarm(2)  # ends it where it would wait for that thread
            try:
                os._exit(0 if clients._clients.take(KEY) is None else 1)
            finally:
                os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert clients._clients.take(KEY) is kept
