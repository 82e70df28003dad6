"""Every test of the log gets a place to keep one in."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.broker.logs import LogHarness


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[LogHarness]:
    root = tmp_path / "data"
    root.mkdir()
    made = LogHarness(root)
    yield made
    made.close()
