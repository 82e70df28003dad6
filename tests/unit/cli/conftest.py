"""A scripted broker, for commands that ask for what the embedded one does not have."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from harness.network.scripted_broker import ScriptedBroker
from kclient.cli.main import main


@pytest.fixture
def scripted() -> Iterator[ScriptedBroker]:
    with ScriptedBroker(topics={"orders": 1}) as made:
        yield made
        assert made.errors == []


@pytest.fixture
def kclient(scripted: ScriptedBroker) -> Callable[..., int]:
    """Runs a command on the scripted broker; returns its exit code."""

    def run(command: str, *words: str) -> int:
        return main([command, "--bootstrap-server", scripted.bootstrap, *words])

    return run
