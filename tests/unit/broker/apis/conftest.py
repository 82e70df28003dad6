"""Handlers of requests for the tests of one of them each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from harness.broker.handlers import Handlers


@pytest.fixture
def make_handlers(tmp_path: Path) -> Iterator[Callable[..., Handlers]]:
    """Makes handlers with settings of the broker; underscores stand for dots."""

    with ExitStack() as stack:

        def make(**settings: Any) -> Handlers:
            return Handlers(tmp_path, stack, **settings)

        yield make


@pytest.fixture
def handlers(make_handlers: Callable[..., Handlers]) -> Handlers:
    """Handlers over a new, empty broker."""
    return make_handlers()


@pytest.fixture
def coordinator(handlers: Handlers) -> None:
    """Somebody has looked for the coordinator of groups, and so made their topic."""
    handlers.groups.coordinator_partition("g")
