"""Pollers of both bodies, closed at the end, and two connected sockets."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest


@pytest.fixture(params=["python", "c"])
def make(request: pytest.FixtureRequest) -> Iterator[Callable[[], Any]]:
    # Not before: where the native one is not built, whoever asks for this is skipped.
    from harness.accel.pollers import BODIES

    with ExitStack() as made:

        def one() -> Any:
            poller = BODIES[request.param]()
            made.callback(poller.close)
            return poller

        yield one


@pytest.fixture
def poller(make: Callable[[], Any]) -> Any:
    return make()


@pytest.fixture
def ends() -> Iterator[tuple[socket.socket, socket.socket]]:
    from harness.accel.pollers import pair

    ours, theirs = pair()
    with ours, theirs:
        yield ours, theirs
